#include "tamis/guard/filter_rebuild.h"

#include <cstdio>
#include <iterator>

namespace tamis {
namespace {

constexpr size_t kWords = 500;  // items of one command: the server serves others in between
constexpr size_t kBytes = 64 << 10;

}  // namespace

Result<FilterRebuild> FilterRebuild::Start(RedisConnection* connection, std::string key,
                                           const Options& options) {
  char rate[32];
  std::snprintf(rate, sizeof(rate), "%.17g", options.fpr);
  const std::string capacity = std::to_string(options.capacity);
  std::vector<std::string_view> words = {"TAMIS.REBUILD", key, "START", rate, capacity};
  if (!options.type.empty()) words.insert(words.end(), {"TYPE", options.type});
  TAMIS_ASSIGN_OR_RETURN(const RedisReply reply, connection->Ask(words));
  if (reply.is_error() && reply.text().find("under way") != std::string_view::npos) {
    return FailedPrecondition("cannot rebuild \"" + key +
                              "\": a rebuild is under way; when whoever began it is no more, "
                              "`tamis guard abort` ends it");
  }
  if (reply.is_error()) return connection->ErrorOf(reply);
  return FilterRebuild(connection, std::move(key), static_cast<uint64_t>(reply.integer()));
}

FilterRebuild::FilterRebuild(RedisConnection* connection, std::string key, uint64_t id)
    : connection_(connection), key_(std::move(key)), id_(id) {
  for (const std::string_view word :
       {std::string_view("TAMIS.REBUILD"), std::string_view(key_), std::string_view("ADD")}) {
    AppendWord(word, &prefix_);
  }
}

Status FilterRebuild::Add(std::string_view item) {
  AppendWord(item, &words_);
  ++word_count_;
  return word_count_ < kWords && words_.size() < kBytes ? Status::Ok() : SendWords();
}

Status FilterRebuild::SendWords() {
  if (word_count_ == 0) return Status::Ok();
  if (sent_ - answered_ == std::size(outstanding_)) TAMIS_RETURN_IF_ERROR(ReceiveOne());
  TAMIS_RETURN_IF_ERROR(
      connection_->Send("*" + std::to_string(word_count_ + 3) + "\r\n" + prefix_ + words_));
  outstanding_[sent_++ % std::size(outstanding_)] = word_count_;
  words_.clear();
  word_count_ = 0;
  return Status::Ok();
}

Status FilterRebuild::ReceiveOne() {
  TAMIS_ASSIGN_OR_RETURN(const RedisReply reply, connection_->Receive());
  const size_t items = outstanding_[answered_++ % std::size(outstanding_)];
  if (reply.is_error()) return connection_->ErrorOf(reply);
  if (static_cast<size_t>(reply.integer()) == items) return Status::Ok();
  return ResourceExhausted("cannot fill \"" + key_ +
                           "\": the new filter is full; say a greater --capacity");
}

Status FilterRebuild::Finish() {
  TAMIS_RETURN_IF_ERROR(SendWords());
  while (answered_ < sent_) TAMIS_RETURN_IF_ERROR(ReceiveOne());
  return Status::Ok();
}

Status FilterRebuild::Commit(const std::string& mark) {
  const std::string id = std::to_string(id_);
  auto reply = mark.empty()
                   ? connection_->Demand({"TAMIS.REBUILD", key_, "COMMIT", "ID", id})
                   : connection_->Demand({"TAMIS.REBUILD", key_, "COMMIT", "ID", id, "MARK", mark});
  if (reply.status().code() == StatusCode::kUnavailable) {
    return reply.status().WithContext("it is not known whether the new filter of \"" + key_ +
                                      "\" is in its place (`tamis guard status` tells; what was "
                                      "lost only costs lookups)");
  }
  return reply.status();
}

Status FilterRebuild::Abort() {
  const auto abort = [&](RedisConnection* connection) {
    while (connection == connection_ && answered_ < sent_) {
      TAMIS_ASSIGN_OR_RETURN(const RedisReply reply, connection->Receive());
      ++answered_;
    }
    return connection->Demand({"TAMIS.REBUILD", key_, "ABORT", "ID", std::to_string(id_)}).status();
  };
  Status status = abort(connection_);
  if (status.code() != StatusCode::kUnavailable) return status;
  auto other = RedisConnection::Open(connection_->address(), 5000);
  if (!other.ok()) return other.status();
  return abort(&*other);
}

}  // namespace tamis
