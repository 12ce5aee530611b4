#include "tamis/cluster/job_table.h"

#include <algorithm>

namespace tamis {
namespace {

constexpr ptrdiff_t kMaxEnded = 100;

}  // namespace

uint64_t JobTable::Add(JobSpec spec, uint64_t total) {
  std::lock_guard lock(mutex_);
  const auto ended = [](const auto& job) { return job.second.ended; };
  while (std::ranges::count_if(jobs_, ended) >= kMaxEnded) {
    jobs_.erase(std::ranges::find_if(jobs_, ended));
  }
  jobs_[next_] = {.spec = std::move(spec), .total = total};
  return next_++;
}

void JobTable::Update(uint64_t job, const std::function<void(JobInfo*)>& change) {
  std::lock_guard lock(mutex_);
  auto found = jobs_.find(job);
  if (found != jobs_.end() && !found->second.ended) change(&found->second);
}

void JobTable::End(uint64_t job, const Status& status) {
  Update(job, [&](JobInfo* info) {
    info->ended = true;
    info->status = status;
    if (status.ok()) info->done = info->total;
  });
}

Result<JobInfo> JobTable::Find(uint64_t job) const {
  std::lock_guard lock(mutex_);
  auto found = jobs_.find(job);
  if (found != jobs_.end()) return found->second;
  return NotFound("there is no job " + std::to_string(job) +
                  (job < next_ ? " any more; it ended long ago" : ""));
}

}  // namespace tamis
