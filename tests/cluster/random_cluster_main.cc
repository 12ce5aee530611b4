// Runs the randomized cluster test for as long as wanted:
//
//   random_cluster --seed 7 --operations 1000000 [--seeds 10] [--fault NAME] [--drift 10]
//                  [--sql 0]
//   random_cluster --seed 7 --operations 10000 --threads 8    on real threads, in a temporary store

#include <cstdio>
#include <cstring>
#include <string>

#include "tests/cluster/embedded_kinds.h"
#include "tests/cluster/random_cluster.h"
#include "tests/cluster/threaded_cluster.h"

int main(int argc, char** argv) {
  tamis::RandomClusterOptions options;
  uint64_t seeds = 1;
  int threads = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--seed") options.seed = std::stoull(argv[i + 1]);
    if (name == "--seeds") seeds = std::stoull(argv[i + 1]);
    if (name == "--drift") options.clock_drift = std::stoi(argv[i + 1]);
    if (name == "--sql") options.sql = std::stoi(argv[i + 1]) != 0;
    if (name == "--threads") threads = std::stoi(argv[i + 1]);
    if (name == "--operations") options.operations = std::stoull(argv[i + 1]);
    if (name == "--fault" && !tamis::SetFault(argv[i + 1], &options.faults)) {
      std::fprintf(stderr, "no fault \"%s\"\n", argv[i + 1]);
      return 2;
    }
  }
  for (uint64_t i = 0; i < seeds; ++i, ++options.seed) {
    const tamis::RandomClusterResult result =
        threads == 0
            ? tamis::RunRandomCluster(options)
            : tamis::RunThreadedCluster(tamis::EmbeddedKind(), {.seed = options.seed,
                                                                .operations = options.operations,
                                                                .clients = threads,
                                                                .faults = options.faults});
    std::printf("seed %llu: %llu operations\n", static_cast<unsigned long long>(options.seed),
                static_cast<unsigned long long>(result.operations));
    for (const auto& [name, count] : result.counts) {
      std::printf("  %10llu %s\n", static_cast<unsigned long long>(count), name.c_str());
    }
    if (result.failure.has_value()) {
      std::printf("FAILED: %s\n", result.failure->c_str());
      return 1;
    }
  }
  return 0;
}
