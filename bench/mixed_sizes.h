// Regions of many sizes: what absent values find in regions of 1,000 to 1,000,000 distinct values,
// and the memory of a value. Filters of real servers, each counted, counted anew for what it holds,
// and told to a coordinator.
#pragma once

namespace tamis {

// Measures, and prints it.
void MeasureMixedSizes(double fpr);

}  // namespace tamis
