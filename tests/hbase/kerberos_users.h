// The users of a test's real HBase with Kerberos (LocalHBase), and its KDC.
#pragma once

#include <chrono>
#include <string>

#include "tamis/hbase/client_options.h"

namespace tamis {

// A file of the KDC's directory.
std::string Kdc(const std::string& file);
// The hbase-site.xml that the administrator gives to clients.
std::string Site();
std::string TextOf(const std::string& file);
// The options of a user who has that file, without TLS.
hbase::ClientOptions UserOptions();

// How many ticket-granting tickets the KDC has issued to a user, as its log says.
int TicketsOf(const std::string& user);
// Makes a user whose tickets live this long. Returns its keytab. MIT's library renews a keytab's
// ticket 30 seconds before half of its life is over, so such a short one for each connection.
inline constexpr std::chrono::seconds kBriefLife(4);
std::string BriefUser(const std::string& user);
// Gives a user rights, as HBase's `grant` stores them.
void Grant(const std::string& user, const std::string& table, const std::string& rights);

}  // namespace tamis
