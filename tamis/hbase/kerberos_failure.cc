#include "tamis/hbase/kerberos_failure.h"

#include <gssapi/gssapi.h>
#include <gssapi/gssapi_krb5.h>
#include <krb5.h>

#include <cerrno>

namespace tamis::hbase {
namespace {

// The text of a code, which may have several parts.
std::string TextOf(OM_uint32 code, int type) {
  std::string text;
  OM_uint32 more = 0;
  do {
    OM_uint32 minor = 0;
    gss_buffer_desc part = GSS_C_EMPTY_BUFFER;
    if (GSS_ERROR(gss_display_status(&minor, code, type, gss_mech_krb5, &more, &part))) break;
    text.append(text.empty() ? "" : "; ").append(static_cast<char*>(part.value), part.length);
    gss_release_buffer(&minor, &part);
  } while (more != 0);
  return text;
}

std::string RealmOf(const std::string& principal) {
  const size_t at = principal.rfind('@');
  return at == std::string::npos ? "" : principal.substr(at + 1);
}

std::string UnknownServer(const KerberosParties& parties) {
  const std::string ours = RealmOf(parties.user);
  const std::string theirs = RealmOf(parties.server);
  if (!ours.empty() && !theirs.empty() && ours != theirs) {
    return "the KDC of realm " + ours + " does not know " + parties.server +
           ": either its realm is wrong (hbase.regionserver.kerberos.principal), or the realms do "
           "not trust each other";
  }
  return "the KDC does not know " + parties.server +
         ": look at hbase.regionserver.kerberos.principal and hbase.master.kerberos.principal, and "
         "at the server's host name";
}

Status Expired(const KerberosParties& parties) {
  return FailedPrecondition("the Kerberos ticket" +
                            (parties.user.empty() ? "" : " of " + parties.user) +
                            " has expired: run kinit again, or give a keytab");
}

std::string NoCredential(const KerberosParties& parties, const std::string& text) {
  if (!parties.keytab_file.empty()) {
    return "the keytab \"" + parties.keytab_file + "\" cannot be used" +
           (parties.user.empty() ? "" : " for " + parties.user) + " (" + text +
           "): `klist -k` shows what it holds";
  }
  return "there is no Kerberos ticket: run kinit, or give a keytab (" + text + ")";
}

std::string KeyRejected(const KerberosParties& parties, const std::string& user,
                        const std::string& text) {
  if (parties.keytab_file.empty()) {
    return "the KDC rejects the key of " + user + " (" + text + "): run kinit again";
  }
  return "the KDC rejects the key of " + user + " (" + text + "): the keytab \"" +
         parties.keytab_file + "\" is older than the last change of the key";
}

// Bytes that were sealed with another key than the receiver's.
std::string OtherKey(const KerberosParties& parties, const std::string& user,
                     const std::string& text) {
  if (parties.server.empty()) return KeyRejected(parties, user, text);
  return "the ticket for " + parties.server + " does not fit the server's key (" + text +
         "): run kinit again; if that does not help, the server's keytab is older than the last "
         "change of its key";
}

std::string KeyExpired(const KerberosParties& parties, const std::string& user,
                       const std::string& text) {
  return "the password of " + user + " has expired (" + text + "): " +
         (parties.keytab_file.empty() ? "change it by kpasswd, and run kinit"
                                      : "ask the administrator of the KDC for a new keytab");
}

}  // namespace

std::string KerberosText(uint32_t major, uint32_t minor) {
  std::string text = minor == 0 ? "" : TextOf(minor, GSS_C_MECH_CODE);
  return text.empty() ? TextOf(major, GSS_C_GSS_CODE) : text;
}

Status KerberosFailure(const KerberosParties& parties, uint32_t major, uint32_t minor) {
  const std::string text = KerberosText(major, minor);
  const std::string user = parties.user.empty() ? "the user" : parties.user;
  switch (static_cast<krb5_error_code>(minor)) {
    case KRB5KRB_AP_ERR_TKT_EXPIRED:
      return Expired(parties);
    case KRB5KRB_AP_ERR_SKEW:
      return FailedPrecondition(
          "the clocks of this machine and of the KDC differ by more than Kerberos allows (" + text +
          "): set them by NTP");
    case KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN:
      return FailedPrecondition(UnknownServer(parties));
    case KRB5KDC_ERR_C_PRINCIPAL_UNKNOWN:
      return FailedPrecondition("the KDC does not know " + user +
                                ": look at the name of the user and its realm");
    case KRB5_KDC_UNREACH:
      return Unavailable("no KDC answers (" + text +
                         "): look at [realms] in krb5.conf, and at the network to it");
    case KRB5_REALM_UNKNOWN:
    case KRB5_REALM_CANT_RESOLVE:
      return FailedPrecondition("no KDC is known for the realm of " +
                                (parties.server.empty() ? user : parties.server) + " (" + text +
                                "): look at the realm, and at [realms] in krb5.conf");
    case KRB5_CONFIG_NODEFREALM:
    case KRB5_CONFIG_CANTOPEN:
    case KRB5_CONFIG_BADFORMAT:
      return FailedPrecondition("krb5.conf cannot be used (" + text +
                                "): it names the realm and its KDCs (/etc/krb5.conf, KRB5_CONFIG)");
    case KRB5KDC_ERR_PREAUTH_FAILED:
    case KRB5_PREAUTH_FAILED:
      return FailedPrecondition(KeyRejected(parties, user, text));
    case KRB5KRB_AP_ERR_BAD_INTEGRITY:
      return FailedPrecondition(OtherKey(parties, user, text));
    case KRB5KDC_ERR_KEY_EXP:
      return FailedPrecondition(KeyExpired(parties, user, text));
    case KRB5KDC_ERR_NAME_EXP:
    case KRB5KDC_ERR_CLIENT_REVOKED:
      return FailedPrecondition("the account of " + user + " is closed (" + text +
                                "): ask its administrator");
    default:
      break;
  }
  switch (GSS_ROUTINE_ERROR(major)) {
    case GSS_S_CREDENTIALS_EXPIRED:
      return Expired(parties);
    case GSS_S_NO_CRED:
    case GSS_S_DEFECTIVE_CREDENTIAL:
      return FailedPrecondition(NoCredential(parties, text));
    default:
      break;
  }
  return FailedPrecondition("Kerberos fails" +
                            (parties.server.empty() ? "" : " for " + parties.server) + ": " + text);
}

}  // namespace tamis::hbase
