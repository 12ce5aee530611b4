// Uses the installed C library: counts what a filter says of 1000 members and 100000 others.
#include <stdio.h>

#include "tamis/filter.h"

int main(void) {
  const tamis_filter_options options = {"cuckoo", 1000, 0.001, 7};
  tamis_filter* filter = NULL;
  char key[20];
  int members = 0;
  int others = 0;
  if (tamis_filter_create(&options, &filter) != TAMIS_OK) return 1;
  for (int i = 0; i < 1000; ++i) {
    const int size = snprintf(key, sizeof key, "key-%d", i);
    if (tamis_filter_insert(filter, key, (size_t)size) != TAMIS_OK) return 1;
  }
  for (int i = 0; i < 101000; ++i) {
    const int size = snprintf(key, sizeof key, "key-%d", i);
    *(i < 1000 ? &members : &others) += tamis_filter_may_contain(filter, key, (size_t)size);
  }
  printf("members %d, others %s\n", members, others < 200 ? "few" : "too many");
  tamis_filter_free(filter);
  return 0;
}
