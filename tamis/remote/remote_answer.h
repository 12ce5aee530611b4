// The errors of a server (`tamis serve`) and of the way to it, as a Status.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <optional>

#include "tamis/remote/http_client.h"

namespace tamis {

// Ok: the answer is whole and has status 200. kUnavailable or kBusy: the server did not carry out
// the request, or it was one that changes nothing.
//
// `changes`: the request changes something. Then kDeadlineExceeded says that it may have been
// carried out.
Status StatusOf(const HttpClient& client, const HttpClient::Answer& answer, bool changes);

// The number of a server that refuses to write: it has carried out nothing of the request, and
// never will. nullopt: the answer is no such refusal.
std::optional<uint64_t> RefusingProcessOf(const HttpClient::Answer& answer);

}  // namespace tamis
