#include "tests/lsm/oracle_config.h"

#include <iterator>
#include <utility>

namespace tamis::lsm {
namespace {

using Kind = OracleConfig::Kind;
using Style = OracleConfig::Style;
using Writes = OracleConfig::Writes;

// Seeds from here on: transactions, with blobs whose garbage is collected, and many families.
constexpr uint64_t kFirstOfTransactions = 1000;

OracleConfig TransactionsOf(uint64_t seed) {
  static constexpr std::pair<Kind, bool> kShapes[] = {
      // RocksDB wraps with this policy alone: it can open no other database for the two others.
      {Kind::kCommitted, true},   {Kind::kCommitted, false},  {Kind::kPrepared, false},
      {Kind::kUnprepared, false}, {Kind::kOptimistic, false}, {Kind::kPlain, false},
  };
  const auto& [kind, wraps_filter] = kShapes[seed % std::size(kShapes)];
  const uint64_t turn = seed / std::size(kShapes);
  auto writes = static_cast<Writes>(turn % 5);
  // Only with the policy "prepared" do snapshots stay as they are with unordered writes.
  if (writes == Writes::kUnordered && kind != Kind::kPrepared) writes = Writes::kGrouped;
  // With pipelined writes RocksDB forgets in which log a transaction was prepared.
  const bool prepares = kind != Kind::kPlain && kind != Kind::kOptimistic;
  if (writes == Writes::kPipelined && prepares) writes = Writes::kGrouped;
  return {.seed = seed,
          .kind = kind,
          .wraps_filter = wraps_filter,
          .style = turn % 7 == 6 ? Style::kUniversal : Style::kLevel,
          .writes = writes,
          .flushes_together = writes != Writes::kPipelined && turn / 2 % 3 == 2,
          .hints = kind != Kind::kPlain && turn % 3 != 2,
          .blobs = turn % 4 != 3,
          .has_model = true,
          .families = turn % 2 == 1 ? 20 : 3,
          .loses_files = turn % 3 == 1};
}

}  // namespace

OracleConfig ConfigOf(uint64_t seed) {
  if (seed >= kFirstOfTransactions) return TransactionsOf(seed);
  static constexpr std::pair<Kind, Style> kShapes[] = {
      {Kind::kPlain, Style::kLevel},      {Kind::kPlain, Style::kUniversal},
      {Kind::kCommitted, Style::kLevel},  {Kind::kPlain, Style::kRemote},
      {Kind::kPrepared, Style::kLevel},   {Kind::kPlain, Style::kFifo},
      {Kind::kUnprepared, Style::kLevel}, {Kind::kPlain, Style::kLevel},
  };
  const auto& [kind, style] = kShapes[seed % std::size(kShapes)];
  const uint64_t turn = seed / std::size(kShapes);
  const bool is_plain = kind == Kind::kPlain && style != Style::kRemote;
  return {.seed = seed,
          .kind = kind,
          .style = style,
          .logs = kind == Kind::kPrepared || kind == Kind::kUnprepared || (seed + turn) % 3 != 0,
          .blobs = is_plain && (seed + turn) % 4 == 1,
          .disk_fails = is_plain && seed % std::size(kShapes) == 7,
          .loses_files = (seed + turn) % 2 == 1};
}

std::string OracleConfig::Text() const {
  static constexpr const char* kKinds[] = {"DB", "TransactionDB (committed)",
                                           "TransactionDB (prepared)", "TransactionDB (unprepared)",
                                           "OptimisticTransactionDB"};
  static constexpr const char* kStyles[] = {"level", "universal", "fifo", "remote"};
  static constexpr const char* kWrites[] = {"", ", one writer at a time", ", pipelined writes",
                                            ", two write queues", ", unordered writes"};
  return "seed " + std::to_string(seed) + ": " + kKinds[static_cast<int>(kind)] + ", " +
         kStyles[static_cast<int>(style)] + (wraps_filter ? ", over FilteredDB" : "") +
         kWrites[static_cast<int>(writes)] + (flushes_together ? ", atomic flushes" : "") +
         (logs ? "" : ", no log") + (hints ? ", hints" : "") + (blobs ? ", blobs" : "") +
         (families > 3 ? ", many families" : "") + (disk_fails ? ", failing disk" : "") +
         (loses_files ? ", key files get lost" : "") + (fault.empty() ? "" : ", fault " + fault);
}

}  // namespace tamis::lsm
