// State that all TLS connections of a client share: the trusted certificates and the client's own.
#pragma once

#include <asio/ssl/context.hpp>
#include <memory>

#include "tamis/base/status.h"
#include "tamis/hbase/client_options.h"

namespace tamis::hbase {

class TlsContext {
 public:
  // Reads the files. kInvalidArgument says which of them cannot be used, and why.
  static Result<std::shared_ptr<TlsContext>> Load(const TlsOptions& options);

  asio::ssl::context& context() { return context_; }
  bool verify_host() const { return verify_host_; }
  // Whether we have a certificate to show.
  bool has_certificate() const { return has_certificate_; }

 private:
  explicit TlsContext(const TlsOptions& options)
      : context_(asio::ssl::context::tls_client),
        verify_host_(options.verify_host),
        has_certificate_(!options.certificate_file.empty()) {}

  asio::ssl::context context_;
  const bool verify_host_;
  const bool has_certificate_;
};

}  // namespace tamis::hbase
