#include "tamis/cli/batch_writer.h"

#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include "tamis/base/hash.h"

namespace tamis {

namespace asio = boost::asio;

Status BatchWriter::Add(std::string key, Row row, uint64_t line, size_t size_bytes) {
  // The later of two records with one key must win.
  if (batch_.keys.contains(key) || batch_.writes.size() >= kBatch ||
      batch_.size_bytes >= kBatchBytes) {
    TAMIS_RETURN_IF_ERROR(Flush());
  }
  NoteKey(key);
  batch_.size_bytes += size_bytes;
  batch_.keys.insert(std::move(key));
  batch_.lines.push_back(line);
  batch_.writes.push_back({.kind = Write::Kind::kPut, .row = std::move(row)});
  ++added_;
  return Status::Ok();
}

// Counts records that replace one of the same input.
void BatchWriter::NoteKey(const std::string& key) {
  const uint64_t hash = Hash(key, 0);
  if (keys_.contains(hash)) {
    ++replaced_;
  } else if (keys_.size() < kCountedKeys) {
    keys_.insert(hash);
  }
}

Status BatchWriter::Flush() {
  if (writing_.valid()) TAMIS_RETURN_IF_ERROR(writing_.get());
  if (batch_.writes.empty()) return Status::Ok();
  auto write = [this, batch = std::move(batch_)]() mutable { return Deliver(std::move(batch)); };
  writing_ = asio::post(thread_, asio::use_future(std::move(write)));
  batch_ = {};
  return Status::Ok();
}

Status BatchWriter::Deliver(Batch batch) {
  const std::vector<Status> results = engine_.Apply(schema_, std::move(batch.writes), cancelled_);
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].ok()) {
      ++written_;
      continue;
    }
    if (cancelled_ != nullptr && *cancelled_) return Interrupted();
    const Status status = results[i].WithContext("line " + std::to_string(batch.lines[i]));
    // A request that is wrong fails again.
    const bool again = status.code() != StatusCode::kInvalidArgument;
    return again ? Status(status.code(), status.message() + "; run the same command again to go on")
                 : status;
  }
  return Status::Ok();
}

Status BatchWriter::Finish() {
  Status status = Flush();
  if (writing_.valid()) {
    const Status last = writing_.get();
    if (status.ok()) status = last;
  }
  return status;
}

}  // namespace tamis
