// FailingAllocations: for tests. While one lives, operator new fails for the thread that has made
// it. A program that links this has operator new replaced.
#pragma once

#include <cstdint>

namespace tamis {

class FailingAllocations {
 public:
  // `before`: how many succeed before the first that fails.
  explicit FailingAllocations(uint64_t before, bool only_one);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;

  // Like an object of this class that lives until End.
  static void Begin(uint64_t before, bool only_one);
  static void End();

  static uint64_t failed();  // failures of this thread, since the latest was made or begun

  // An allocation for which this says true never fails; nullptr: none is exempt. For all threads.
  static void Exempt(bool (*is_exempt)());

  // From here on a failure calls the new-handler, if there is one, and tries again: for all
  // threads.
  static void AskNewHandler();

  // Within it nothing fails: for what is not ours and bears no failure.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    const bool was_on_;
  };
};

}  // namespace tamis
