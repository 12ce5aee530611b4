// An operator new for tests, which fails when it is told to. In a file of its own, since the
// compiler would take the freeing of what it sees allocated for a mistake.
#pragma once

#include <cstdint>

namespace tamis {

// After so many more allocations of this program one fails, and all later ones; -1: none.
void FailAllocationAfter(int64_t allocations);

}  // namespace tamis
