#include "tamis/lsm/ingestion.h"

#include <new>
#include <string_view>
#include <utility>

#include "tamis/lsm/hook_state.h"
#include "tamis/lsm/sst_keys.h"

namespace tamis::lsm {

Ingestion::Ingestion(HookState* hooks, rocksdb::Env* env, uint32_t family,
                     const std::vector<std::string>& files)
    : hooks_(hooks), family_(family) {
  try {
    for (const std::string& path : files) Count(env, path);
  } catch (const std::bad_alloc&) {
    End();
    throw;
  }
}

Ingestion::~Ingestion() { End(); }

void Ingestion::Count(rocksdb::Env* env, const std::string& path) {
  TreeFilter& tree = hooks_->tree();
  std::vector<uint64_t> hashes;
  const auto read = ReadSst(
      env, path, [&](std::string_view key) { hashes.push_back(tree.HashOf(family_, key)); });
  // RocksDB says better what is wrong with it; should it take it, it is counted afterwards.
  if (!read.ok()) {
    if (!is_partial_) hooks_->uncounted().ArrivalBegan(family_);
    is_partial_ = true;
    return;
  }
  const TreeFilter::Ticket ticket =
      tree.IngestionBegan({.family = family_, .identity = *read}, std::move(hashes));
  try {
    tickets_[ticket] = path;
  } catch (const std::bad_alloc&) {
    tree.IngestionEnded(ticket);
    throw;
  }
  hooks_->Expect({.family = family_, .external_path = path, .identity = *read, .ticket = ticket});
}

void Ingestion::End() noexcept {
  for (const auto& [ticket, path] : tickets_) {
    hooks_->ExpectNoMore(family_, path, ticket);
    hooks_->tree().IngestionEnded(ticket);
  }
  if (is_partial_) hooks_->ArrivalEnded(family_);
}

}  // namespace tamis::lsm
