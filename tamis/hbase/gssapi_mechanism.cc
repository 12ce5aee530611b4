#include "tamis/hbase/gssapi_mechanism.h"

#include <gssapi/gssapi_krb5.h>

#include <algorithm>
#include <utility>

#include "tamis/base/coding.h"

namespace tamis::hbase {
namespace {

// The largest wrapped piece that the client announces to accept. Servers may send larger ones.
constexpr uint32_t kMaxReceivedBytes = 65536;
constexpr size_t kOfferBytes = 4;

uint8_t BitOf(Protection protection) {
  switch (protection) {
    case Protection::kAuthentication:
      return 1;
    case Protection::kIntegrity:
      return 2;
    case Protection::kPrivacy:
      return 4;
  }
  return 0;
}

std::string_view NameOf(Protection protection) {
  switch (protection) {
    case Protection::kAuthentication:
      return "authentication";
    case Protection::kIntegrity:
      return "integrity";
    case Protection::kPrivacy:
      return "privacy";
  }
  return "";
}

gss_buffer_desc View(std::string_view bytes) {
  return {.length = bytes.size(), .value = const_cast<char*>(bytes.data())};
}

// A buffer that GSSAPI fills and must release.
struct Filled {
  Filled() = default;
  ~Filled() {
    OM_uint32 ignored = 0;
    gss_release_buffer(&ignored, &buffer);
  }
  Filled(const Filled&) = delete;
  Filled& operator=(const Filled&) = delete;
  std::string ToString() const { return {static_cast<const char*>(buffer.value), buffer.length}; }

  gss_buffer_desc buffer = GSS_C_EMPTY_BUFFER;
};

std::string NamesOf(const std::vector<Protection>& protections) {
  std::string names;
  for (const Protection one : protections) {
    names.append(names.empty() ? "" : ", ").append(NameOf(one));
  }
  return names;
}

}  // namespace

Result<SaslStart> GssapiMechanism::Begin(gss_cred_id_t credential, KerberosParties parties,
                                         std::vector<Protection> protections) {
  std::unique_ptr<GssapiMechanism> mechanism(
      new GssapiMechanism(std::move(parties), std::move(protections)));
  TAMIS_ASSIGN_OR_RETURN(std::string token, mechanism->Step(credential, {}));
  std::string server = mechanism->parties_.server;
  return SaslStart{
      .mechanism = std::move(mechanism), .token = std::move(token), .server = std::move(server)};
}

GssapiMechanism::~GssapiMechanism() {
  OM_uint32 ignored = 0;
  gss_delete_sec_context(&ignored, &context_, GSS_C_NO_BUFFER);
}

Result<std::string> GssapiMechanism::Step(gss_cred_id_t credential, std::string_view challenge) {
  OM_uint32 minor = 0;
  gss_name_t server = GSS_C_NO_NAME;
  gss_buffer_desc name = View(parties_.server);
  OM_uint32 major = gss_import_name(&minor, &name, GSS_KRB5_NT_PRINCIPAL_NAME, &server);
  if (GSS_ERROR(major)) return KerberosFailure(parties_, major, minor);
  constexpr OM_uint32 kFlags = GSS_C_MUTUAL_FLAG | GSS_C_REPLAY_FLAG | GSS_C_SEQUENCE_FLAG |
                               GSS_C_INTEG_FLAG | GSS_C_CONF_FLAG;
  gss_buffer_desc input = View(challenge);
  Filled output;
  OM_uint32 flags = 0;
  major = gss_init_sec_context(&minor, credential, &context_, server, gss_mech_krb5, kFlags,
                               GSS_C_INDEFINITE, GSS_C_NO_CHANNEL_BINDINGS, &input, nullptr,
                               &output.buffer, &flags, nullptr);
  OM_uint32 ignored = 0;
  gss_release_name(&ignored, &server);
  if (GSS_ERROR(major)) return KerberosFailure(parties_, major, minor);
  is_established_ = (major & GSS_S_CONTINUE_NEEDED) == 0;
  if (is_established_ && (flags & GSS_C_MUTUAL_FLAG) == 0) {
    return FailedPrecondition("the server does not prove that it is " + parties_.server);
  }
  return output.ToString();
}

Result<SaslMechanism::Answer> GssapiMechanism::Next(std::string_view challenge) {
  if (!is_established_) {
    TAMIS_ASSIGN_OR_RETURN(std::string token, Step(GSS_C_NO_CREDENTIAL, challenge));
    return Answer{.token = std::move(token)};
  }
  TAMIS_ASSIGN_OR_RETURN(const std::string offer, Unwrap(challenge));
  TAMIS_ASSIGN_OR_RETURN(std::string choice, ChooseLayer(offer));
  return Answer{.token = std::move(choice), .is_last = true};
}

// offer and choice = one byte, the bits of layers | the maximum size of a wrapped piece, 3 bytes
Result<std::string> GssapiMechanism::ChooseLayer(std::string_view offer) {
  if (offer.size() != kOfferBytes) {
    return DataLoss("the server's offer of protections has " + std::to_string(offer.size()) +
                    " bytes instead of 4");
  }
  const auto layers = static_cast<uint8_t>(offer[0]);
  const auto chosen = std::ranges::find_if(
      protections_, [&](Protection one) { return (layers & BitOf(one)) != 0; });
  if (chosen == protections_.end()) {
    std::vector<Protection> offered;
    for (const Protection one :
         {Protection::kAuthentication, Protection::kIntegrity, Protection::kPrivacy}) {
      if ((layers & BitOf(one)) != 0) offered.push_back(one);
    }
    return FailedPrecondition("the server offers the protection " + NamesOf(offered) +
                              ", and this client accepts " + NamesOf(protections_) +
                              ": hbase.rpc.protection must agree");
  }
  layer_ = *chosen;
  OM_uint32 minor = 0;
  const bool is_private = layer_ == Protection::kPrivacy;
  if (wraps()) {
    const uint32_t max_wrapped = Reader(offer).Big32() & 0xffffff;
    const OM_uint32 major = gss_wrap_size_limit(&minor, context_, is_private ? 1 : 0,
                                                GSS_C_QOP_DEFAULT, max_wrapped, &max_piece_bytes_);
    if (GSS_ERROR(major)) return KerberosFailure(parties_, major, minor);
    if (max_piece_bytes_ == 0) {
      return FailedPrecondition("the server accepts wrapped pieces of only " +
                                std::to_string(max_wrapped) + " bytes");
    }
  }
  std::string choice;
  PutBig32(&choice, (uint32_t{BitOf(layer_)} << 24) | (wraps() ? kMaxReceivedBytes : 0));
  gss_buffer_desc plain = View(choice);
  Filled wrapped;
  const OM_uint32 major =
      gss_wrap(&minor, context_, 0, GSS_C_QOP_DEFAULT, &plain, nullptr, &wrapped.buffer);
  if (GSS_ERROR(major)) return KerberosFailure(parties_, major, minor);
  return wrapped.ToString();
}

Result<std::string> GssapiMechanism::Wrap(std::string_view bytes) {
  const int wanted = layer_ == Protection::kPrivacy ? 1 : 0;
  gss_buffer_desc plain = View(bytes);
  Filled wrapped;
  OM_uint32 minor = 0;
  int is_private = 0;
  const OM_uint32 major =
      gss_wrap(&minor, context_, wanted, GSS_C_QOP_DEFAULT, &plain, &is_private, &wrapped.buffer);
  if (GSS_ERROR(major)) return KerberosFailure(parties_, major, minor);
  if (is_private != wanted) return Internal("Kerberos does not encrypt what it should");
  return wrapped.ToString();
}

Result<std::string> GssapiMechanism::Unwrap(std::string_view piece) {
  gss_buffer_desc wrapped = View(piece);
  Filled plain;
  OM_uint32 minor = 0;
  int is_private = 0;
  const OM_uint32 major =
      gss_unwrap(&minor, context_, &wrapped, &plain.buffer, &is_private, nullptr);
  // Other bits than errors tell of pieces that were repeated, reordered or lost.
  if (major != GSS_S_COMPLETE) {
    return DataLoss("the server sends bytes that are not protected as agreed: " +
                    KerberosText(major, minor));
  }
  if (layer_ == Protection::kPrivacy && is_private == 0) {
    return DataLoss("the server sends bytes that are not encrypted as agreed");
  }
  return plain.ToString();
}

}  // namespace tamis::hbase
