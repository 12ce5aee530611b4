// Holds the filter of a RocksDB against the database itself, in processes that are killed at
// random:
//
//   lsm_oracle [--seed 1] [--seeds 8] [--seconds 20]     a seed makes a kind of database
//   lsm_oracle --seed 3 --seconds 7200                   hours
//   lsm_oracle --fault forget_outputs --seeds 4          a rule is off: is it noticed?
//
// Exit code 0: no key was missed (or with --fault: one was). The same seed does the same things in
// another interleaving of threads.
//
// Debian's RocksDB is built with assertions, which do not bear all that a failing disk or atomic
// flushes bring: a life that ends in one of them counts as killed there. One that comes to no end
// is a failure.

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <utility>

#include "tamis/base/random.h"
#include "tests/lsm/foreign_assertions.h"
#include "tests/lsm/oracle_life.h"
#include "tests/lsm/thread_stacks.h"

namespace tamis::lsm {
namespace {

struct Run {
  uint64_t seed = 1;
  uint64_t seeds = 1;
  double seconds = 10;
  std::string fault;
  std::string directory;
};

using Clock = std::chrono::steady_clock;

void DamageKeyFiles(const std::string& directory, Random* random) {
  std::error_code error;
  const std::filesystem::path keys = directory + "/db/tamis.keys";
  const uint64_t choice = random->Uniform(4);
  if (choice == 0) std::filesystem::remove_all(keys, error);
  if (choice != 1) return;
  for (const auto& entry : std::filesystem::directory_iterator(keys, error)) {
    if (random->OneIn(3)) std::filesystem::resize_file(entry.path(), random->Uniform(6000), error);
  }
}

// False when something was wrong that no fault explains.
bool RunSeed(const Run& run, uint64_t seed, OracleCounts* counts) {
  OracleConfig config = ConfigOf(seed);
  config.fault = run.fault;
  config.directory = run.directory + "/" + std::to_string(seed);
  if (!run.fault.empty()) config.loses_files = false;
  std::filesystem::create_directories(config.directory);
  for (auto* model : {&counts->written, &counts->ingested}) {
    for (auto& family : *model) {
      for (auto& known : family) known = OracleCounts::kUnknown;
    }
  }
  std::printf("%s\n", config.Text().c_str());
  std::fflush(stdout);
  Random random(seed);
  bool is_good = true;
  const auto end =
      Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(run.seconds * 1000));
  for (uint64_t life = 0; Clock::now() < end && is_good && counts->missed == 0; ++life) {
    const double left = std::chrono::duration<double>(end - Clock::now()).count();
    const double lasts = std::min(left, 0.3 + 4 * random.UniformDouble());
    const bool is_killed = random.OneIn(2) && lasts < left;
    const pid_t child = fork();
    if (child == 0) {
      ShowStacksWhenAsked();
      // Nothing of this process is wanted at its end.
      _exit(RunLife(config, life, is_killed ? 3600 : lasts, counts) ? 0 : 1);
    }
    // Its end looks at each family, and writes their options to a disk that others use, too.
    const double most = is_killed ? lasts : 10 * lasts + 60 + 3 * config.families;
    const auto patience =
        Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(1000 * most));
    int status = 0;
    bool is_stuck = false;
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (Clock::now() > patience) {
        if (!is_killed && !std::exchange(is_stuck, true)) AskForStacks(child);
        kill(child, SIGKILL);
      }
      usleep(10'000);
    }
    const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !is_stuck;
    const bool has_asserted = WIFEXITED(status) && WEXITSTATUS(status) == kForeignAssertion;
    counts->killed += was_killed;
    counts->asserted += has_asserted;
    is_good = was_killed || has_asserted || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (is_stuck) {
      std::printf("FAILED: life %llu came to no end\n", static_cast<unsigned long long>(life));
    } else if (!is_good && run.fault.empty()) {
      std::printf("FAILED: life %llu ended with status %d\n", static_cast<unsigned long long>(life),
                  status);
    }
    if (random.OneIn(2)) DamageKeyFiles(config.directory, &random);
  }
  if (is_good) std::filesystem::remove_all(config.directory);
  return is_good;
}

int Main(const Run& run) {
  void* const shared = mmap(nullptr, sizeof(OracleCounts), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* const counts = new (shared) OracleCounts();
  bool is_good = true;
  for (uint64_t i = 0; i < run.seeds && is_good && counts->missed == 0; ++i) {
    is_good = RunSeed(run, run.seed + i, counts);
  }
  const std::pair<const char*, const std::atomic<uint64_t>&> kCounts[] = {
      {"lives", counts->lives},
      {"of them killed", counts->killed},
      {"ended by an assertion of RocksDB that it does not bear", counts->asserted},
      {"writes", counts->writes},
      {"transactions", counts->transactions},
      {"of them prepared", counts->prepared},
      {"recovered", counts->recovered},
      {"commits refused", counts->refused},
      {"LOST by RocksDB itself", counts->lost},
      {"checks", counts->checks},
      {"denied", counts->denied},
      {"MISSED", counts->missed},
      {"different", counts->different},
      {"exact at the end", counts->exact},
      {"inexact at the end", counts->inexact},
      {"snapshots", counts->snapshots},
      {"flushes", counts->flushes},
      {"ranges compacted", counts->compactions},
      {"files compacted", counts->files_compacted},
      {"ingestions", counts->ingestions},
      {"imports", counts->imports},
      {"families made and dropped", counts->families},
      {"ranges of files dropped", counts->files_dropped},
      {"key files lost", counts->lost_key_files},
      {"disk faults", counts->disk_faults},
  };
  for (const auto& [name, count] : kCounts) {
    std::printf("  %12llu %s\n", static_cast<unsigned long long>(count.load()), name);
  }
  if (!run.fault.empty()) {
    std::filesystem::remove_all(run.directory);
    if (counts->missed > 0) return 0;
    std::printf("FAILED: fault \"%s\" was not noticed\n", run.fault.c_str());
    return 1;
  }
  if (is_good && counts->denied * 10 < counts->checks) {
    std::printf("FAILED: hardly anything was denied\n");
    return 1;
  }
  if (is_good) std::filesystem::remove_all(run.directory);
  return is_good ? 0 : 1;
}

}  // namespace
}  // namespace tamis::lsm

int main(int argc, char** argv) {
  tamis::lsm::Run run;
  run.directory =
      std::filesystem::temp_directory_path() / ("lsm_oracle." + std::to_string(getpid()));
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--seed") run.seed = std::stoull(argv[i + 1]);
    if (name == "--seeds") run.seeds = std::stoull(argv[i + 1]);
    if (name == "--seconds") run.seconds = std::stod(argv[i + 1]);
    if (name == "--fault") run.fault = argv[i + 1];
    if (name == "--directory") run.directory = argv[i + 1];
  }
  return tamis::lsm::Main(run);
}
