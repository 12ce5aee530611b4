#include "tamis/hbase/testing/gssapi_server.h"

#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>

#include <cstdlib>
#include <optional>
#include <string_view>

#include "tamis/base/coding.h"
#include "tamis/hbase/frame.h"
#include "tamis/hbase/testing/sized_bytes.h"

namespace tamis::hbase {
namespace {

constexpr char kLayers[] = {'\x01', '\x02', '\x04'};  // by Protection
constexpr uint32_t kMaxReceivedBytes = 65536;

std::string TakeSized(ScriptedServer::Peer& peer) {
  const std::string size = peer.Receive(4);
  return size.empty() ? "" : peer.Receive(Reader(size).Big32());
}

std::string Taken(gss_buffer_desc* buffer) {
  std::string bytes(static_cast<const char*>(buffer->value), buffer->length);
  OM_uint32 ignored = 0;
  gss_release_buffer(&ignored, buffer);
  return bytes;
}

gss_buffer_desc View(const std::string& bytes) {
  return {.length = bytes.size(), .value = const_cast<char*>(bytes.data())};
}

}  // namespace

// One connection. Its functions return nothing when the client has closed or is refused.
class GssapiServer::Side {
 public:
  Side(Peer& peer, Protection protection) : peer_(peer), protection_(protection) {}
  ~Side() {
    OM_uint32 ignored = 0;
    gss_delete_sec_context(&ignored, &context_, GSS_C_NO_BUFFER);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  bool LogIn(gss_cred_id_t credential) {
    if (peer_.Receive(6) != std::string("HBas\0\x51", 6)) return false;
    OM_uint32 major = GSS_S_CONTINUE_NEEDED;
    while (major == GSS_S_CONTINUE_NEEDED) {
      const std::string token = TakeSized(peer_);
      gss_buffer_desc input = View(token);
      gss_buffer_desc output = GSS_C_EMPTY_BUFFER;
      OM_uint32 minor = 0;
      major =
          gss_accept_sec_context(&minor, &context_, credential, &input, GSS_C_NO_CHANNEL_BINDINGS,
                                 nullptr, nullptr, &output, nullptr, nullptr, nullptr);
      if (GSS_ERROR(major)) {
        peer_.SendBytes(std::string("\0\0\0\1", 4) + Sized("javax.security.sasl.SaslException") +
                        Sized("GSS initiate failed"));
        return false;
      }
      SendChallenge(Taken(&output));
    }
    TakeSized(peer_);  // empty
    std::string offer;
    PutBig32(&offer, kMaxReceivedBytes);
    offer[0] = kLayers[static_cast<int>(protection_)];
    SendChallenge(Wrapped(offer, false));
    const auto choice = Unwrapped(TakeSized(peer_));
    return choice && choice->size() == 4 && (*choice)[0] == offer[0];
  }

  // A frame without its size.
  std::optional<std::string> TakeFrame() {
    const auto size = Take(4);
    return size ? Take(Reader(*size).Big32()) : std::nullopt;
  }
  void Send(const std::string& bytes) {
    const bool is_private = protection_ == Protection::kPrivacy;
    peer_.SendBytes(wraps() ? Sized(Wrapped(bytes, is_private)) : bytes);
  }

 private:
  bool wraps() const { return protection_ != Protection::kAuthentication; }
  void SendChallenge(const std::string& token) {
    peer_.SendBytes(std::string(4, '\0') + Sized(token));
  }
  std::string Wrapped(const std::string& bytes, bool is_private) {
    gss_buffer_desc plain = View(bytes);
    gss_buffer_desc wrapped = GSS_C_EMPTY_BUFFER;
    OM_uint32 minor = 0;
    if (GSS_ERROR(gss_wrap(&minor, context_, is_private ? 1 : 0, GSS_C_QOP_DEFAULT, &plain, nullptr,
                           &wrapped))) {
      return "";
    }
    return Taken(&wrapped);
  }
  std::optional<std::string> Unwrapped(const std::string& bytes) {
    gss_buffer_desc wrapped = View(bytes);
    gss_buffer_desc plain = GSS_C_EMPTY_BUFFER;
    OM_uint32 minor = 0;
    if (GSS_ERROR(gss_unwrap(&minor, context_, &wrapped, &plain, nullptr, nullptr))) return {};
    return Taken(&plain);
  }
  std::optional<std::string> Take(size_t size) {
    while (plain_.size() < size) {
      const std::string bytes = wraps() ? TakeSized(peer_) : peer_.Receive(size - plain_.size());
      if (bytes.empty()) return {};
      const auto more = wraps() ? Unwrapped(bytes) : bytes;
      if (!more) return {};
      plain_ += *more;
    }
    std::string taken = plain_.substr(0, size);
    plain_.erase(0, size);
    return taken;
  }

  Peer& peer_;
  const Protection protection_;
  gss_ctx_id_t context_ = GSS_C_NO_CONTEXT;
  std::string plain_;
};

GssapiServer::GssapiServer(const std::string& keytab_file, Protection protection)
    : protection_(protection) {
  gss_key_value_element_desc keytab{"keytab", keytab_file.c_str()};
  const gss_key_value_set_desc store{.count = 1, .elements = &keytab};
  OM_uint32 minor = 0;
  if (GSS_ERROR(gss_acquire_cred_from(&minor, GSS_C_NO_NAME, GSS_C_INDEFINITE, GSS_C_NO_OID_SET,
                                      GSS_C_ACCEPT, &store, &credential_, nullptr, nullptr))) {
    std::abort();
  }
  listener_ = std::make_unique<LoopbackListener>([this](int socket) {
    const auto peer = peers_.emplace_back(std::make_shared<Peer>(socket));
    threads_.emplace_back([this, peer] { Serve(*peer); });
  });
}

GssapiServer::~GssapiServer() {
  listener_.reset();
  for (const auto& peer : peers_) peer->Close();
  for (std::thread& thread : threads_) thread.join();
  OM_uint32 ignored = 0;
  gss_release_cred(&ignored, &credential_);
}

void GssapiServer::Serve(Peer& peer) {
  Side side(peer, protection_);
  if (!side.LogIn(credential_)) return;
  ++logins_;
  if (!side.TakeFrame()) return;  // the connection header
  while (const auto frame = side.TakeFrame()) {
    std::string_view rest = *frame;
    pb::RequestHeader call;
    const auto bytes = TakeDelimited(&rest);
    if (!bytes || !call.ParseFromString(std::string(*bytes))) return;
    pb::ResponseHeader header;
    header.set_call_id(call.call_id());
    header.mutable_exception()->set_exception_class_name(kAnswer);
    header.mutable_exception()->set_do_not_retry(true);
    std::string body;
    AppendDelimited(header, &body);
    side.Send(Sized(body));
  }
}

}  // namespace tamis::hbase
