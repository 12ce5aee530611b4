#include "tamis/cluster/error.h"

namespace tamis {

void SetError(const Status& status, pb::Error* error) {
  error->set_code(static_cast<uint32_t>(status.code()));
  error->set_message(status.message());
}

Status ToStatus(const pb::Error& error) {
  if (error.code() == 0) return Status::Ok();
  if (error.code() > static_cast<uint32_t>(StatusCode::kInternal)) {
    return Internal("error " + std::to_string(error.code()) +
                    " of a newer region server: " + error.message());
  }
  return {static_cast<StatusCode>(error.code()), error.message()};
}

}  // namespace tamis
