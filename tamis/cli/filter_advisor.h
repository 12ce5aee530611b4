// Which type of filter to take, for `tamis filter size` and for a filter whose type is "auto".
#pragma once

#include <string>

#include "tamis/filter/any_filter.h"

namespace tamis {

// The operations that a filter must support.
struct FilterNeeds {
  bool erases = false;
  bool counts = false;  // a key more often than a few times
  bool fixed = false;   // nothing more: the smallest

  bool MetBy(const FilterType& type) const {
    return type.fixed == fixed && (!erases || type.erases) && (!counts || type.copies > 8);
  }
};

// The first that meets them and keeps the rate, and is not a fifth larger than a later one: the
// types are listed in the order in which one would choose if memory did not count. kInvalidArgument
// when there is none. REQUIRES: a valid fpr.
Result<const FilterType*> Recommended(double fpr, const FilterNeeds& needs);

// Every type at this capacity and rate, which one to take and what else to think of. The seed is
// not used.
Result<std::string> FilterAdvice(const FilterOptions& options, const FilterNeeds& needs);

// A readable size: "2.50 MiB".
std::string SizeText(double bytes);

}  // namespace tamis
