#include "bench/mixed_sizes.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "tamis/base/random.h"
#include "tamis/base/thread_executor.h"
#include "tamis/feed/filter_feed.h"
#include "tamis/feed/index_filter.h"
#include "tamis/routing/filter_matrix.h"
#include "tamis/routing/global_index.h"

namespace tamis {
namespace {

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "routing_scale_benchmark: %s\n", what);
  std::exit(1);
}

class MixedSizes {
 public:
  static constexpr size_t kSizes = 48;
  static constexpr size_t kOfEach = 40;  // regions with the same bits; the first of them are judged
  static constexpr int kAbsent = 4000;

  explicit MixedSizes(double fpr) : executor_(1), index_({.lease_margin = Duration(0)}) {
    spec_ = {.id = 1, .name = "mixed", .columns = {1}, .fpr = fpr, .seed = 1};
  }

  void Run() {
    const Time now = executor_.Now();
    FilterFeed feed(&executor_, "rs", 1, FilterFeed::Options{});
    uint64_t sequence = 0, values = 0;
    for (size_t i = 0; i < kSizes; ++i) {
      const auto distinct = static_cast<uint64_t>(
          1000 * std::pow(1000.0, static_cast<double>(i) / static_cast<double>(kSizes - 1)));
      values += distinct * kOfEach;
      Tell(MakeFilter(&feed, i, distinct), i, &sequence, now);
    }
    std::vector<uint64_t> wrong(kSizes);  // candidates
    for (int i = 0; i < kAbsent; ++i) {
      RoutingTerm term{.kind = RoutingTerm::Kind::kValue, .index_id = spec_.id, .first = "m"};
      term.hash = random_();
      const auto route = index_.Find(1, KeyRanges::All(), term, now);
      for (size_t size = 0; size < kSizes; ++size) {
        wrong[size] += route.excluded.Contains(KeyAt(size * kOfEach)) ? 0 : 1;
      }
    }
    Print(wrong, values);
  }

 private:
  static std::string KeyAt(size_t region) {
    char key[32];
    std::snprintf(key, sizeof key, "%08zu", region);
    return key;
  }

  std::unique_ptr<IndexFilter> MakeFilter(FilterFeed* feed, size_t region, uint64_t distinct) {
    auto filter = std::make_unique<IndexFilter>(feed, spec_, region + 1, 1, Faults{});
    do {
      filter->BeginGeneration(/*hold_removals=*/false);
      std::vector<EntryKey> entries(1000, EntryKey{.hashes = {0}, .first = "m"});
      for (uint64_t value = 0; value < distinct; value += entries.size()) {
        entries.resize(std::min<uint64_t>(entries.size(), distinct - value));
        for (size_t i = 0; i < entries.size(); ++i) {
          entries[i].hashes[0] = Mix((region + 1) << 32 | (value + i));
        }
        filter->CountExisting(entries);
      }
      filter->Publish();
    } while (filter->WantsRecount({.least = 1, .an_entry = 0}));
    return filter;
  }

  // Tells as many regions as are to have these bits.
  void Tell(const std::unique_ptr<IndexFilter>& filter, size_t size, uint64_t* sequence, Time now) {
    auto projection = filter->Project();
    if (!projection.has_value()) Die("a filter has no bits");
    columns_[{projection->geometry().slices(), projection->geometry().slice_positions()}] +=
        kOfEach * static_cast<size_t>(projection->layers_size());
    for (size_t i = 0; i < kOfEach; ++i) {
      const size_t region = size * kOfEach + i;
      pb::PollReply reply;
      reply.set_start_code(1);
      reply.set_from(*sequence);
      reply.set_full(*sequence == 0);
      reply.set_lease_ns(static_cast<uint64_t>(Duration(std::chrono::hours(1)).count()));
      const auto event = [&](pb::Event::Kind kind) {
        pb::Event* added = reply.add_events();
        added->set_kind(kind);
        added->set_sequence(++*sequence);
        added->set_region_id(region + 1);
        added->set_epoch(1);
        return added;
      };
      pb::Event* opened = event(pb::Event::REGION_OPENED);
      opened->set_table_id(1);
      opened->set_start(region == 0 ? "" : KeyAt(region));
      opened->set_end(region + 1 == kSizes * kOfEach ? "" : KeyAt(region + 1));
      pb::Event* complete = event(pb::Event::INDEX_COMPLETE);
      complete->set_index_id(spec_.id);
      complete->set_generation(projection->generation());
      *complete->mutable_geometry() = projection->geometry();
      complete->set_layers(static_cast<uint32_t>(projection->layers_size()));
      reply.set_to(*sequence);
      index_.Apply("rs", reply, now, now);
      pb::PollReply bits;
      bits.set_start_code(1);
      bits.set_from(*sequence);
      bits.set_to(*sequence);
      projection->set_region_id(region + 1);
      projection->set_epoch(1);
      projection->set_as_of(*sequence);
      *bits.add_projections() = *projection;
      index_.Apply("rs", bits, now, now);
    }
    if (index_.stats().indexes_missing > 0) Die("bits were not taken");
  }

  void Print(const std::vector<uint64_t>& wrong, uint64_t values) const {
    const size_t regions = kSizes * kOfEach;
    std::printf("%zu regions of 1,000 to 1,000,000 distinct values, absent values\n", regions);
    const auto rate = [&](size_t first, size_t last) {
      const uint64_t sum =
          std::accumulate(wrong.begin() + static_cast<ptrdiff_t>(first),
                          wrong.begin() + static_cast<ptrdiff_t>(last), uint64_t{0});
      return static_cast<double>(sum) / static_cast<double>(last - first) / kAbsent / spec_.fpr;
    };
    std::printf("  %-44s %10.2f of that configured (small, middling and large: %.2f %.2f %.2f)\n",
                "candidates a region", rate(0, kSizes), rate(0, kSizes / 3),
                rate(kSizes / 3, kSizes * 2 / 3), rate(kSizes * 2 / 3, kSizes));
    const auto memory = [&](size_t bytes, double times) {
      return static_cast<double>(bytes) * 8 / (static_cast<double>(values) * times) /
             (SplitGeometry::For(spec_.fpr, 1000).slices / std::log(2.0));
    };
    std::printf("  %-44s %10.2f times k / ln 2 (of five times as many regions: %.2f)\n",
                "memory of a value", memory(index_.SizeBytes(), 1), memory(BytesOf(5), 5));
    Report({.work = Printed("memory of a value, %zu regions of 1,000 to 1,000,000 values", regions),
            .beside = "k / ln 2 bits",
            .now = Printed("of five times as many regions %.2fx", memory(BytesOf(5), 5)),
            .ratio = Printed("%.2fx", memory(index_.SizeBytes(), 1)),
            .goal = "<= 1.3x"});
    Report({.work = "candidates that hold no row, the same regions",
            .beside = "the configured rate",
            .ratio = Printed("%.2fx", rate(0, kSizes)),
            .goal = "<= 1x"});
  }

  // The bytes of matrices for that many times the regions; they stay empty.
  size_t BytesOf(size_t times) const {
    size_t bytes = 0;
    for (const auto& [positions, columns] : columns_) {
      FilterMatrix matrix({.slices = positions.first, .slice_positions = positions.second});
      for (size_t i = 0; i < columns * times; ++i) matrix.Allocate();
      bytes += matrix.SizeBytes();
    }
    return bytes;
  }

  Random random_{3};
  std::map<std::pair<uint32_t, uint32_t>, size_t> columns_;  // by slices and their positions
  ThreadExecutor executor_;
  GlobalIndex index_;
  IndexSpec spec_;
};

}  // namespace

void MeasureMixedSizes(double fpr) { MixedSizes(fpr).Run(); }

}  // namespace tamis
