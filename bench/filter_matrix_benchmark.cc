// The cost of one probe of a filter matrix, against the same filters asked one by one.
//
//   filter_matrix_benchmark [REGIONS_DIVISOR]      (10: a short run with a tenth of the regions)
//
// Prints one table; every answer of the matrix is compared with those of the filters. Times are
// medians over several runs of distinct hashes; compare them as ratios within one run.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numbers>
#include <vector>

#include "bench/figures.h"
#include "tamis/base/random.h"
#include "tamis/routing/filter_matrix.h"

namespace tamis {
namespace {

using Projection = std::vector<uint64_t>;

double Nanoseconds(auto&& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

// The median of `runs` runs of run(i), each with a number i of its own.
double MedianNanoseconds(int runs, auto&& run) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) times.push_back(Nanoseconds([&] { run(i); }));
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[runs / 2];
}

[[noreturn]] void Fail(const char* what) {
  fmt::print(stderr, "wrong answer: {}\n", what);
  std::exit(1);
}

bool TestBit(const uint64_t* bits, uint64_t i) { return bits[i / 64] >> (i % 64) & 1; }

uint64_t Value(uint64_t region, uint64_t i) { return Mix((region << 32) + i + 1); }

// The filters one by one, only their bits, as small as they can be.
struct Filters {
  SplitGeometry geometry;
  std::vector<Projection> bits;

  Filters(uint64_t regions, uint64_t values, double fpr)
      : geometry(SplitGeometry::For(fpr, values)) {
    for (uint64_t r = 0; r < regions; ++r) {
      Projection projection((geometry.positions() + 63) / 64);
      for (uint64_t i = 0; i < values; ++i) {
        for (uint32_t s = 0; s < geometry.slices; ++s) {
          const uint64_t p = geometry.Position(Value(r, i), s);
          projection[p / 64] |= uint64_t{1} << (p % 64);
        }
      }
      bits.push_back(std::move(projection));
    }
  }

  // The plain loop: each filter is asked as a filter is.
  void AskEach(uint64_t hash, std::vector<uint64_t>* answer) const {
    std::fill(answer->begin(), answer->end(), 0);
    for (size_t r = 0; r < bits.size(); ++r) {
      bool match = true;
      for (uint32_t s = 0; match && s < geometry.slices; ++s) {
        match = TestBit(bits[r].data(), geometry.Position(hash, s));
      }
      (*answer)[r / 64] |= uint64_t{match} << (r % 64);
    }
  }

  // The best possible loop: the positions are computed once for all, and the first lines of the
  // filters ahead are prefetched.
  void AskPrefetched(uint64_t hash, std::vector<uint64_t>* answer) const {
    std::vector<uint64_t> positions(geometry.slices);
    for (uint32_t s = 0; s < geometry.slices; ++s) positions[s] = geometry.Position(hash, s);
    std::fill(answer->begin(), answer->end(), 0);
    constexpr size_t kAhead = 12;
    for (size_t r = 0; r < bits.size(); ++r) {
      if (r + kAhead < bits.size()) {
        const uint64_t* ahead = bits[r + kAhead].data();
        __builtin_prefetch(ahead + positions[0] / 64);
        __builtin_prefetch(ahead + positions[1] / 64);
      }
      bool match = true;
      for (uint32_t s = 0; match && s < geometry.slices; ++s) {
        match = TestBit(bits[r].data(), positions[s]);
      }
      (*answer)[r / 64] |= uint64_t{match} << (r % 64);
    }
  }
};

FilterMatrix Loaded(const Filters& filters, bool reserve, double* load_ms) {
  FilterMatrix matrix(filters.geometry);
  if (reserve) matrix.Reserve(filters.bits.size());
  std::vector<FilterMatrix::Filling> fillings;
  for (const Projection& bits : filters.bits) fillings.push_back({matrix.Allocate(), bits});
  *load_ms = Nanoseconds([&] { matrix.Load(fillings); }) / 1e6;
  return matrix;
}

// Bytes a nanosecond when memory is read from end to end on one core: the better of a plain sum
// and of reading it in pieces.
double ReadBandwidth() {
  std::vector<uint64_t> memory((size_t{512} << 20) / sizeof(uint64_t), 1);
  uint64_t sum = 0;
  const double ns = MedianNanoseconds(5, [&](int) {
    uint64_t a[8] = {};
    for (size_t i = 0; i < memory.size(); i += 64) {
      __builtin_prefetch(&memory[i] + 512);
      for (size_t j = 0; j < 64; j += 8) {
        for (size_t lane = 0; lane < 8; ++lane) a[lane] += memory[i + j + lane];
      }
    }
    for (const uint64_t x : a) sum += x;
  });
  if (sum != 5 * memory.size()) Fail("sum");
  return static_cast<double>(memory.size() * sizeof(uint64_t)) / ns;
}

void Run(uint64_t regions, uint64_t values, double bandwidth) {
  constexpr double kFpr = 0.001;
  constexpr int kProbes = 200;
  const Filters filters(regions, values, kFpr);
  // Every other value is in some region, the others nowhere.
  const auto hash = [&](int i) {
    return i % 2 == 0 ? Value(Mix(i) % regions, Mix(i) % values) : Value(regions + i, 0);
  };
  std::vector<uint64_t> expected((regions + 63) / 64);
  std::vector<uint64_t> prefetched = expected;

  const int asked = static_cast<int>(std::clamp<uint64_t>(2'000'000 / regions, 15, 1000));
  const double each_ns =
      MedianNanoseconds(asked, [&](int i) { filters.AskEach(hash(i + 1000), &expected); });
  const double prefetched_ns =
      MedianNanoseconds(asked, [&](int i) { filters.AskPrefetched(hash(i + 5000), &prefetched); });

  for (const bool reserve : {false, true}) {
    double load_ms = 0;
    const FilterMatrix matrix = Loaded(filters, reserve, &load_ms);
    std::vector<uint64_t> answer;
    for (int i = 0; i < 20; ++i) {
      filters.AskEach(hash(i), &expected);
      filters.AskPrefetched(hash(i), &prefetched);
      if (prefetched != expected) Fail("prefetched");
      matrix.Probe(hash(i), &answer);
      if (!std::equal(expected.begin(), expected.end(), answer.begin())) Fail("matrix");
    }
    const double one_ns =
        MedianNanoseconds(kProbes * 5, [&](int i) { matrix.Probe(hash(i + 10000), &answer); });
    std::vector<uint64_t> hashes(kProbes);
    const double batch_ns = MedianNanoseconds(9,
                                              [&](int run) {
                                                for (int i = 0; i < kProbes; ++i)
                                                  hashes[i] = hash(run * 999 + i);
                                                matrix.Probe(hashes, &answer);
                                              }) /
                            kProbes;
    const double bytes = filters.geometry.slices * static_cast<double>(matrix.columns()) / 8;
    const double best_ns = std::min(one_ns, batch_ns);
    fmt::print(
        "{:>7} x {:<6} {:<8} {:>9.0f} {:>9.0f} {:>11.0f} {:>11.0f} {:>7.0f}x {:>7.0f}x "
        "{:>9.0f} {:>8.1f} {:>6.0f}% {:>8.0f} {:>7.2f}\n",
        regions, values, reserve ? "reserved" : "grown", one_ns, batch_ns, prefetched_ns, each_ns,
        prefetched_ns / one_ns, each_ns / one_ns, bytes, bytes / best_ns,
        100 * bytes / best_ns / bandwidth, load_ms,
        static_cast<double>(matrix.SizeBytes()) * 8 / static_cast<double>(regions * values));
    if (!reserve) continue;
    Report({.work = fmt::format("probe of the filters of {} regions x {} values", regions, values),
            .beside = "a loop that asks them one by one, with prefetching",
            .now = fmt::format("{:.0f} ns; {:.0f} ns; {:.2f} bits a key", one_ns, prefetched_ns,
                               static_cast<double>(matrix.SizeBytes()) * 8 /
                                   static_cast<double>(regions * values)),
            .ratio = fmt::format("{:.0f}x", prefetched_ns / one_ns)});
  }
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  const uint64_t divisor = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const double bandwidth = tamis::ReadBandwidth();
  fmt::print("read bandwidth, one core: {:.1f} GB/s; k / ln 2 = {:.2f} bits\n", bandwidth,
             10 / std::numbers::ln2);
  fmt::print(
      "{:>7} x {:<6} {:<8} {:>9} {:>9} {:>11} {:>11} {:>8} {:>8} {:>9} {:>8} {:>7} {:>8} "
      "{:>7}\n",
      "regions", "values", "matrix", "probe ns", "batch ns", "prefetch ns", "loop ns", "ratio",
      "ratio", "bytes", "bytes/ns", "of bw", "load ms", "b/key");
  for (const auto& [regions, values] : {std::pair<uint64_t, uint64_t>{32, 10000},
                                        {100, 10000},
                                        {1000, 10000},
                                        {4096, 10000},
                                        {10000, 10000},
                                        {100000, 1000}}) {
    tamis::Run(std::max<uint64_t>(regions / divisor, 1), values, bandwidth);
  }
  return 0;
}
