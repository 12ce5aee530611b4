// The pauses of an operation between its attempts; with jitter.
#pragma once

#include "tamis/base/backoff.h"

namespace tamis::hbase {

inline constexpr Backoff kRetryPauses(std::chrono::milliseconds(10), std::chrono::seconds(1));

}  // namespace tamis::hbase
