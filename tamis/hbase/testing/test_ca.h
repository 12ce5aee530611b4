// A certificate authority for tests, with a new key, which exists as long as the object.
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

  // The CA's own certificate: a PEM file that exists as long as this object.
  std::string file() const { return directory_ + "/ca.pem"; }
  // Returns a PEM file with a certificate for `names` ("DNS:host,IP:127.0.0.1") and its key. It is
  // valid for two hours, starting `begin` from now. `purposes` is its extendedKeyUsage
  // ("serverAuth"); empty: any purpose.
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
