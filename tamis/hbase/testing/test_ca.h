// A certificate authority for tests, made anew, which lives as long as its object.
#pragma once

#include <openssl/x509.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tamis::hbase {

class TestCa {
 public:
  TestCa();
  ~TestCa();
  TestCa(const TestCa&) = delete;
  TestCa& operator=(const TestCa&) = delete;

  // A PEM file that is there as long as this: its own certificate.
  std::string file() const { return directory_ + "/ca.pem"; }
  // One with a certificate for `names` ("DNS:host,IP:127.0.0.1"), and its key. It is good for two
  // hours that begin `begin` from now, and for all purposes, or those of an extendedKeyUsage
  // ("serverAuth").
  std::string Sign(const std::string& names, std::chrono::hours begin = std::chrono::hours(-1),
                   const std::string& purposes = "");

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

  using Extensions = std::vector<std::pair<int, std::string>>;  // by NID

  Certificate Make(EVP_PKEY* key, const X509* issuer, const Extensions& extensions,
                   std::chrono::seconds begin);
  std::string Write(const std::string& name, X509* certificate, EVP_PKEY* key) const;

  std::string directory_;
  int made_ = 0;
  Key key_;
  Certificate certificate_;
};

}  // namespace tamis::hbase
