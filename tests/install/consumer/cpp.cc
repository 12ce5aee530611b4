// Uses the installed C++ library: counts what a filter says of 1000 members and 100000 others.
#include <cstdio>
#include <string>

#include "tamis/base/hash.h"
#include "tamis/filter/any_filter.h"
#include "tamis/filter/cuckoo_filter.h"

int main() {
  auto filter = tamis::CuckooFilter::Create({.capacity = 1000, .fpr = 0.001, .seed = 7});
  if (!filter.ok()) return 1;
  const auto hash = [](int i) { return tamis::Hash("key-" + std::to_string(i), 7); };
  for (int i = 0; i < 1000; ++i) {
    if (!filter->Insert(hash(i))) return 1;
  }
  const auto again = tamis::AnyFilter::Deserialize(filter->Serialize());
  if (!again.ok()) return 1;
  int members = 0;
  int others = 0;
  for (int i = 0; i < 1000; ++i) members += again->MayContain(hash(i));
  for (int i = 1000; i < 101000; ++i) others += again->MayContain(hash(i));
  std::printf("members %d, others %s\n", members, others < 200 ? "few" : "too many");
}
