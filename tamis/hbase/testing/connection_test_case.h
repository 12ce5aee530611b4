// The fixture of connection tests: a scripted server, and calls that block until they end.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tamis/hbase/connection.h"
#include "tamis/hbase/testing/scripted_server.h"

namespace tamis::hbase {

inline constexpr std::chrono::seconds kLong(60);

class ConnectionTest : public testing::Test {
 protected:
  void Connect(Connection::Options options = {}) { ConnectTo(server_.address(), options); }
  void ConnectTo(const Address& address, Connection::Options options) {
    options.service = "ClientService";
    options.user = "somebody";
    connection_ = Connection::Open(io_, timers_, address, options);
  }

  static Call MakeCall(const std::string& method, Clock::duration time = kLong) {
    return {.method = method,
            .parameter = std::make_shared<pb::GetClusterIdRequest>(),
            .cells = {},
            .deadline = Clock::now() + time};
  }

  // Sends all calls and runs the io_context until each has ended.
  std::vector<Reply> SendAll(std::vector<Call> calls) {
    std::vector<std::optional<Reply>> replies(calls.size());
    size_t left = calls.size();
    for (size_t i = 0; i < calls.size(); ++i) {
      connection_->Send(std::move(calls[i]), [&, i](Reply reply) {
        replies[i] = std::move(reply);
        --left;
      });
    }
    while (left > 0) io_.run_one();
    std::vector<Reply> out;
    for (auto& reply : replies) out.push_back(*std::move(reply));
    return out;
  }

  Reply Send(Call call) {
    std::vector<Call> calls;
    calls.push_back(std::move(call));
    return SendAll(std::move(calls)).front();
  }

  void TearDown() override {
    if (connection_) connection_->Close(Cancelled("over"));
    io_.poll();
  }

  boost::asio::io_context io_;
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(io_);
  Timers timers_{io_};
  ScriptedServer server_;
  std::shared_ptr<Connection> connection_;
};

inline pb::GetClusterIdResponse Id(const std::string& id) {
  pb::GetClusterIdResponse answer;
  answer.set_cluster_id(id);
  return answer;
}

}  // namespace tamis::hbase
