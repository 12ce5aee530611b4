#include "tamis/server/entity_tag.h"

#include <openssl/sha.h>

#include <array>

#include "tamis/table/codec.h"
#include "tamis/table/value.h"

namespace tamis::server {
namespace {

constexpr size_t kTagBytes = 16;  // bytes of a SHA-256

void AppendNumber(uint32_t number, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) *out += static_cast<char>(number >> shift);
}

}  // namespace

std::string EntityTagOf(const TableSchema& table, const Row& row) {
  std::string bytes;
  AppendNumber(table.id, &bytes);
  for (size_t i = 0; i < table.columns.size(); ++i) {
    AppendNumber(table.columns[i].id, &bytes);
    bytes += row[i].is_null() ? '\0' : '\1';
    if (!row[i].is_null()) AppendOrdered(row[i], &bytes);
  }
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string tag = "\"";
  for (size_t i = 0; i < kTagBytes; ++i) tag += {kDigits[digest[i] >> 4], kDigits[digest[i] & 15]};
  return tag + '"';
}

Result<RowConditions> RowConditions::Of(const Request& request) {
  if (!request.Header("if-unmodified-since").empty()) {
    return InvalidArgument(
        "rows have no time of their last change, so If-Unmodified-Since cannot be tested; use "
        "If-Match with the ETag of GET");
  }
  RowConditions conditions;
  if (const std::string value = request.Header("if-match"); !value.empty()) {
    TAMIS_ASSIGN_OR_RETURN(conditions.if_match_, Parse("If-Match", value));
  }
  if (const std::string value = request.Header("if-none-match"); !value.empty()) {
    TAMIS_ASSIGN_OR_RETURN(conditions.if_none_match_, Parse("If-None-Match", value));
  }
  return conditions;
}

Result<RowConditions> RowConditions::IfMatch(const std::string& value) {
  RowConditions conditions;
  TAMIS_ASSIGN_OR_RETURN(conditions.if_match_, Parse("if_match", value));
  return conditions;
}

Result<RowConditions::Tags> RowConditions::Parse(const std::string& header,
                                                 std::string_view value) {
  const auto wrong = [&] {
    return InvalidArgument(header + " must be * or a list of tags in double quotes, such as " +
                           R"("1f", "2e"; it is )" + std::string(value));
  };
  const auto skip_blanks = [](std::string_view* text) {
    while (!text->empty() && (text->front() == ' ' || text->front() == '\t'))
      text->remove_prefix(1);
  };
  Tags list;
  std::string_view rest = value;
  if (rest == "*") {
    list.any = true;
    return list;
  }
  while (true) {
    skip_blanks(&rest);
    const bool is_weak = rest.starts_with("W/");
    if (is_weak) rest.remove_prefix(2);
    const size_t end = rest.find('"', 1);
    if (!rest.starts_with('"') || end == std::string_view::npos) return wrong();
    list.tags.emplace_back(rest.substr(0, end + 1));
    list.is_weak.push_back(is_weak);
    rest.remove_prefix(end + 1);
    skip_blanks(&rest);
    if (rest.empty()) return list;
    if (!rest.starts_with(',')) return wrong();
    rest.remove_prefix(1);
  }
}

bool RowConditions::ForAnyRow() const {
  return (!if_match_ || if_match_->any) && (!if_none_match_ || if_none_match_->any);
}

bool RowConditions::Tags::Has(const std::string& tag, bool weak_too) const {
  if (any) return true;
  for (size_t i = 0; i < tags.size(); ++i) {
    if (tags[i] == tag && (weak_too || !is_weak[i])) return true;
  }
  return false;
}

std::string RowConditions::Broken(const std::optional<std::string>& tag) const {
  if (if_match_ && !(tag && if_match_->Has(*tag, /*weak_too=*/false))) return "If-Match";
  if (if_none_match_ && tag && if_none_match_->Has(*tag, /*weak_too=*/true)) return "If-None-Match";
  return "";
}

}  // namespace tamis::server
