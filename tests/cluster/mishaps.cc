#include "tests/cluster/mishaps.h"

#include "tamis/table/codec.h"

namespace tamis {

using std::chrono::milliseconds;

bool Mishaps::MaySleep(const std::string& server) const {
  return sim_.asleep() < 2 && !sim_.IsAsleep(server);
}

DoneCallback Mishaps::Counted(const char* what) {
  return [this, what](const Status& status) {
    if (status.ok()) ++counts_[what];
  };
}

void Mishaps::After(Duration delay, std::function<void()> task) {
  sim_.executor().PostAfter(delay, [this, task = std::move(task), generation = generation_] {
    if (generation == generation_) task();
  });
}

void Mishaps::Happen() {
  RocksCluster& cluster = sim_.cluster();
  const auto regions = cluster.catalog().Regions(table_->id);
  const auto& region = regions[random_.Uniform(regions.size())];
  const std::string server = sim_.RandomServer();
  const Time now = sim_.executor().Now();
  const uint64_t dice = random_.Uniform(116);
  if (dice < 14) {
    if (regions.size() < options_.most_regions) Split(region);
  } else if (dice < 24) {
    if (regions.size() > 2) cluster.MergeRegion(RegionId(region.id()), Counted("merges"));
  } else if (dice < 46) {
    cluster.MoveRegion(RegionId(region.id()), server, Counted("moves"));
  } else if (dice < 51) {
    if (!MaySleep(server)) return;
    sim_.Kill(server);
    ++counts_["server kills"];
    sim_.WakeLater(server, milliseconds(20) + Milliseconds(600));
  } else if (dice < 58) {
    // Sometimes within the session, sometimes beyond it.
    if (!MaySleep(server)) return;
    sim_.Pause(server);
    ++counts_["server pauses"];
    sim_.WakeLater(server, milliseconds(20) + Milliseconds(600));
  } else if (dice < 62) {
    // A zombie: the others think it dead, it answers, and the others cannot be heard.
    const Time until = now + milliseconds(300) + Milliseconds(600);
    sim_.CutHeartbeats(server, until);
    for (int i = 1; i <= SimCluster::kServers && random_.OneIn(2); ++i) {
      const std::string other = "rs" + std::to_string(i);
      if (other != server) sim_.network().CutPolls(other, until);
    }
    ++counts_["heartbeat links cut"];
  } else if (dice < 74) {
    sim_.network().CutPolls(server, now + Milliseconds(400));
    ++counts_["poll links cut"];
  } else if (dice < 79) {
    sim_.executor().Jump(Milliseconds(150));
    ++counts_["clock jumps"];
  } else if (dice < 83) {
    sim_.Compact();
    ++counts_["compactions"];
  } else if (dice < 90) {
    ToggleIndex();
  } else if (dice < 94) {
    cluster.RebuildIndex("t", "", Counted("index rebuilds"));
    const int64_t key = rows_.RandomKey();
    After(Milliseconds(20), [this, key] { start_burst_(key, WriteBurst::Kind::kNewName); });
  } else if (dice < 97) {
    // Expelled although it lives; it may hear of that late.
    if (random_.OneIn(2)) sim_.CutHeartbeats(server, now + Milliseconds(600));
    sim_.Expel(server);
    ++counts_["expulsions"];
  } else if (dice < 98) {
    if (random_.OneIn(4)) AddColumn();
  } else if (dice < 99) {
    cluster.Balance([this](const Result<uint64_t>& moved) {
      if (moved.ok() && *moved > 0) ++counts_["balances"];
    });
  } else if (dice < 101) {
    DropDuringBackfill();
  } else if (dice < 102) {
    if (MaySleep(server)) DropWhileAsleep(server);
  } else {
    // The mishap concerns one row and its region.
    const int64_t key = rows_.RandomKey();
    const auto of_key = sim_.RegionOf(table_->id, EncodeKey(*table_, RandomRows::KeyRow(key)));
    if (!of_key.has_value() || !MaySleep(of_key->server())) return;
    if (dice < 105) {
      MoveSoonAfterReopening(*of_key, key);
    } else if (dice < 107) {
      WakeBesideSuccessor(*of_key, key);
    } else if (dice < 109) {
      MoveTwiceDuringBackfill(*of_key);
    } else if (dice < 113) {
      WritesAcrossMove(*of_key, key);
    } else {
      RepliesLostAsLeasesShrink(*of_key, key);
    }
  }
}

void Mishaps::Split(const pb::RegionRecord& region) {
  const int64_t key = rows_.RandomKey();
  const std::string at = random_.OneIn(3) ? "" : EncodeKey(*table_, RandomRows::KeyRow(key));
  sim_.cluster().SplitRegion(RegionId(region.id()), at, [this, key](const Status& status) {
    if (!status.ok()) return;
    ++counts_["splits"];
    start_burst_(key, WriteBurst::Kind::kNewName);
  });
}

// The index on (grp, number) comes and goes, and now and then that on name. Some coordinators hear
// of it late.
void Mishaps::ToggleIndex() {
  const auto schema = sim_.cluster().catalog().Table(table_->id);
  const IndexSpec index =
      RandomRows::WithCells(random_.OneIn(3) ? RandomRows::IndexOnName(options_.fpr)
                                             : RandomRows::IndexOnBoth(options_.fpr));
  const bool there = schema->FindIndex(index.name) != nullptr;
  const int64_t key = rows_.RandomKey();
  const auto done = [this, there, key](const Result<TableSchema>& changed) {
    if (!changed.ok()) return;
    ++counts_[there ? "index drops" : "index creations"];
    if (there) start_burst_(key, WriteBurst::Kind::kNewName);
  };
  if (there) {
    sim_.cluster().DropIndex("t", index.name, done);
  } else {
    sim_.cluster().CreateIndex("t", index, done);
  }
  for (size_t i = 0; i < SimCluster::kEngines; ++i) {
    if (random_.OneIn(2)) sim_.engine(i).ForgetTable("t");
  }
}

void Mishaps::AddColumn() {
  const auto schema = sim_.cluster().catalog().Table(table_->id);
  if (schema->columns.size() >= RandomRows::kMostColumns) return;
  sim_.cluster().AddColumn("t", RandomRows::AddedColumn(schema->columns.size()),
                           [this](const Result<TableSchema>& changed) {
                             if (changed.ok()) ++counts_["columns added"];
                           });
}

// ---- Sequences

void Mishaps::WhenReopened(const pb::RegionRecord& record, int tries,
                           std::function<void(const pb::RegionRecord&)> then) {
  const auto now = sim_.cluster().catalog().Region(record.id());
  if (!now.has_value() || tries == 0) return;
  if (now->start_code() != record.start_code() && sim_.OpenRegion(*now)) return then(*now);
  After(milliseconds(3),
        [this, record, tries, then = std::move(then)] { WhenReopened(record, tries - 1, then); });
}

// A server dies and is back at once. Coordinators still believe what the dead life reported, and
// hear nothing. Meanwhile the region, which may not acknowledge yet, changes hands again.
void Mishaps::MoveSoonAfterReopening(const pb::RegionRecord& region, int64_t key) {
  sim_.Kill(region.server());
  sim_.WakeLater(region.server(), Milliseconds(5));
  sim_.CutAllPolls(sim_.executor().Now() + milliseconds(160));
  WhenReopened(region, 60, [this, key](const pb::RegionRecord& opened) {
    const DoneCallback done = [this, key](const Status& status) {
      if (!status.ok()) return;
      ++counts_["moves within a lease of a reopening"];
      start_burst_(key, WriteBurst::Kind::kNewName);
    };
    if (random_.OneIn(2)) {
      sim_.cluster().MoveRegion(RegionId(opened.id()), sim_.RandomServer(), done);
    } else {
      const std::string at = EncodeKey(*table_, RandomRows::KeyRow(key));
      sim_.cluster().SplitRegion(RegionId(opened.id()), at, done);
    }
  });
}

// A server sleeps through its session, polls and an answered heartbeat queued, and goes on while
// its successor writes and cannot be heard.
void Mishaps::WakeBesideSuccessor(const pb::RegionRecord& region, int64_t key) {
  sim_.Pause(region.server());
  ++counts_["server pauses"];
  const Duration pause = SimCluster::kSession + milliseconds(80) + Milliseconds(300);
  const Time until = sim_.executor().Now() + pause + milliseconds(200);
  sim_.WakeLater(region.server(), pause);
  for (int i = 1; i <= SimCluster::kServers; ++i) {
    const std::string other = "rs" + std::to_string(i);
    if (other != region.server()) sim_.network().CutPolls(other, until);
  }
  After(pause + milliseconds(1), [this, key] {
    ++counts_["servers that woke beside their successor"];
    start_burst_(key, WriteBurst::Kind::kNewName);
  });
}

void Mishaps::DropDuringBackfill() {
  const auto schema = sim_.cluster().catalog().Table(table_->id);
  const IndexSpec index = RandomRows::IndexOnBoth(options_.fpr);
  if (schema->FindIndex(index.name) != nullptr) return;
  sim_.cluster().CreateIndex("t", index, [this](const Result<TableSchema>& changed) {
    if (changed.ok()) ++counts_["index creations"];
  });
  for (size_t i = 0; i < SimCluster::kEngines; ++i) sim_.engine(i).ForgetTable("t");
  After(Milliseconds(15), [this, name = index.name] {
    sim_.cluster().DropIndex("t", name, [this](const Result<TableSchema>& changed) {
      if (!changed.ok()) return;
      ++counts_["index drops"];
      ++counts_["indexes dropped during their backfill"];
    });
    if (random_.OneIn(2)) sim_.Compact();
  });
}

// The entries are gone by the time that the server hears of the drop.
void Mishaps::DropWhileAsleep(const std::string& server) {
  const auto schema = sim_.cluster().catalog().Table(table_->id);
  if (schema->indexes.empty()) return;
  // Searches by it are under way, and by who does not know that it is gone.
  const std::string name = RandomRows::IndexOnName().name;
  if (schema->FindIndex(name) == nullptr) return;
  sim_.Pause(server);
  sim_.WakeLater(server, milliseconds(10) + Milliseconds(120));
  After(Milliseconds(10), [this, name] {
    sim_.cluster().DropIndex("t", name, [this](const Result<TableSchema>& changed) {
      if (changed.ok()) ++counts_["index drops"];
    });
    sim_.Compact();
    ++counts_["indexes dropped while a server sleeps"];
  });
}

void Mishaps::MoveTwiceDuringBackfill(const pb::RegionRecord& region) {
  const auto schema = sim_.cluster().catalog().Table(table_->id);
  const IndexSpec index = RandomRows::IndexOnBoth(options_.fpr);
  if (schema->FindIndex(index.name) != nullptr) return;
  sim_.cluster().CreateIndex("t", index, [this](const Result<TableSchema>& changed) {
    if (changed.ok()) ++counts_["index creations"];
  });
  After(milliseconds(1) + Milliseconds(8), [this, region] {
    if (!MaySleep(region.server())) return;
    sim_.Pause(region.server());
    WhenReopened(region, 200, [this, region](const pb::RegionRecord& opened) {
      sim_.cluster().MoveRegion(RegionId(opened.id()), sim_.RandomServer(),
                                [this, region](const Status& status) {
                                  if (status.ok()) ++counts_["moves twice during a backfill"];
                                });
    });
    sim_.WakeLater(region.server(), SimCluster::kSession + milliseconds(100) + Milliseconds(400));
  });
}

// The server's proof of ownership runs out, so each lease that it grants is shorter than the one
// before, and the replies with these leases are lost. The coordinators go by the last lease that
// arrived.
void Mishaps::RepliesLostAsLeasesShrink(const pb::RegionRecord& region, int64_t key) {
  const Time until = sim_.executor().Now() + milliseconds(100) + Milliseconds(200);
  sim_.CutHeartbeats(region.server(), until);
  After(Milliseconds(100), [this, server = region.server(), until, key] {
    sim_.network().CutPollReplies(server, until);
    ++counts_["replies lost as leases shrink"];
    start_burst_(key, WriteBurst::Kind::kNewName);
  });
}

// Writes are in every step of their way when the region changes hands.
void Mishaps::WritesAcrossMove(const pb::RegionRecord& region, int64_t key) {
  start_burst_(key, random_.OneIn(2) ? WriteBurst::Kind::kNewName : WriteBurst::Kind::kPutDelete);
  After(Milliseconds(3), [this, region] {
    sim_.cluster().MoveRegion(RegionId(region.id()), sim_.RandomServer(), Counted("moves"));
    ++counts_["moves during a burst"];
  });
}

}  // namespace tamis
