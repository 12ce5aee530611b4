#include "tamis/base/exception_status.h"

#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace tamis {
namespace {

// Fits into a std::string without an allocation.
constexpr std::string_view kOutOfMemory = "memory is short";
static_assert(kOutOfMemory.size() <= 15);

}  // namespace

Status OutOfMemory() { return ResourceExhausted(std::string(kOutOfMemory)); }

bool IsOutOfMemory(const Status& status) {
  return status.code() == StatusCode::kResourceExhausted &&
         std::string_view(status.message()).ends_with(kOutOfMemory);
}

Status StatusOfException() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return OutOfMemory();
    } catch (const std::system_error& error) {
      if (error.code() != std::errc::resource_unavailable_try_again) return Internal(error.what());
      return ResourceExhausted(std::string("no thread can be started: ") + error.what());
    } catch (const std::exception& error) {
      return Internal(error.what());
    } catch (...) {
      return Internal("an exception of an unknown type");
    }
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

}  // namespace tamis
