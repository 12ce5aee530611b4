// The name of a store on HBase, in its parts:
//
//   hbase://HOST:PORT,.../NAMESPACE        some masters and region servers
//   hbase:///NAMESPACE?site=FILE           the cluster of an hbase-site.xml
//   hbase+zk://HOST[:PORT],.../PARENT/NAMESPACE   a ZooKeeper, and the znode of HBase in it
//
// The default namespace may be left out. Behind it stand options: ?OPTION=VALUE&OPTION=VALUE...
//
//   site=FILE          hbase-site.xml: fills in all that the name does not say. A name without
//                      hosts and site takes $TAMIS_HBASE_SITE or $HBASE_CONF_DIR/hbase-site.xml
//   tls=true           everything travels inside of TLS
//   ca=FILE            PEM: the trusted authorities; without it, those of the machine
//   cert=FILE          PEM: the client's certificate, for servers that require one
//   key=FILE           PEM: its private key; without it, the key is in the file of `cert`
//   verify-host=false  a trusted certificate is accepted from any host
//   server-principal=P service/_HOST@REALM: the servers accept only users with a Kerberos ticket
//   master-principal=P the same of masters, if theirs is another one
//   protection=LIST    the acceptable ones of authentication, integrity, privacy
//   user=PRINCIPAL     the user; without it, the first one in the keytab, or the ticket cache's
//   keytab=FILE        the user's key; without it, the user's tickets are used (kinit)
//   ticket-cache=NAME  where these are; without it, the system's default
//   token-file=FILE    a delegation token in it is used instead of tickets; without it, and without
//                      keytab, that of $HADOOP_TOKEN_FILE_LOCATION
//   fallback=simple    servers without Kerberos are used, too
//
// In a value %XX is the byte XX: %26 is "&", %25 is "%".
#pragma once

#include <string>

#include "tamis/base/status.h"
#include "tamis/hbase/client_options.h"

namespace tamis {

struct HBaseName {
  hbase::ClientOptions client;
  std::string name_space = "default";
};

// Parses the name, and reads the file of its option `site`. The message of kInvalidArgument names
// the part that cannot be read, and shows the form of a name.
Result<HBaseName> ParseHBaseName(const std::string& name);

}  // namespace tamis
