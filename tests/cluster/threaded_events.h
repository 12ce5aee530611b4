// ThreadedEvents: what happens to the cluster and the coordinators of a ThreadedRun while clients
// write and search. Each function but the constructor is the work of one thread, and ends with the
// operations.
#pragma once

#include "tests/cluster/threaded_run.h"
#include "tests/cluster/threaded_searches.h"

namespace tamis {

class ThreadedEvents {
 public:
  ThreadedEvents(ThreadedRun* run, ThreadedSearches* searches)
      : run_(*run), searches_(*searches), progress_(run->progress()) {}

  // Splits, merges and moves.
  void OfRegions();
  // Servers die, sleep and come back; indexes come, go and are rebuilt.
  void OfServersAndIndexes();
  void Outages();
  // A coordinator that knows nothing at first, learns, and is gone.
  void ComingAndGoingCoordinator();
  // It sleeps for less, and for more, than a lease; it is killed, sometimes asleep.
  void CoordinatorOfItsOwnProcess();
  // A coordinator whose network is cut for less, and for more, than a lease, while it and the
  // servers go on. It must find every row, or report that no server answers.
  void CoordinatorThatIsCutOff();

 private:
  bool Can(Capability capability) { return run_.cluster().admin().Can(capability); }
  // The job is not waited for: a server may die meanwhile.
  void StartJob(JobSpec::Kind kind, const char* what);
  void ToggleIndex(Random& random);

  ThreadedRun& run_;
  ThreadedSearches& searches_;
  RunProgress& progress_;
};

}  // namespace tamis
