// The TLS settings that all connections of a client share: trusted CAs and the client's
// certificate.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "tamis/base/status.h"
#include "tamis/hbase/client_options.h"

namespace tamis::hbase {

class TlsContext {
 public:
  // Reads the files. kInvalidArgument names the file that cannot be used, and the reason.
  static Result<std::shared_ptr<TlsContext>> Load(const TlsOptions& options);

  boost::asio::ssl::context& context() { return context_; }
  bool verify_host() const { return verify_host_; }
  // Whether the client has a certificate to present.
  bool has_certificate() const { return has_certificate_; }

 private:
  explicit TlsContext(const TlsOptions& options)
      : context_(boost::asio::ssl::context::tls_client),
        verify_host_(options.verify_host),
        has_certificate_(!options.certificate_file.empty()) {}

  boost::asio::ssl::context context_;
  const bool verify_host_;
  const bool has_certificate_;
};

}  // namespace tamis::hbase
