#include "tamis/guard/filter_follower.h"

#include <chrono>
#include <thread>

namespace tamis {
namespace {

constexpr size_t kWords = 500;  // items of one command

constexpr auto kPause = std::chrono::milliseconds(200);  // before a server is tried again

}  // namespace

// Reads mark and generation by one command, so that they belong together.
Status FilterFollower::ReadPlace(std::string* mark) {
  auto info = connection_->Demand({"TAMIS.INFO", key_});
  if (!info.ok()) return info.status();
  generation_.clear();
  bool has_guard = true;
  bool has_window = false;
  for (size_t i = 0; i + 1 < info->size(); i += 2) {
    if (info->text(i) == "Mark") *mark = info->text(i + 1);
    if (info->text(i) == "Generation") generation_ = std::to_string(info->integer(i + 1));
    if (info->text(i) == "Guard") has_guard = info->integer(i + 1) != 0;
    if (info->text(i) == "Window") has_window = info->integer(i + 1) != 0;
  }
  if (has_window) {
    return FailedPrecondition("cannot follow the filter \"" + key_ +
                              "\": it was made with WINDOW, so a row whose change is to be erased "
                              "may have left it; make another one without, by `tamis guard load`");
  }
  if (!has_guard) {
    return FailedPrecondition("cannot follow the filter \"" + key_ +
                              "\": it was made without GUARD, so it refuses rows whose adds were "
                              "lost in a restart; UNLINK it, then load one");
  }
  if (generation_.empty()) {
    return Internal("cannot follow the filter \"" + key_ +
                    "\": TAMIS.INFO has no field Generation; load the module of this version");
  }
  return Status::Ok();
}

Status FilterFollower::Connect() {
  TAMIS_ASSIGN_OR_RETURN(RedisConnection opened, RedisConnection::Open(address_, timeout_ms_));
  connection_.emplace(std::move(opened));
  ++counters_.connections;
  return Status::Ok();
}

Status FilterFollower::Begin(const std::string& after) {
  TAMIS_RETURN_IF_ERROR(Connect());
  TAMIS_RETURN_IF_ERROR(ReadPlace(&mark_));
  if (mark_ == after) return Status::Ok();
  return FailedPrecondition("cannot follow from \"" + after + "\": the filter \"" + key_ +
                            "\" is at \"" + mark_ + "\"; the feed begins behind that");
}

Result<FilterFollower::Outcome> FilterFollower::Try(const FeedChanges& changes, bool with_adds) {
  std::string bytes;
  size_t commands = 0;
  const auto append = [&](std::initializer_list<std::string_view> words) {
    AppendCommand(words, &bytes);
    ++commands;
  };
  const auto append_items = [&](std::vector<std::string_view> words,
                                const std::vector<std::string>& items) {
    const size_t before = words.size();
    for (const std::string& item : items) {
      words.push_back(item);
      if (words.size() < kWords && &item != &items.back()) continue;
      AppendCommand(words, &bytes);
      ++commands;
      words.resize(before);
    }
  };
  append({"MULTI"});
  // Adds come first: an item that was added and erased in one transaction is there to be erased.
  if (with_adds) append_items({"TAMIS.ADD", key_}, changes.added);
  const size_t first_erase = commands - 1;
  append_items({"TAMIS.DELIF", key_, generation_}, changes.erased);
  append({"TAMIS.MARK", key_, changes.mark, generation_});
  append({"EXEC"});

  if (!connection_->Send(bytes).ok()) return Outcome::kUnknown;
  Status queued = Status::Ok();
  for (size_t i = 0; i + 1 < commands; ++i) {
    auto reply = connection_->Receive();
    if (!reply.ok()) return Outcome::kUnknown;
    if (reply->is_error() && queued.ok()) queued = connection_->ErrorOf(*reply);
  }
  auto all = connection_->Receive();
  if (!all.ok()) return Outcome::kUnknown;
  TAMIS_RETURN_IF_ERROR(queued);  // nothing was carried out
  if (all->is_error()) return connection_->ErrorOf(*all);

  bool full = false;
  for (size_t i = 0; i + 1 < all->size(); ++i) {
    const bool adds = i < first_erase;
    if (all->is_error(i)) {
      // The key is gone, or another value is under it. Its mark is then another one as well, so
      // nothing of this batch matters.
      return FailedPrecondition("cannot change the filter \"" + key_ +
                                "\": " + std::string(all->text(i)));
    }
    for (size_t j = 0; j < all->size_of(i); ++j) {
      const long long done = all->integer(i, j);
      if (adds) {
        full |= done < 0;
        ++counters_.added;
      } else {
        ++(done > 0 ? counters_.erased : counters_.not_erased);
      }
    }
  }
  if (full) return GiveUpFilter();
  const size_t last = all->size() - 1;
  if (!all->is_error(last)) return Outcome::kDone;
  if (all->text(last).starts_with("NOGENERATION")) return Outcome::kOtherGeneration;
  return FailedPrecondition("cannot note the mark of \"" + key_ +
                            "\": " + std::string(all->text(last)));
}

// The table has a row that the full filter would deny. Removes the filter, so that no lookup is
// denied.
Status FilterFollower::GiveUpFilter() {
  const auto removed = connection_->Demand({"UNLINK", key_});
  return ResourceExhausted(
      "the filter \"" + key_ + "\" is full: " +
      (removed.ok() ? "it was removed, so that no row is refused"
                    : "and it could not be removed (" + removed.status().message() + ")") +
      "; load one of a greater --capacity");
}

Result<bool> FilterFollower::Settled(const FeedChanges& changes) {
  std::string told;
  while (true) {
    std::string mark;
    Status status = Connect();
    if (status.ok()) status = ReadPlace(&mark);
    if (status.ok()) {
      if (mark == changes.mark) return true;
      if (mark == mark_) return false;
      return FailedPrecondition("cannot go on from \"" + mark_ + "\": the filter \"" + key_ +
                                "\" is at \"" + mark +
                                "\" now; begin again with the feed behind that");
    }
    const bool again =
        status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kBusy;
    if (!again) return status;
    if (status.message() != told) say_(status.message() + "; trying again");
    told = status.message();
    if (cancelled_->load()) return Cancelled("stopped");
    std::this_thread::sleep_for(kPause);
  }
}

Status FilterFollower::Apply(const FeedChanges& changes) {
  bool with_adds = true;
  while (!changes.mark.empty()) {
    TAMIS_ASSIGN_OR_RETURN(const Outcome outcome, Try(changes, with_adds));
    if (outcome == Outcome::kDone) break;
    if (outcome == Outcome::kUnknown) {
      TAMIS_ASSIGN_OR_RETURN(const bool done, Settled(changes));
      if (done) break;
      continue;
    }
    // The adds were done, in the filter that is there now, and are not repeated.
    with_adds = false;
    TAMIS_RETURN_IF_ERROR(StillHere());
  }
  if (!changes.mark.empty()) mark_ = changes.mark;
  ++counters_.batches;
  if (!changes.caught_up) return Status::Ok();
  // The filter now has all rows that were committed before the feed began, and all later ones up to
  // here.
  auto trusted = connection_->Demand({"TAMIS.TRUST", key_});
  if (!trusted.ok()) return trusted.status().WithContext("cannot trust \"" + key_ + "\"");
  return StillHere();
}

// Reads the generation again. A filter that was rebuilt meanwhile is further than the feed is.
Status FilterFollower::StillHere() {
  std::string mark;
  TAMIS_RETURN_IF_ERROR(ReadPlace(&mark));
  if (mark == mark_) return Status::Ok();
  return FailedPrecondition("cannot go on from \"" + mark_ + "\": the filter \"" + key_ +
                            "\" was rebuilt and is at \"" + mark +
                            "\"; begin again with the feed behind that");
}

}  // namespace tamis
