#include "tamis/hbase/kerberos_failure.h"

#include <gmock/gmock.h>
#include <gssapi/gssapi.h>
#include <gtest/gtest.h>
#include <krb5.h>

namespace tamis::hbase {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Status Failure(krb5_error_code code, const KerberosParties& parties = {},
               uint32_t major = GSS_S_FAILURE) {
  return KerberosFailure(parties, major, static_cast<uint32_t>(code));
}

TEST(KerberosFailureTest, EachFaultHasItsSentence) {
  const KerberosParties parties{
      .keytab_file = "me.keytab", .user = "me@A", .server = "hbase/host@A"};
  EXPECT_THAT(Failure(KRB5KRB_AP_ERR_TKT_EXPIRED, parties).message(),
              AllOf(HasSubstr("ticket of me@A has expired"), HasSubstr("run kinit again")));
  EXPECT_THAT(Failure(KRB5KRB_AP_ERR_SKEW, parties).message(), HasSubstr("clocks"));
  EXPECT_THAT(Failure(KRB5KDC_ERR_C_PRINCIPAL_UNKNOWN, parties).message(),
              HasSubstr("the KDC does not know me@A"));
  EXPECT_THAT(Failure(KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN, parties).message(),
              AllOf(HasSubstr("the KDC does not know hbase/host@A"),
                    HasSubstr("hbase.master.kerberos.principal")));
  EXPECT_THAT(Failure(KRB5KDC_ERR_PREAUTH_FAILED, parties).message(),
              HasSubstr("\"me.keytab\" is older"));
  EXPECT_THAT(
      Failure(KRB5KRB_AP_ERR_BAD_INTEGRITY, {.keytab_file = "me.keytab", .user = "me@A"}).message(),
      HasSubstr("\"me.keytab\" is older"));
  EXPECT_THAT(Failure(KRB5KRB_AP_ERR_BAD_INTEGRITY, {.user = "me@A"}).message(),
              AllOf(HasSubstr("run kinit again"), Not(HasSubstr("keytab"))));
  EXPECT_THAT(Failure(KRB5KRB_AP_ERR_BAD_INTEGRITY, parties).message(),
              AllOf(HasSubstr("the ticket for hbase/host@A does not fit the server's key"),
                    HasSubstr("the server's keytab is older")));
  EXPECT_THAT(Failure(KRB5KDC_ERR_KEY_EXP, parties).message(),
              AllOf(HasSubstr("the password of me@A has expired"), HasSubstr("a new keytab")));
  EXPECT_THAT(Failure(KRB5KDC_ERR_KEY_EXP, {.user = "me@A"}).message(), HasSubstr("kpasswd"));
  EXPECT_THAT(Failure(KRB5_REALM_UNKNOWN, parties).message(), HasSubstr("[realms] in krb5.conf"));
  EXPECT_THAT(Failure(KRB5_CONFIG_NODEFREALM, parties).message(), HasSubstr("KRB5_CONFIG"));
  EXPECT_THAT(Failure(KRB5KDC_ERR_CLIENT_REVOKED, parties).message(), HasSubstr("is closed"));
  EXPECT_THAT(
      Failure(KRB5_KT_NOTFOUND, parties, GSS_S_NO_CRED).message(),
      AllOf(HasSubstr("the keytab \"me.keytab\" cannot be used for me@A"), HasSubstr("klist -k")));
  EXPECT_THAT(Failure(KRB5_FCC_NOFILE, {}, GSS_S_NO_CRED).message(),
              HasSubstr("there is no Kerberos ticket: run kinit"));
}

TEST(KerberosFailureTest, RealmsThatDifferAreNamed) {
  EXPECT_THAT(Failure(KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN, {.user = "me@A", .server = "hbase/host@B"})
                  .message(),
              AllOf(HasSubstr("the KDC of realm A"), HasSubstr("do not trust each other")));
}

TEST(KerberosFailureTest, OnlyAnUnreachableKdcIsWorthAnotherTry) {
  EXPECT_EQ(Failure(KRB5_KDC_UNREACH).code(), StatusCode::kUnavailable);
  EXPECT_EQ(Failure(KRB5KRB_AP_ERR_TKT_EXPIRED).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Failure(12345).code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tamis::hbase
