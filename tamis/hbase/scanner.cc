#include "tamis/hbase/scanner.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "tamis/hbase/messages.h"
#include "tamis/hbase/printable.h"
#include "tamis/hbase/refusals.h"
#include "tamis/hbase/region_call.h"
#include "tamis/hbase/session.h"

namespace tamis::hbase {
namespace {

// The size of a cell with empty parts.
constexpr size_t kLeastCellBytes = 24;

}  // namespace

Scanner::Scanner(Session& session, std::string table, Scan scan)
    : session_(session),
      table_(NormalTableName(table)),
      scan_(std::move(scan)),
      rows_left_(scan_.limit != 0 ? scan_.limit : std::numeric_limits<uint64_t>::max()) {}

Scanner::~Scanner() { Close(); }

Task<Result<RegionPtr>> Scanner::Locate(Deadline deadline) {
  const bool before = scan_.reversed && (scan_.start_row.empty() || !scan_.include_start);
  return before ? session_.locator.Before(table_, scan_.start_row, deadline)
                : session_.locator.Holding(table_, scan_.start_row, deadline);
}

Call Scanner::MakeCall(Deadline deadline) const {
  auto request = std::make_shared<pb::ScanRequest>();
  if (open_) {
    request->set_scanner_id(scanner_id_);
    request->set_next_call_seq(next_call_);
  } else {
    ToProto(*region_, request->mutable_region());
    ToProto(scan_, request->mutable_scan());
  }
  const auto rows =
      static_cast<uint32_t>(std::min<uint64_t>(std::max(1u, scan_.rows_per_call), rows_left_));
  request->set_number_of_rows(rows);
  request->set_client_handles_partials(true);
  // Without heartbeats, a server that runs out of time discards the rows it has read.
  request->set_client_handles_heartbeats(true);
  if (rows_left_ <= std::numeric_limits<uint32_t>::max()) {
    request->set_limit_of_rows(static_cast<uint32_t>(rows_left_));
  }
  return {.method = "Scan",
          .parameter = std::move(request),
          .cells = {},
          .deadline = session_.CallDeadline(deadline)};
}

Task<Result<std::vector<Row>>> Scanner::Next(Deadline deadline) {
  std::vector<Row> rows;
  Refusals refusals;
  Status last = Unavailable("no time left");
  bool called = false;
  while (!done_) {
    if (session_.closed()) co_return Cancelled("the client was closed");
    if (Clock::now() >= deadline) {
      co_return last.WithContext("Scan of table " + Printable(table_) + " at row " +
                                 Printable(scan_.start_row));
    }
    if (!open_) {
      auto found = co_await Locate(deadline);
      if (!found.ok()) co_return called ? After(found.status(), last) : found.status();
      region_ = *found;
    }
    const RegionPtr target = region_;
    called = true;
    Reply reply = co_await session_.Send(
        session_.channels.To(target->server.address, "ClientService"), MakeCall(deadline));
    if (reply.outcome == Reply::Outcome::kAnswer) {
      const Status taken = Take(reply, &rows);
      if (!taken.ok()) {
        Reopen();
        // Return the rows before the fault first; the next call meets the fault again.
        if (!rows.empty()) co_return rows;
        co_return taken.WithContext("Scan of table " + Printable(table_));
      }
      backoff_.Reset();
      unknown_ = 0;
      if (!rows.empty()) co_return rows;
      continue;
    }
    last = reply.ToStatus().WithContext(target->server.address.ToString());
    if (reply.outcome != Reply::Outcome::kException) {
      if (last.code() == StatusCode::kInvalidArgument) co_return last;
      if (last.code() == StatusCode::kResourceExhausted) {
        Reopen();
        co_return last.WithContext("Scan of table " + Printable(table_));
      }
      if (last.code() == StatusCode::kBusy) {
        // kBusy comes from the client's own queue for this server, not from the server.
        co_await session_.SleepUntil(
            std::min(deadline, Clock::now() + backoff_.Next(session_.random)));
        continue;
      }
      if (refusals.IsFinal(target->server, last)) {
        co_return last.WithContext("Scan of table " + Printable(table_));
      }
      session_.locator.Suspect(target);
      Reopen();
      continue;
    }
    switch (reply.exception.retry_action()) {
      case RetryAction::kRelocate:
        session_.locator.Refused(target, reply.exception);
        Reopen();
        continue;
      case RetryAction::kReopenScanner:
        Reopen();
        // Reopen once without a pause; further failures wait.
        if (backoff_.tries() == 0) {
          backoff_.Next(session_.random);
          continue;
        }
        break;
      case RetryAction::kElsewhere:
        session_.locator.Suspect(target);
        Reopen();
        break;
      case RetryAction::kUnknown:
        Reopen();
        if (++unknown_ == kTriesOfUnknown) {
          unknown_ = 0;
          co_return last.WithContext("Scan of table " + Printable(table_));
        }
        break;
      case RetryAction::kBackOff:
        break;  // the server did not advance the scanner's call number
      case RetryAction::kFail:
        Reopen();
        co_return last.WithContext("Scan of table " + Printable(table_));
    }
    co_await session_.SleepUntil(std::min(deadline, Clock::now() + backoff_.Next(session_.random)));
  }
  co_return rows;
}

Status Scanner::Take(const Reply& reply, std::vector<Row>* rows) {
  pb::ScanResponse answer;
  if (!answer.ParseFromArray(reply.message.data(), static_cast<int>(reply.message.size()))) {
    return DataLoss("an answer that cannot be read");
  }
  if (open_) {
    ++next_call_;
  } else {
    open_ = true;
    scanner_id_ = answer.scanner_id();
    next_call_ = 0;
  }
  const bool in_block = answer.cells_per_result_size() > 0;
  const int count = in_block ? answer.cells_per_result_size() : answer.results_size();
  std::string_view cells = reply.cells;
  // Reserve no more rows than the received bytes can hold, whatever count the server announces.
  rows->reserve(std::min(static_cast<size_t>(count), cells.size() / kLeastCellBytes));
  for (int i = 0; i < count; ++i) {
    auto row = in_block ? TakeRow(answer.cells_per_result(i), &cells, reply.frame)
                        : TakeRow(answer.results(i), &cells, reply.frame);
    if (!row.ok()) return row.status();
    const bool partial = i < answer.partial_flag_per_result_size()
                             ? answer.partial_flag_per_result(i)
                             : !in_block && answer.results(i).partial();
    if (row->empty()) continue;
    if (!parts_.empty() && parts_.front().key() != row->key()) {
      FinishParts(rows);
      if (rows_left_ == 0) break;
    }
    if (partial || !parts_.empty()) {
      parts_bytes_ += row->size_bytes();
      if (parts_bytes_ > scan_.max_row_bytes) {
        return ResourceExhausted("row " + Printable(row->key()) + " has more than " +
                                 std::to_string(scan_.max_row_bytes) + " bytes");
      }
      parts_.push_back(*std::move(row));
      if (!partial) FinishParts(rows);
    } else {
      Finish(*std::move(row), rows);
    }
    if (rows_left_ == 0) break;
  }
  if (rows_left_ == 0) {
    // the server has closed the scanner
    if (answer.has_more_results() && !answer.more_results()) open_ = false;
    Close();
    done_ = true;
  } else if (answer.has_more_results() && !answer.more_results()) {
    FinishParts(rows);
    open_ = false;
    done_ = true;
  } else if (answer.has_more_results_in_region() && !answer.more_results_in_region()) {
    FinishParts(rows);
    LeaveRegion();
  }
  return {};
}

void Scanner::Finish(Row row, std::vector<Row>* rows) {
  scan_.start_row = row.key();
  scan_.include_start = false;
  --rows_left_;
  rows->push_back(std::move(row));
}

void Scanner::FinishParts(std::vector<Row>* rows) {
  if (parts_.empty() || rows_left_ == 0) return;
  Finish(parts_.size() == 1 ? parts_.front() : JoinParts(parts_), rows);
  parts_.clear();
  parts_bytes_ = 0;
}

void Scanner::LeaveRegion() {
  open_ = false;  // the server has closed the scanner
  const std::string& stop = scan_.stop_row;
  if (scan_.reversed) {
    const std::string& border = region_->start;
    done_ = border.empty() || (!stop.empty() && border <= stop);
    scan_.start_row = border;
    scan_.include_start = false;
  } else {
    const std::string& border = region_->end;
    done_ = border.empty() ||
            (!stop.empty() && (border > stop || (border == stop && !scan_.include_stop)));
    scan_.start_row = border;
    scan_.include_start = true;
  }
}

void Scanner::Reopen() {
  if (open_) ++reopened_;
  open_ = false;
  parts_.clear();  // the new scanner reads them again
  parts_bytes_ = 0;
}

void Scanner::Close() {
  if (!open_ || session_.closed()) return;
  open_ = false;
  done_ = true;
  auto request = std::make_shared<pb::ScanRequest>();
  request->set_scanner_id(scanner_id_);
  request->set_close_scanner(true);
  request->set_number_of_rows(0);
  Call call{.method = "Scan",
            .parameter = std::move(request),
            .cells = {},
            .deadline = session_.CallDeadline(Deadline::max())};
  session_.channels.To(region_->server.address, "ClientService").Send(std::move(call), [](Reply) {
  });
}

}  // namespace tamis::hbase
