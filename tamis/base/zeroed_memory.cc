#include "tamis/base/zeroed_memory.h"

#include <cstdlib>

namespace tamis {
namespace {

ZeroedMemory the_memory = {[](size_t size) { return std::calloc(size, 1); }, std::free};

}  // namespace

const ZeroedMemory& TheZeroedMemory() { return the_memory; }

void SetZeroedMemory(ZeroedMemory memory) { the_memory = memory; }

}  // namespace tamis
