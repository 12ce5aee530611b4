#include "tamis/hbase/preamble.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "tamis/hbase/exception.h"
#include "tamis/hbase/transport.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

namespace asio = boost::asio;

// Longer than any name or exception.
constexpr size_t kMaxAnswerBytes = 64 << 10;
constexpr std::string_view kNoSecurity = "SecurityNotEnabledException";

std::string_view BytesOf(Question question) {
  return question == Question::kPrincipal ? "Securi" : "Regist";
}

// The text in field 1 of the answer's message.
std::optional<std::string> TextOf(Question question, std::string_view message) {
  const std::string bytes(message);
  if (question == Question::kPrincipal) {
    pb::SecurityPreamableResponse answer;
    if (!answer.ParseFromString(bytes)) return {};
    return answer.server_principal();
  }
  pb::GetConnectionRegistryResponse answer;
  if (!answer.ParseFromString(bytes)) return {};
  return answer.cluster_id();
}

}  // namespace

std::string Preamble(char method) { return std::string("HBas\0", 5) + method; }

void DescribeClient(pb::ConnectionHeader* header) {
  header->set_cell_block_codec_class("org.apache.hadoop.hbase.codec.KeyValueCodec");
  // A server reads it to know what the client understands: that of 2.6.
  pb::VersionInfo& version = *header->mutable_version_info();
  version.set_version("2.6.0");
  version.set_url("");
  version.set_revision("");
  version.set_user("");
  version.set_date("");
  version.set_src_checksum("");
  version.set_version_major(2);
  version.set_version_minor(6);
}

PreambleQuestion::PreambleQuestion(Transport& transport, std::shared_ptr<void> owner)
    : transport_(transport), owner_(std::move(owner)), reader_(kMaxAnswerBytes) {}

void PreambleQuestion::Ask(Question question, Done done) {
  question_ = question;
  done_ = std::move(done);
  asio::async_write(
      transport_, asio::buffer(BytesOf(question)),
      [self = shared_from_this()](const boost::system::error_code& error, size_t) {
        if (!error) return self->Read();
        self->End({.status = Unavailable("the connection broke: " + EndOf(error)), .text = {}});
      });
}

void PreambleQuestion::Read() {
  const auto space = reader_.Space();
  transport_.async_read_some(
      asio::buffer(space.data(), space.size()),
      [self = shared_from_this()](const boost::system::error_code& error, size_t size) {
        if (error) {
          const Status refusal = self->transport_.Refusal(error);
          return self->End({.status = !refusal.ok()
                                          ? refusal
                                          : Unavailable("the connection broke: " + EndOf(error)),
                            .text = {}});
        }
        self->reader_.Commit(size);
        if (!self->Take()) self->Read();
      });
}

// Returns false if the answer is incomplete.
bool PreambleQuestion::Take() {
  const auto frame = reader_.Next();
  if (frame.ok() && !*frame) return false;
  pb::ResponseHeader header;
  const auto parts = frame.ok() && !(*frame)->is_cut() ? ParseAnswer((*frame)->bytes, &header)
                                                       : Result<AnswerParts>(DataLoss(""));
  if (!parts.ok()) {
    End({.status = DataLoss("it does not answer as an HBase does"), .text = {}});
    return true;
  }
  if (header.has_exception()) {
    const Exception exception = ExceptionOf(header.exception());
    End({.status = FailedPrecondition(exception.ToStatus().message()),
         .text = {},
         .is_open = exception.ShortName() == kNoSecurity});
    return true;
  }
  const auto text = TextOf(question_, parts->message);
  End({.status = text ? Status() : DataLoss("an answer that cannot be read"),
       .text = text.value_or(""),
       .is_open = question_ == Question::kPrincipal && text});
  return true;
}

void PreambleQuestion::End(Answer answer) {
  // Releases the owner when the handler that called has ended.
  const auto owner = std::exchange(owner_, nullptr);
  std::exchange(done_, nullptr)(std::move(answer));
}

}  // namespace tamis::hbase
