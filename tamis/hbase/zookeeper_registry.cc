#include "tamis/hbase/zookeeper_registry.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <utility>

#include "tamis/base/coding.h"
#include "tamis/hbase/region.h"
#include "tamis/hbase/visit.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

namespace asio = boost::asio;

// The time limit for one member; another one may answer faster.
constexpr std::chrono::milliseconds kOneTry(2000);
// HBase's znodes have less than a hundred bytes; ZooKeeper's own limit is this.
constexpr uint32_t kMaxFrameBytes = 1 << 20;

// ZooKeeper's protocol: frames of int32 size | fields; numbers are big-endian, texts have their
// size before them.
constexpr uint32_t kSessionTimeoutMs = 10'000;
constexpr size_t kPasswordBytes = 16;
constexpr uint32_t kGetData = 4;
constexpr auto kCloseSession = static_cast<uint32_t>(-11);
constexpr int32_t kNoNode = -101;
constexpr int32_t kNoAuth = -102;

std::string Frame(std::string_view fields) {
  std::string frame;
  PutBig32(&frame, static_cast<uint32_t>(fields.size()));
  return frame.append(fields);
}

std::string ConnectRequest() {
  std::string fields;
  PutBig32(&fields, 0);  // version
  PutBig64(&fields, 0);  // the last change that the client has seen
  PutBig32(&fields, kSessionTimeoutMs);
  PutBig64(&fields, 0);  // a new session
  PutBig32(&fields, kPasswordBytes);
  fields.append(kPasswordBytes, '\0');
  fields += '\0';  // not read-only
  return Frame(fields);
}

std::string GetDataRequest(std::string_view path) {
  std::string fields;
  PutBig32(&fields, 1);  // the number of the request
  PutBig32(&fields, kGetData);
  PutBig32(&fields, static_cast<uint32_t>(path.size()));
  fields += path;
  fields += '\0';  // without a watch
  return Frame(fields);
}

std::string CloseRequest() {
  std::string fields;
  PutBig32(&fields, 2);
  PutBig32(&fields, kCloseSession);
  return Frame(fields);
}

Result<std::string> ParseDataAnswer(std::string_view frame, const std::string& path) {
  Reader reader(frame);
  reader.Big32();  // the number of the request
  reader.Big64();  // the last change
  const auto error = static_cast<int32_t>(reader.Big32());
  if (reader.ok() && error == kNoNode) {
    return Unavailable("it has no znode " + path +
                       ": HBase does not run, or zookeeper.znode.parent is another one");
  }
  if (reader.ok() && error == kNoAuth) {
    return FailedPrecondition("it forbids to read " + path + " without authentication");
  }
  if (reader.ok() && error != 0) {
    return Unavailable("error " + std::to_string(error) + " for " + path);
  }
  const std::string_view value = reader.Bytes(reader.Big32());
  if (!reader.ok()) return DataLoss("an answer that cannot be read (is it a ZooKeeper?)");
  return std::string(value);
}

Task<Result<std::string>> ReadFrame(Visit& visit) {
  boost::system::error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  std::string size_bytes(4, '\0');
  co_await asio::async_read(*visit.transport(), asio::buffer(size_bytes), token);
  if (error) co_return visit.Fault(error);
  const uint32_t size = Reader(size_bytes).Big32();
  if (size > kMaxFrameBytes) co_return DataLoss("its answer is not ZooKeeper's");
  std::string frame(size, '\0');
  co_await asio::async_read(*visit.transport(), asio::buffer(frame), token);
  if (error) co_return visit.Fault(error);
  co_return frame;
}

// The value of a znode, from one member.
Task<Result<std::string>> ReadZnode(Visit& visit, Address member, std::string path) {
  TAMIS_CO_RETURN_IF_ERROR(co_await visit.Connect(member, member.host));
  boost::system::error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  const std::string requests = ConnectRequest() + GetDataRequest(path);
  co_await asio::async_write(*visit.transport(), asio::buffer(requests), token);
  if (error) co_return visit.Fault(error);
  auto connected = co_await ReadFrame(visit);
  if (!connected.ok()) co_return connected.status();
  auto frame = co_await ReadFrame(visit);
  if (!frame.ok()) co_return frame.status();
  auto value = ParseDataAnswer(*frame, path);
  const std::string close = CloseRequest();
  co_await asio::async_write(*visit.transport(), asio::buffer(close), token);
  co_return value;
}

template <class Message>
Result<Message> Parse(const std::string& bytes) {
  Message message;
  if (message.ParseFromString(bytes)) return message;
  return DataLoss("a znode of HBase cannot be read");
}

}  // namespace

Result<std::string> MessageOfZnode(std::string_view value) {
  constexpr std::string_view kMagic = "PBUF";
  Reader reader(value);
  if (value.starts_with('\xff')) {
    reader.Byte();
    reader.Bytes(reader.Big32());
  }
  if (reader.Bytes(kMagic.size()) == kMagic) return std::string(reader.rest());
  return DataLoss("a znode of HBase cannot be read: its value does not begin as HBase's do");
}

Task<Result<std::string>> ZooKeeperRegistry::Read(std::string name, Deadline deadline) {
  const std::string path = parent_ + "/" + name;
  std::string reasons;
  size_t final_failures = 0;
  for (size_t i = 0; i < members_.size() && Clock::now() < deadline; ++i) {
    const Address member = members_[next_];
    Visit visit(io_, timers_, std::min(deadline, Clock::now() + kOneTry));
    auto value = co_await ReadZnode(visit, member, path);
    answered_ |= value.ok();
    if (value.ok()) co_return MessageOfZnode(*value);
    reasons += (reasons.empty() ? "" : "; ") + member.ToString() + ": " + value.status().message();
    const StatusCode code = value.status().code();
    const bool is_foreign = visit.no_server() || code == StatusCode::kDataLoss;
    if (code == StatusCode::kFailedPrecondition || (is_foreign && !answered_)) ++final_failures;
    next_ = (next_ + 1) % members_.size();
  }
  if (reasons.empty()) co_return Unavailable("ZooKeeper: no time left");
  co_return Status(final_failures == members_.size() ? StatusCode::kFailedPrecondition
                                                     : StatusCode::kUnavailable,
                   "ZooKeeper does not tell where HBase is: " + reasons);
}

Task<Result<ServerName>> ZooKeeperRegistry::MetaServer(Deadline deadline) {
  const auto bytes = co_await Read("meta-region-server", deadline);
  if (!bytes.ok()) co_return bytes.status();
  const auto meta = Parse<pb::MetaRegionServer>(*bytes);
  if (!meta.ok()) co_return meta.status();
  co_return FromProto(meta->server());
}

Task<Result<ServerName>> ZooKeeperRegistry::ActiveMaster(Deadline deadline) {
  const auto bytes = co_await Read("master", deadline);
  if (!bytes.ok()) co_return bytes.status();
  const auto master = Parse<pb::Master>(*bytes);
  if (!master.ok()) co_return master.status();
  co_return FromProto(master->master());
}

Task<Result<std::string>> ZooKeeperRegistry::ClusterId(Deadline deadline) {
  const auto bytes = co_await Read("hbaseid", deadline);
  if (!bytes.ok()) co_return bytes.status();
  const auto id = Parse<pb::ClusterId>(*bytes);
  if (!id.ok()) co_return id.status();
  co_return id->cluster_id();
}

}  // namespace tamis::hbase
