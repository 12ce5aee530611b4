// The pauses of a search or write between its attempts at a region.
#pragma once

#include "tamis/base/backoff.h"

namespace tamis {

inline constexpr Backoff kRetryPauses =
    Backoff::AfterARetry(std::chrono::milliseconds(20), std::chrono::seconds(1));

}  // namespace tamis
