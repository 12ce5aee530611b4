// Scenarios: what a region server does with searches and writes, as text. Both engines must do the
// same: the embedded cluster's region server writes the files, and the tests of the jar read them.
#pragma once

#include <string>

namespace tamis {

std::string Searches();  // searches.txt
std::string Writes();    // writes.txt

}  // namespace tamis
