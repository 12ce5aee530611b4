#include "tamis/hbase/sasl_handshake.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "tamis/base/coding.h"
#include "tamis/hbase/preamble.h"
#include "tamis/hbase/transport.h"

namespace tamis::hbase {
namespace {

namespace asio = boost::asio;

constexpr size_t kReadBytes = 4096;

void AppendToken(std::string_view token, std::string* out) {
  PutBig32(out, static_cast<uint32_t>(token.size()));
  out->append(token);
}

}  // namespace

void SaslHandshake::Run(char method, Done done) {
  done_ = std::move(done);
  out_ = Preamble(method);
  AppendToken(start_.token, &out_);
  Write(false);
}

void SaslHandshake::Write(bool is_last) {
  asio::async_write(
      transport_, asio::buffer(out_),
      [self = shared_from_this(), is_last](const boost::system::error_code& error, size_t) {
        if (error) {
          return self->End(Unavailable("the connection broke during the login: " + EndOf(error)));
        }
        self->out_.clear();
        is_last ? self->End(Status()) : self->Read();
      });
}

void SaslHandshake::Read() {
  // Memory follows the bytes that come, not the announced size.
  const size_t size = in_.size();
  in_.resize(size + kReadBytes);
  transport_.async_read_some(
      asio::buffer(in_.data() + size, kReadBytes),
      [self = shared_from_this(), size](const boost::system::error_code& error, size_t more) {
        if (error) {
          const Status refusal = self->transport_.Refusal(error);
          return self->End(!refusal.ok() ? refusal
                                         : Unavailable("the connection broke during the login: " +
                                                       EndOf(error)));
        }
        self->in_.resize(size + more);
        const auto reply = ParseSaslReply(self->in_);
        if (!reply.ok()) return self->End(reply.status());
        if (!*reply) return self->Read();
        self->Take(**reply);
      });
}

void SaslHandshake::Take(const SaslReply& reply) {
  if (reply.size < in_.size()) {
    return End(DataLoss("the server sends more than its turn of the login"));
  }
  switch (reply.kind) {
    case SaslReply::Kind::kNoSecurity:
      no_security_ = true;
      return End(Status());
    case SaslReply::Kind::kRefusal:
      return End(FailedPrecondition(std::string(reply.message)), true);
    case SaslReply::Kind::kChallenge:
      break;
  }
  auto answer = start_.mechanism->Next(reply.token);
  in_.clear();
  if (!answer.ok()) return End(answer.status());
  if (!answer->token) return answer->is_last ? End(Status()) : Read();
  AppendToken(*answer->token, &out_);
  Write(answer->is_last);
}

void SaslHandshake::End(Status status, bool refused) {
  Outcome outcome{.status = std::move(status), .refused = refused};
  if (outcome.status.ok() && !no_security_) outcome.mechanism = std::move(start_.mechanism);
  // Releases the owner when the handler that called has ended.
  const auto owner = std::exchange(owner_, nullptr);
  std::exchange(done_, nullptr)(std::move(outcome));
}

}  // namespace tamis::hbase
