// Measures regions of many sizes, of 1,000 to 1,000,000 distinct values: the false-positive rate of
// absent values, and the memory of each value. The filters are those of the region server: counted,
// counted again to fit their values, and sent to a coordinator.
#pragma once

namespace tamis {

// Runs the measurement and prints its results.
void MeasureMixedSizes(double fpr);

}  // namespace tamis
