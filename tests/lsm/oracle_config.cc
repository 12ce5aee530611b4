#include "tests/lsm/oracle_config.h"

#include <iterator>
#include <utility>

namespace tamis::lsm {
namespace {

using Kind = OracleConfig::Kind;
using Style = OracleConfig::Style;

// Seeds from here on: transactions, with blobs whose garbage is collected, and many families.
constexpr uint64_t kFirstOfTransactions = 1000;

OracleConfig TransactionsOf(uint64_t seed) {
  static constexpr Kind kKinds[] = {Kind::kWrapped, Kind::kCommitted, Kind::kPrepared,
                                    Kind::kUnprepared, Kind::kOptimistic};
  const uint64_t turn = seed / std::size(kKinds);
  return {.seed = seed,
          .kind = kKinds[seed % std::size(kKinds)],
          .blobs = turn % 4 != 3,
          .has_model = true,
          .families = turn % 2 == 0 ? 20 : 3,
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
  static constexpr const char* kKinds[] = {"DB",
                                           "TransactionDB (committed)",
                                           "TransactionDB (prepared)",
                                           "TransactionDB (unprepared)",
                                           "OptimisticTransactionDB",
                                           "TransactionDB (committed, over FilteredDB)"};
  static constexpr const char* kStyles[] = {"level", "universal", "fifo", "remote"};
  return "seed " + std::to_string(seed) + ": " + kKinds[static_cast<int>(kind)] + ", " +
         kStyles[static_cast<int>(style)] + (logs ? "" : ", no log") + (blobs ? ", blobs" : "") +
         (families > 3 ? ", many families" : "") + (disk_fails ? ", failing disk" : "") +
         (loses_files ? ", key files get lost" : "") + (fault.empty() ? "" : ", fault " + fault);
}

}  // namespace tamis::lsm
