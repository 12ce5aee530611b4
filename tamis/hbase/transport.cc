#include "tamis/hbase/transport.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>

namespace tamis::hbase {
namespace {

namespace asio = boost::asio;

// Returns OpenSSL's reason code; 0 for errors from elsewhere.
int ReasonOf(const boost::system::error_code& error) {
  if (error.category() != asio::error::get_ssl_category()) return 0;
  return ERR_GET_REASON(static_cast<unsigned>(error.value()));
}

// Whether the server rejects the client's certificate, or requires one and got none.
bool IsAboutOurCertificate(SSL* ssl, int reason) {
  switch (reason - SSL_AD_REASON_OFFSET) {
    case SSL_AD_HANDSHAKE_FAILURE:
      // An alert before the server's certificate has arrived has another cause.
      return SSL_get0_peer_certificate(ssl) != nullptr;
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_CERTIFICATE_REQUIRED:
      return true;
    default:
      return false;
  }
}

// Whether the received bytes are not TLS at all.
bool IsForeign(int reason) {
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
         reason == SSL_R_HTTP_REQUEST || reason == SSL_R_BAD_RECORD_TYPE;
}

// Whether the two sides have no TLS version or cipher in common.
bool IsAboutTheProtocol(int reason) {
  return reason == SSL_AD_REASON_OFFSET + SSL_AD_PROTOCOL_VERSION ||
         reason == SSL_AD_REASON_OFFSET + SSL_AD_HANDSHAKE_FAILURE ||
         reason == SSL_AD_REASON_OFFSET + SSL_AD_INSUFFICIENT_SECURITY ||
         reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_WRONG_SSL_VERSION;
}

// Advice on an invalid certificate; empty if OpenSSL's message is enough.
std::string AdviceOn(long verified) {
  switch (verified) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return "; give the certificate of the CA that signed it";
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "; look at the clock of this machine, and give the server one that is valid now";
    case X509_V_ERR_INVALID_PURPOSE:
      return "; give the server one that is for servers (extendedKeyUsage serverAuth)";
    default:
      return "";
  }
}

// Sets the host that the certificate must be for, and the host name to request (SNI).
bool Name(SSL* ssl, const std::string& host, bool verify) {
  boost::system::error_code error;
  asio::ip::make_address(host, error);
  const bool is_address = !error;
  if (!is_address && SSL_set_tlsext_host_name(ssl, host.c_str()) != 1) return false;
  if (!verify) return true;
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl);
  X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return (is_address ? X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str())
                     : X509_VERIFY_PARAM_set1_host(wanted, host.data(), host.size())) == 1;
}

}  // namespace

bool IsEnd(const boost::system::error_code& error) {
  return error == asio::error::eof || error == asio::ssl::error::stream_truncated ||
         error == asio::error::connection_reset;
}

std::string EndOf(const boost::system::error_code& error) {
  const bool end = IsEnd(error) && error != asio::error::connection_reset;
  return end ? "closed by the server" : error.message();
}

void Transport::Handshake(const std::string& host, std::function<void(Status)> done) {
  if (!Name(inside_->native_handle(), host, tls_->verify_host())) {
    asio::post(get_executor(), [host, done = std::move(done)] {
      done(FailedPrecondition("no certificate can be for \"" + host +
                              "\": name the server otherwise"));
    });
    return;
  }
  inside_->async_handshake(
      asio::ssl::stream_base::client,
      [this, host, done = std::move(done)](const boost::system::error_code& error) {
        done(error ? Failure(host, error) : Status());
      });
}

Status Transport::Failure(const std::string& host, const boost::system::error_code& error) {
  if (Status refusal = Refusal(error); !refusal.ok()) return refusal;
  if (IsForeign(ReasonOf(error))) {
    return FailedPrecondition(
        "it does not speak TLS: connect without, or switch it on there "
        "(hbase.server.netty.tls.enabled)");
  }
  const long verified = SSL_get_verify_result(inside_->native_handle());
  if (verified == X509_V_ERR_HOSTNAME_MISMATCH || verified == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    return FailedPrecondition("its certificate is not for " + host +
                              ": name servers as their certificates do, or do without the "
                              "verification of hosts");
  }
  if (verified != X509_V_OK) {
    return FailedPrecondition(std::string("its certificate is not trusted: ") +
                              X509_verify_cert_error_string(verified) + AdviceOn(verified));
  }
  if (IsAboutTheProtocol(ReasonOf(error))) {
    return FailedPrecondition("no TLS version or cipher in common (" + error.message() +
                              "): allow TLS 1.2 or newer there (hbase.rpc.tls.enabledProtocols, "
                              "hbase.rpc.tls.ciphersuites)");
  }
  return Unavailable("the TLS handshake failed: " + EndOf(error) +
                     " (is there an HBase with TLS on this port?)");
}

Status Transport::Refusal(const boost::system::error_code& error) {
  if (!has_tls() || !IsAboutOurCertificate(inside_->native_handle(), ReasonOf(error))) return {};
  return FailedPrecondition(
      tls_->has_certificate()
          ? "it refuses our certificate: " + error.message() +
                "; it has to be signed by a CA that the server trusts, for clients, and for this "
                "host"
          : "it requires a client certificate: give one, with its key (" + error.message() + ")");
}

}  // namespace tamis::hbase
