#include "tamis/hbase/testing/scripted_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "tamis/base/coding.h"
#include "tamis/hbase/frame.h"

namespace tamis::hbase {

ScriptedServer::Peer::~Peer() { ::close(socket_); }

void ScriptedServer::Peer::SendBytes(std::string_view bytes) {
  std::lock_guard lock(mutex_);
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

void ScriptedServer::Peer::Answer(uint32_t call_id, const google::protobuf::MessageLite& message,
                                  std::string_view cells) {
  pb::ResponseHeader header;
  header.set_call_id(call_id);
  if (!cells.empty()) {
    header.mutable_cell_block_meta()->set_length(static_cast<uint32_t>(cells.size()));
  }
  std::string body;
  AppendDelimited(header, &body);
  AppendDelimited(message, &body);
  body += cells;
  std::string frame;
  PutBig32(&frame, static_cast<uint32_t>(body.size()));
  SendBytes(frame + body);
}

void ScriptedServer::Peer::Throw(uint32_t call_id, const std::string& class_name,
                                 const std::string& text, bool do_not_retry) {
  pb::ResponseHeader header;
  header.set_call_id(call_id);
  const std::string full_name =
      (class_name.starts_with("java.") ? "" : "org.apache.hadoop.hbase.") + class_name;
  header.mutable_exception()->set_exception_class_name(full_name);
  header.mutable_exception()->set_stack_trace(full_name + ": " + text + "\n\tat somewhere");
  header.mutable_exception()->set_do_not_retry(do_not_retry);
  std::string body;
  AppendDelimited(header, &body);
  std::string frame;
  PutBig32(&frame, static_cast<uint32_t>(body.size()));
  SendBytes(frame + body);
}

void ScriptedServer::Peer::Close() { ::shutdown(socket_, SHUT_RDWR); }

std::string ScriptedServer::Peer::Receive(size_t size) {
  std::string bytes(size, '\0');
  for (size_t at = 0; at < size;) {
    const ssize_t got = ::recv(socket_, bytes.data() + at, size - at, 0);
    if (got <= 0) return {};
    at += static_cast<size_t>(got);
  }
  return bytes;
}

ScriptedServer::ScriptedServer()
    : listener_(std::make_unique<LoopbackListener>([this](int socket) { Accept(socket); })) {}

ScriptedServer::~ScriptedServer() {
  listener_.reset();
  {
    std::lock_guard lock(mutex_);
    for (const PeerPtr& peer : peers_) peer->Close();
  }
  for (std::thread& thread : threads_) thread.join();
}

void ScriptedServer::On(const std::string& method, Handler handler) {
  std::lock_guard lock(mutex_);
  handlers_[method] = std::move(handler);
}

int ScriptedServer::calls(const std::string& method) const {
  std::lock_guard lock(mutex_);
  const auto found = calls_.find(method);
  return found == calls_.end() ? 0 : found->second;
}

void ScriptedServer::Accept(int socket) {
  ++connections_;
  auto peer = std::make_shared<Peer>(socket);
  std::lock_guard lock(mutex_);
  peers_.push_back(peer);
  threads_.emplace_back([this, peer] {
    Serve(peer);
    ++connections_ended_;
  });
}

void ScriptedServer::Serve(const PeerPtr& peer) {
  const auto take_sized = [&] {
    const std::string size = peer->Receive(4);
    return size.empty() ? std::string() : peer->Receive(Reader(size).Big32());
  };
  if (peer->Receive(6) != std::string("HBas\0\x50", 6)) {
    peer->Throw(0xffffffff, "ipc.FatalConnectionException", "Expected HEADER=HBas", true);
    return peer->Close();
  }
  pb::ConnectionHeader greeting;
  if (!greeting.ParseFromString(take_sized())) return peer->Close();
  while (true) {
    const std::string frame = take_sized();
    if (frame.empty()) return;
    std::string_view rest = frame;
    const auto header_bytes = TakeDelimited(&rest);
    const auto parameter = TakeDelimited(&rest);
    pb::RequestHeader header;
    if (!header_bytes || !parameter || !header.ParseFromString(std::string(*header_bytes))) {
      return peer->Close();
    }
    Request request{.service = greeting.service_name(),
                    .method = header.method_name(),
                    .call_id = header.call_id(),
                    .timeout_ms = header.timeout(),
                    .priority = header.priority(),
                    .trace_headers = {header.trace_info().headers().begin(),
                                      header.trace_info().headers().end()},
                    .parameter = std::string(*parameter),
                    .cells = std::string(rest)};
    Handler handler;
    {
      std::lock_guard lock(mutex_);
      ++calls_[request.method];
      if (const auto found = handlers_.find(request.method); found != handlers_.end()) {
        handler = found->second;
      }
    }
    if (handler) handler(request, peer);
  }
}

}  // namespace tamis::hbase
