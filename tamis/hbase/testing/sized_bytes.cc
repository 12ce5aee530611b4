#include "tamis/hbase/testing/sized_bytes.h"

#include "tamis/base/coding.h"
#include "tamis/hbase/frame.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {

std::string Sized(std::string_view bytes) {
  std::string sized;
  PutBig32(&sized, static_cast<uint32_t>(bytes.size()));
  return sized.append(bytes);
}

std::string PreambleAnswer(const google::protobuf::MessageLite& answer) {
  pb::ResponseHeader header;
  header.set_call_id(0xffffffff);
  std::string body;
  AppendDelimited(header, &body);
  AppendDelimited(answer, &body);
  return Sized(body);
}

}  // namespace tamis::hbase
