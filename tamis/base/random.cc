#include "tamis/base/random.h"

#include <random>

namespace tamis {

uint64_t SeedFromSystem() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

}  // namespace tamis
