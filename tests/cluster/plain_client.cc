#include "tests/cluster/plain_client.h"

#include <algorithm>
#include <sstream>

#include "tamis/table/key_format.h"
#include "tamis/table/stored_row.h"

namespace tamis {
namespace {

std::string Hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : bytes) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string BytesOf(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// "d:grp=6731"
Cell CellOf(const std::string& word) {
  const size_t colon = word.find(':');
  const size_t value = word.find('=', colon);
  return {.name = {.family = word.substr(0, colon),
                   .qualifier = word.substr(colon + 1, value - colon - 1)},
          .value = BytesOf(word.substr(value + 1))};
}

bool TakePrefix(std::string_view prefix, std::string* line) {
  if (!line->starts_with(prefix)) return false;
  line->erase(0, prefix.size());
  return true;
}

Result<std::string> Order(const char* verb, const TableSchema& schema, const Row& row) {
  TAMIS_ASSIGN_OR_RETURN(const std::string key, KeyFormat(schema).Encode(row));
  return std::string(verb) + " " + Hex(key);
}

}  // namespace

Result<std::unique_ptr<PlainClient>> PlainClient::Start(const std::vector<std::string>& command) {
  TAMIS_ASSIGN_OR_RETURN(auto process, LineProcess::Start(command));
  TAMIS_ASSIGN_OR_RETURN(const std::string line, process->Hear());
  if (line != "ready") return Internal("a plain client begins with \"" + line + "\"");
  return std::unique_ptr<PlainClient>(new PlainClient(std::move(process)));
}

Result<std::string> PlainClient::Ask(const std::string& order) {
  auto answered = process_->Ask(order);
  if (!answered.ok()) return Internal("no answer to " + order + ": " + answered.status().message());
  std::string& answer = *answered;
  if (TakePrefix("refused ", &answer)) return Unavailable(answer);
  if (TakePrefix("may stand ", &answer)) return DeadlineExceeded(answer);
  return answered;
}

Status PlainClient::Write(const std::string& order) {
  TAMIS_ASSIGN_OR_RETURN(const std::string answer, Ask(order));
  return answer == "done" ? Status::Ok() : Internal(order + " is answered with " + answer);
}

Status PlainClient::Put(const TableSchema& schema, const Row& row) {
  TAMIS_ASSIGN_OR_RETURN(std::string order, Order("put", schema, row));
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    const Column& column = schema.columns[i];
    if (column.encoding == CellEncoding::kNone || row[i].is_null()) continue;  // kNone: in the key
    TAMIS_ASSIGN_OR_RETURN(const std::string value, EncodeCell(column.encoding, row[i]));
    order += " " + column.cell.family + ":" + column.cell.qualifier + "=" + Hex(value);
  }
  return Write(order);
}

Status PlainClient::Delete(const TableSchema& schema, const Row& row) {
  TAMIS_ASSIGN_OR_RETURN(const std::string order, Order("delete", schema, row));
  return Write(order);
}

Status PlainClient::SetReadTimeout(std::chrono::seconds timeout) {
  return Write("wait " + std::to_string(timeout.count()));
}

Result<RowState> PlainClient::Get(const TableSchema& schema, const Row& key) {
  TAMIS_ASSIGN_OR_RETURN(const std::string encoded, KeyFormat(schema).Encode(key));
  TAMIS_ASSIGN_OR_RETURN(const std::string answer, Ask("get " + Hex(encoded)));
  std::istringstream words(answer);
  std::string word;
  if (!(words >> word) || word != "cells") return Internal("a get is answered with " + answer);
  std::vector<Cell> cells;
  while (words >> word) cells.push_back(CellOf(word));
  std::ranges::sort(cells, {}, &Cell::name);
  TAMIS_ASSIGN_OR_RETURN(StoredRow stored, ReadStoredRow(schema, encoded, EncodeCells(cells)));
  if (stored.undecodable > 0) return Internal("cells do not decode: " + answer);
  if (stored.state != StoredRow::State::kRow) return RowState();
  return RowState(std::move(stored.row));
}

}  // namespace tamis
