// The page of all published figures and its pictures, as files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "papers/document.h"

namespace tamis {

struct PageFile {
  std::string path;  // beside one another: "PAPERS.md", "plots/fpr.svg"
  std::string bytes;
};

Document PublishedFigures(uint64_t seed);
// The page of that document, with the plots of it and of the filters.
std::vector<PageFile> PublishedPages(uint64_t seed);

}  // namespace tamis
