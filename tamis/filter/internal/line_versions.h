// LineVersions: how readers of a blocked quotient filter notice that its one writer has been where
// they are (sequence locks; Boehm, MSPC 2012).
//
// A version for every 64 lines and one for the table of spilled keys: odd while something of theirs
// is being changed, and greater afterwards. One version for all would be odd, or about to be, most
// of the time that a writer never rests.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tamis {

class LineVersions {
 public:
  using Version = std::atomic<uint64_t>;
  static constexpr uint64_t kLines = 64;

  explicit LineVersions(uint64_t lines) : versions_(lines / kLines + 2) {}

  Version& OfTable() { return versions_[0]; }
  Version& OfLine(uint64_t line) { return versions_[1 + line / kLines]; }
  // The versions of a LineVersions that stays where it is.
  class View {
   public:
    explicit View(const LineVersions& of) : versions_(of.versions_.data()) {}
    const Version& OfTable() const { return versions_[0]; }
    const Version& OfLine(uint64_t line) const { return versions_[1 + line / kLines]; }

   private:
    const Version* versions_;
  };
  size_t size_bytes() const { return versions_.size() * sizeof(Version); }

  // While it lives, what the version stands for may be changed.
  class Change {
   public:
    explicit Change(Version& version) : version_(version) {
      version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_release);
    }
    ~Change() {
      version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    Version& version_;
  };

  // Data that was read in between, by relaxed loads, is of one moment when Begin gives an even
  // number and StillIs gives true.
  static uint64_t Begin(const Version& version) { return version.load(std::memory_order_acquire); }
  static bool StillIs(const Version& version, uint64_t begun) {
    std::atomic_thread_fence(std::memory_order_acquire);
    return version.load(std::memory_order_relaxed) == begun;
  }

 private:
  std::vector<Version> versions_;
};

}  // namespace tamis
