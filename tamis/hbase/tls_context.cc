#include "tamis/hbase/tls_context.h"

#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

namespace tamis::hbase {
namespace {

namespace asio = boost::asio;

// Checks that the file can be opened, because OpenSSL's errors do not name the file.
Status CanBeRead(const std::string& what, const std::string& file) {
  errno = 0;
  if (std::ifstream(file).good()) return {};
  return InvalidArgument("cannot read " + what + " \"" + file +
                         "\": " + std::generic_category().message(errno));
}

Status Unusable(const std::string& what, const std::string& file,
                const boost::system::error_code& error) {
  return InvalidArgument("cannot use " + what + " \"" + file + "\": " + error.message() +
                         "; it has to be a PEM file");
}

Status LoadTrusted(const std::string& file, asio::ssl::context* context) {
  boost::system::error_code error;
  if (file.empty()) {
    context->set_default_verify_paths(error);
    if (error)
      return InvalidArgument("cannot find the authorities that this machine trusts: " +
                             error.message());
    return {};
  }
  const std::string what = "the certificates to be trusted in";
  TAMIS_RETURN_IF_ERROR(CanBeRead(what, file));
  context->load_verify_file(file, error);
  return error ? Unusable(what, file, error) : Status();
}

Status LoadOurs(const std::string& certificate_file, const std::string& key_file,
                asio::ssl::context* context) {
  const std::string certificate = "the certificate in";
  const std::string key = "the key in";
  TAMIS_RETURN_IF_ERROR(CanBeRead(certificate, certificate_file));
  TAMIS_RETURN_IF_ERROR(CanBeRead(key, key_file));
  boost::system::error_code error;
  context->use_certificate_chain_file(certificate_file, error);
  if (error) return Unusable(certificate, certificate_file, error);
  // Without this callback OpenSSL would ask for the password on the terminal.
  context->set_password_callback([](size_t, asio::ssl::context::password_purpose) { return ""; },
                                 error);
  context->use_private_key_file(key_file, asio::ssl::context::pem, error);
  if (!error) return {};
  return InvalidArgument("cannot use " + key + " \"" + key_file + "\": " + error.message() +
                         "; it has to be the certificate's, in a PEM file, without a password");
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::Load(const TlsOptions& options) {
  if (options.certificate_file.empty() && !options.key_file.empty()) {
    return InvalidArgument("the key \"" + options.key_file +
                           "\" is of no use without a certificate: name that, too");
  }
  std::shared_ptr<TlsContext> tls(new TlsContext(options));
  asio::ssl::context* context = &tls->context_;
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  context->set_verify_mode(asio::ssl::verify_peer);
  // A certificate in the trusted file is trusted even if it is not a root, as in Java: HBase's own
  // guide creates self-signed certificates for servers.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context->native_handle()),
                              X509_V_FLAG_PARTIAL_CHAIN);
  TAMIS_RETURN_IF_ERROR(LoadTrusted(options.ca_file, context));
  if (tls->has_certificate()) {
    TAMIS_RETURN_IF_ERROR(
        LoadOurs(options.certificate_file,
                 options.key_file.empty() ? options.certificate_file : options.key_file, context));
  }
  return tls;
}

}  // namespace tamis::hbase
