// Bytes as scripted servers send them: behind their number, and answers to a preamble.
#pragma once

#include <google/protobuf/message_lite.h>

#include <string>
#include <string_view>

namespace tamis::hbase {

// The bytes behind their number, in 32 bits.
std::string Sized(std::string_view bytes);

// The frame that answers a preamble which asks for something: it belongs to no call.
std::string PreambleAnswer(const google::protobuf::MessageLite& answer);

}  // namespace tamis::hbase
