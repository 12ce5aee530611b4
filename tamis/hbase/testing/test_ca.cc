#include "tamis/hbase/testing/test_ca.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace tamis::hbase {
namespace {

constexpr std::chrono::hours kHour(1);

void Check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "a certificate for tests: cannot %s\n", what);
  std::abort();
}

}  // namespace

TestCa::TestCa()
    : directory_((std::filesystem::temp_directory_path() / "tamis-ca-XXXXXX").string()),
      key_(EVP_EC_gen("P-256"), &EVP_PKEY_free),
      certificate_(nullptr, &X509_free) {
  Check(mkdtemp(directory_.data()) != nullptr, "make a directory");
  certificate_ = Make(key_.get(), nullptr, {{NID_basic_constraints, "critical,CA:TRUE"}}, -kHour);
  Write("ca.pem", certificate_.get(), nullptr);
}

TestCa::~TestCa() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::string TestCa::Sign(const std::string& names, std::chrono::hours begin,
                         const std::string& purposes) {
  Extensions extensions = {{NID_subject_alt_name, names}};
  if (!purposes.empty()) extensions.emplace_back(NID_ext_key_usage, purposes);
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const Certificate certificate = Make(key.get(), certificate_.get(), extensions, begin);
  return Write(std::to_string(made_) + ".pem", certificate.get(), key.get());
}

TestCa::Certificate TestCa::Make(EVP_PKEY* key, const X509* issuer, const Extensions& extensions,
                                 std::chrono::seconds begin) {
  Certificate made(X509_new(), &X509_free);
  X509* const certificate = made.get();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++made_);
  X509_gmtime_adj(X509_getm_notBefore(certificate), begin.count());
  X509_gmtime_adj(X509_getm_notAfter(certificate), (begin + 2 * kHour).count());
  // Each CA has a unique name, so that OpenSSL never confuses two.
  const std::string name =
      "test " + std::to_string(made_) + " of " + directory_.substr(directory_.size() - 6);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.data()),
                             static_cast<int>(name.size()), -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer ? issuer : certificate));
  X509_set_pubkey(certificate, key);
  X509V3_CTX context;
  X509V3_set_ctx(&context, const_cast<X509*>(issuer ? issuer : certificate), certificate, nullptr,
                 nullptr, 0);
  for (const auto& [extension, value] : extensions) {
    X509_EXTENSION* const one = X509V3_EXT_conf_nid(nullptr, &context, extension, value.c_str());
    Check(one != nullptr && X509_add_ext(certificate, one, -1) == 1, "add its extension");
    X509_EXTENSION_free(one);
  }
  Check(X509_sign(certificate, key_.get(), EVP_sha256()) > 0, "sign it");
  return made;
}

std::string TestCa::Write(const std::string& name, X509* certificate, EVP_PKEY* key) const {
  std::string path = directory_ + "/" + name;
  FILE* const file = std::fopen(path.c_str(), "w");
  Check(file != nullptr && PEM_write_X509(file, certificate) == 1 &&
            (key == nullptr ||
             PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr) == 1) &&
            std::fclose(file) == 0,
        "write it");
  return path;
}

}  // namespace tamis::hbase
