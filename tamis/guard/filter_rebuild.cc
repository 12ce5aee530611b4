#include "tamis/guard/filter_rebuild.h"

#include <cstdio>
#include <iterator>

namespace tamis {
namespace {

constexpr size_t kRebuildWords = 500;  // items of one command: the server serves others in between
constexpr size_t kBytes = 64 << 10;
constexpr std::chrono::seconds kRenewal{5};

// It was ended by another program, or the server no longer has it.
bool IsGone(const RedisReply& reply) {
  const std::string_view text = reply.text();
  return reply.is_error() && (text == "ERR another rebuild is under way" ||
                              text == "ERR no rebuild is under way" || text == "ERR not found");
}

}  // namespace

Result<std::optional<FilterRebuild::UnderWay>> FilterRebuild::Look(RedisConnection* connection,
                                                                   const std::string& key) {
  TAMIS_ASSIGN_OR_RETURN(const RedisReply info, connection->Ask({"TAMIS.INFO", key}));
  if (info.is_error() && info.text() == "ERR not found") return std::optional<UnderWay>();
  if (info.is_error()) return connection->ErrorOf(info);
  UnderWay found;
  bool is_there = false;
  for (size_t i = 0; i + 1 < info.size(); i += 2) {
    if (info.text(i) == "Rebuild") {
      is_there = info.text(i + 1) != "none";
      found.may_commit = info.text(i + 1) == "under way";
    }
    if (info.text(i) == "Rebuild id") found.id = static_cast<uint64_t>(info.integer(i + 1));
    if (info.text(i) == "Rebuild lease") {
      found.lease_s = static_cast<uint64_t>(info.integer(i + 1));
    }
  }
  return is_there ? std::optional(found) : std::nullopt;
}

Status FilterRebuild::End(RedisConnection* connection, const std::string& key, uint64_t id) {
  TAMIS_ASSIGN_OR_RETURN(const RedisReply reply, connection->Ask({"TAMIS.REBUILD", key, "ABORT",
                                                                  "ID", std::to_string(id)}));
  return !reply.is_error() || IsGone(reply) ? Status::Ok() : connection->ErrorOf(reply);
}

Result<FilterRebuild> FilterRebuild::Start(RedisConnection* connection, std::string key,
                                           const Options& options) {
  char rate[32];
  std::snprintf(rate, sizeof(rate), "%.17g", options.fpr);
  const std::string capacity = std::to_string(options.capacity);
  const std::string lease = std::to_string(kLease);
  std::vector<std::string_view> words = {"TAMIS.REBUILD", key,     "START", rate,
                                         capacity,        "LEASE", lease};
  if (!options.type.empty()) words.insert(words.end(), {"TYPE", options.type});
  TAMIS_ASSIGN_OR_RETURN(const RedisReply reply, connection->Ask(words));
  if (reply.is_error() && reply.text().find("under way") != std::string_view::npos) {
    return FailedPrecondition("cannot rebuild \"" + key +
                              "\": another program began a rebuild at the same moment");
  }
  if (reply.is_error()) return connection->ErrorOf(reply);
  FilterRebuild rebuild(connection, std::move(key), static_cast<uint64_t>(reply.integer()));
  rebuild.kept_at_ = std::chrono::steady_clock::now();
  return rebuild;
}

FilterRebuild::FilterRebuild(RedisConnection* connection, std::string key, uint64_t id)
    : connection_(connection), key_(std::move(key)), id_(id) {
  const std::string id_word = std::to_string(id_);
  for (const std::string_view word : {std::string_view("TAMIS.REBUILD"), std::string_view(key_),
                                      std::string_view("ADDIF"), std::string_view(id_word)}) {
    AppendWord(word, &prefix_);
  }
}

Status FilterRebuild::Add(std::string_view item) {
  AppendWord(item, &words_);
  ++word_count_;
  return word_count_ < kRebuildWords && words_.size() < kBytes ? Status::Ok() : SendWords();
}

Status FilterRebuild::SendWords() {
  if (word_count_ == 0) return Status::Ok();
  if (sent_ - answered_ == std::size(outstanding_)) TAMIS_RETURN_IF_ERROR(ReceiveOne());
  TAMIS_RETURN_IF_ERROR(
      connection_->Send("*" + std::to_string(word_count_ + 4) + "\r\n" + prefix_ + words_));
  outstanding_[sent_++ % std::size(outstanding_)] = word_count_;
  words_.clear();
  word_count_ = 0;
  return Status::Ok();
}

Status FilterRebuild::ReceiveOne() {
  TAMIS_ASSIGN_OR_RETURN(const RedisReply reply, connection_->Receive());
  const size_t items = outstanding_[answered_++ % std::size(outstanding_)];
  if (reply.is_error()) return ErrorOf(reply);
  if (static_cast<size_t>(reply.integer()) == items) return Status::Ok();
  return ResourceExhausted("cannot fill \"" + key_ +
                           "\": the new filter is full; say a greater --capacity");
}

Status FilterRebuild::ErrorOf(const RedisReply& reply) const {
  if (!IsGone(reply)) return connection_->ErrorOf(reply);
  return FailedPrecondition("rebuild " + std::to_string(id_) + " of \"" + key_ +
                            "\" is no more: another load has begun, `tamis guard abort` ended it, "
                            "or the key was deleted or replaced");
}

Status FilterRebuild::Keep() {
  if (std::chrono::steady_clock::now() - kept_at_ < kRenewal) return Status::Ok();
  return KeepFor(kLease);
}

Status FilterRebuild::KeepFor(uint64_t seconds) {
  TAMIS_RETURN_IF_ERROR(Finish());
  TAMIS_ASSIGN_OR_RETURN(const RedisReply reply,
                         connection_->Ask({"TAMIS.REBUILD", key_, "KEEP", std::to_string(id_),
                                           std::to_string(seconds)}));
  if (reply.is_error()) return ErrorOf(reply);
  kept_at_ = std::chrono::steady_clock::now();
  return Status::Ok();
}

Status FilterRebuild::Finish() {
  TAMIS_RETURN_IF_ERROR(SendWords());
  while (answered_ < sent_) TAMIS_RETURN_IF_ERROR(ReceiveOne());
  return Status::Ok();
}

Result<size_t> FilterRebuild::CountMissing(std::span<const std::string> items,
                                           std::vector<std::string>* examples) {
  constexpr size_t kExamples = 3;
  TAMIS_RETURN_IF_ERROR(Finish());
  const std::string id = std::to_string(id_);
  std::vector<std::string_view> words = {"TAMIS.REBUILD", key_, "CHECK", id};
  words.insert(words.end(), items.begin(), items.end());
  TAMIS_ASSIGN_OR_RETURN(const RedisReply reply, connection_->Ask(words));
  if (reply.is_error()) return ErrorOf(reply);
  if (reply.size() != items.size()) {
    return Internal("cannot check the new filter of \"" + key_ + "\": the server gave " +
                    std::to_string(reply.size()) + " answers for " + std::to_string(items.size()) +
                    " keys");
  }
  size_t missing = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (reply.integer(i) != 0) continue;
    ++missing;
    if (examples->size() < kExamples) examples->push_back(items[i]);
  }
  return missing;
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
    return End(connection, key_, id_);
  };
  Status status = abort(connection_);
  if (status.code() != StatusCode::kUnavailable) return status;
  auto other = RedisConnection::Open(connection_->address(), 5000);
  if (!other.ok()) return other.status();
  return abort(&*other);
}

}  // namespace tamis
