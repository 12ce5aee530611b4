// Any input decodes to a server's answer or an error, using bounded memory: frames, headers,
// exceptions, cell blocks, rows of every kind of answer, rows of hbase:meta.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "tamis/hbase/exception.h"
#include "tamis/hbase/frame.h"
#include "tamis/hbase/region.h"
#include "tamis/hbase/row.h"
#include "tamis/hbase/wire.pb.h"

namespace {

using namespace tamis::hbase;  // NOLINT(google-build-using-namespace)

constexpr size_t kMaxFrame = 1 << 16;

void ReadRow(const tamis::Result<Row>& row) {
  if (!row.ok()) return;
  // Reads every view, so that a sanitizer finds one that points outside of the bytes.
  size_t sum = row->key().size();
  for (const Cell& cell : row->cells()) {
    for (const char c : std::string(cell.family) + std::string(cell.value)) sum += c != 0;
  }
  if (sum == 1 && row->size_bytes() == 0) std::abort();
  (void)ParseMetaRow(*row);
  (void)JoinParts({*row, *row});
}

void ReadAnswer(std::string_view bytes) {
  const auto frame = std::make_shared<const std::string>(bytes);
  pb::ResponseHeader header;
  const auto parts = ParseAnswer(*frame, &header);
  if (!parts.ok()) return;
  if (header.has_exception()) {
    const Exception exception = ExceptionOf(header.exception());
    if (exception.ToStatus().ok()) std::abort();
    return;
  }
  const std::string message(parts->message);
  if (pb::GetResponse get; get.ParseFromString(message)) {
    std::string_view cells = parts->cells;
    ReadRow(TakeRow(get.result(), &cells, frame));
  }
  if (pb::ScanResponse scan; scan.ParseFromString(message)) {
    std::string_view cells = parts->cells;
    for (const uint32_t count : scan.cells_per_result()) ReadRow(TakeRow(count, &cells, frame));
    for (const pb::Result& result : scan.results()) ReadRow(TakeRow(result, &cells, frame));
  }
  if (pb::MultiResponse multi; multi.ParseFromString(message)) {
    std::string_view cells = parts->cells;
    for (const auto& of_region : multi.regionactionresult()) {
      for (const auto& one : of_region.resultorexception()) {
        ReadRow(TakeRow(one.result(), &cells, frame));
        (void)ExceptionOf(one.exception());
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FrameReader reader(kMaxFrame);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const auto space = reader.Space();
    const size_t step = std::min({rest.size(), space.size(), size_t{1000}});
    std::memcpy(space.data(), rest.data(), step);
    reader.Commit(step);
    rest.remove_prefix(step);
    while (true) {
      const auto frame = reader.Next();
      if (!frame.ok()) return 0;
      if (!*frame) break;
      ReadAnswer((*frame)->bytes);
    }
    if (reader.capacity() > 4 * kMaxFrame) std::abort();
  }
  return 0;
}
