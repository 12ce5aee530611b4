#include "tamis/cluster/error.h"

namespace tamis {
namespace {

constexpr bool IsSame(StatusCode ours, pb::Error::Code theirs) {
  return static_cast<int>(ours) == static_cast<int>(theirs);
}
static_assert(IsSame(StatusCode::kOk, pb::Error::OK) &&
              IsSame(StatusCode::kInvalidArgument, pb::Error::INVALID_ARGUMENT) &&
              IsSame(StatusCode::kNotFound, pb::Error::NOT_FOUND) &&
              IsSame(StatusCode::kAlreadyExists, pb::Error::ALREADY_EXISTS) &&
              IsSame(StatusCode::kFailedPrecondition, pb::Error::FAILED_PRECONDITION) &&
              IsSame(StatusCode::kUnavailable, pb::Error::UNAVAILABLE) &&
              IsSame(StatusCode::kBusy, pb::Error::BUSY) &&
              IsSame(StatusCode::kDeadlineExceeded, pb::Error::DEADLINE_EXCEEDED) &&
              IsSame(StatusCode::kCancelled, pb::Error::CANCELLED) &&
              IsSame(StatusCode::kDataLoss, pb::Error::DATA_LOSS) &&
              IsSame(StatusCode::kResourceExhausted, pb::Error::RESOURCE_EXHAUSTED) &&
              IsSame(StatusCode::kInternal, pb::Error::INTERNAL));

}  // namespace

void SetError(const Status& status, pb::Error* error) {
  error->set_code(static_cast<pb::Error::Code>(status.code()));
  error->set_message(status.message());
}

Status ToStatus(const pb::Error& error) {
  if (error.code() == pb::Error::OK) return Status::Ok();
  if (!pb::Error::Code_IsValid(error.code())) {
    return Internal("error " + std::to_string(static_cast<int>(error.code())) +
                    " of a newer region server: " + error.message());
  }
  return {static_cast<StatusCode>(error.code()), error.message()};
}

Status FailureOf(const pb::Error& error) {
  if (error.code() != pb::Error::OK) return ToStatus(error);
  return DataLoss("a region server sent an error that does not say which: " + error.message());
}

}  // namespace tamis
