// The first bytes of a connection. All that differs by the version of HBase before the first call
// is here:
//
//   "HBas" 0 METHOD   METHOD: 0x50 none, 0x51 Kerberos, 0x52 a delegation token. Then comes the
//                     login, if there is one, and the connection header
//   "Securi"          asks for the server's principal; the connection goes on with another preamble
//   "Regist"          asks for the cluster's id, without a login; the server closes the connection
//
// The answer to a question is a frame with the call id -1 (frame.h): a message whose field 1 is a
// text, or an exception.
//
//   HBase 2.5, 3.0.0-alpha   knows no questions: it answers an exception and closes the connection
//   2.6, 3.0                 knows both. Before HBASE-30101 (2.6.4 lacks it), the answer to
//                            "Securi" is the user of the server's process, which is no principal
//   without Kerberos         "Securi" is answered by an exception; the connection stays open
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/hbase/frame.h"

namespace tamis::hbase {

namespace pb {
class ConnectionHeader;
}

class Transport;

inline constexpr char kNoLogin = '\x50';
std::string Preamble(char method);

// Fills in what the header says of this client besides its user and the service.
void DescribeClient(pb::ConnectionHeader* header);

enum class Question { kPrincipal, kClusterId };

// Asks one question at the beginning of a connection.
//
// Threads: use it only on the transport's io_context, which runs on one thread.
class PreambleQuestion : public std::enable_shared_from_this<PreambleQuestion> {
 public:
  struct Answer {
    Status status;         // why there is no text
    std::string text;      // not trustworthy: the server has not proved what it is
    bool is_open = false;  // another preamble may follow on the same connection
  };
  using Done = std::function<void(Answer)>;

  // `owner` keeps the transport alive while an operation is pending.
  PreambleQuestion(Transport& transport, std::shared_ptr<void> owner);
  // Calls `done` once, later.
  void Ask(Question question, Done done);

 private:
  void Read();
  bool Take();
  void End(Answer answer);

  Transport& transport_;
  std::shared_ptr<void> owner_;
  Question question_ = Question::kPrincipal;
  Done done_;
  FrameReader reader_;
};

}  // namespace tamis::hbase
