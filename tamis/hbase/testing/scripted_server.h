// A server whose answers a test scripts: it listens on this machine, reads a client's calls, and
// passes each to the test.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tamis/hbase/server_name.h"
#include "tamis/hbase/testing/loopback_listener.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {

class ScriptedServer {
 public:
  // One connection. May be used on any thread, and after it is closed.
  class Peer {
   public:
    explicit Peer(int socket) : socket_(socket) {}
    ~Peer();
    void Answer(uint32_t call_id, const google::protobuf::MessageLite& message,
                std::string_view cells = {});
    void Throw(uint32_t call_id, const std::string& class_name, const std::string& text = "",
               bool do_not_retry = false);
    void SendBytes(std::string_view bytes);
    void Close();
    // Returns exactly `size` bytes, or nothing if the client has closed.
    std::string Receive(size_t size);

   private:
    const int socket_;
    std::mutex mutex_;
  };
  using PeerPtr = std::shared_ptr<Peer>;

  struct Request {
    std::string service;
    std::string method;
    uint32_t call_id = 0;
    uint32_t timeout_ms = 0;
    uint32_t priority = 0;
    std::map<std::string, std::string> trace_headers;
    std::string parameter;
    std::string cells;

    template <class Message>
    Message Parsed() const {
      Message message;
      message.ParseFromString(parameter);
      return message;
    }
  };
  using Handler = std::function<void(const Request&, const PeerPtr&)>;

  ScriptedServer();
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  const Address& address() const { return listener_->address(); }
  ServerName name() const { return {address(), 1}; }

  // Sets the handler of a method. Calls without a handler are never answered.
  void On(const std::string& method, Handler handler);
  // Returns how often a method was called.
  int calls(const std::string& method) const;
  int connections() const { return connections_; }
  // by the client, or because of invalid bytes
  int connections_ended() const { return connections_ended_; }

 private:
  void Accept(int socket);
  void Serve(const PeerPtr& peer);

  mutable std::mutex mutex_;
  std::map<std::string, Handler> handlers_;
  std::map<std::string, int> calls_;
  std::vector<PeerPtr> peers_;
  std::vector<std::thread> threads_;
  std::atomic<int> connections_ = 0;
  std::atomic<int> connections_ended_ = 0;
  std::unique_ptr<LoopbackListener> listener_;
};

}  // namespace tamis::hbase
