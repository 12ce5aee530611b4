#include "tamis/hbase/kerberos_login.h"

#include <gssapi/gssapi.h>
#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>
#include <krb5.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include "tamis/base/waits_for_memory.h"
#include "tamis/hbase/gssapi_mechanism.h"
#include "tamis/hbase/kerberos_failure.h"

namespace tamis::hbase {
namespace {

constexpr std::string_view kHost = "/_HOST@";
// Logins at the same time. A KDC answers in a millisecond or two, a distant one in a hundred.
constexpr size_t kMaxThreads = 16;

// The name that DNS has for the host's address; the host itself if there is none.
std::string CanonicalName(const std::string& host) {
  const addrinfo hints{.ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return host;
  char name[NI_MAXHOST];
  const bool has_name = ::getnameinfo(found->ai_addr, found->ai_addrlen, name, sizeof(name),
                                      nullptr, 0, NI_NAMEREQD) == 0;
  ::freeaddrinfo(found);
  return has_name ? name : host;
}

std::string WithHost(const std::string& principal, const Address& server, bool reverse_dns) {
  const size_t at = principal.find(kHost);
  if (at == std::string::npos) return principal;
  std::string host = reverse_dns ? CanonicalName(server.host) : server.host;
  std::ranges::transform(host, host.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string named = principal;
  return named.replace(at + 1, kHost.size() - 2, host);
}

Status Check(const std::string& principal) {
  const size_t slash = principal.find('/');
  const size_t at = principal.find('@');
  if (slash != std::string::npos && at != std::string::npos && slash > 0 && at > slash + 1 &&
      at + 1 < principal.size()) {
    return {};
  }
  return InvalidArgument(
      "the principal of a server is service/host@REALM or service/_HOST@REALM, "
      "and not \"" +
      principal + "\"");
}

class Name {
 public:
  Name() = default;
  ~Name() {
    OM_uint32 ignored = 0;
    gss_release_name(&ignored, &name_);
  }
  Name(const Name&) = delete;
  Name& operator=(const Name&) = delete;

  OM_uint32 Import(const std::string& principal, OM_uint32* minor) {
    gss_buffer_desc text{.length = principal.size(), .value = const_cast<char*>(principal.data())};
    return gss_import_name(minor, &text, GSS_KRB5_NT_PRINCIPAL_NAME, &name_);
  }
  gss_name_t get() const { return name_; }

 private:
  gss_name_t name_ = GSS_C_NO_NAME;
};

class Credential {
 public:
  Credential() = default;
  ~Credential() {
    OM_uint32 ignored = 0;
    gss_release_cred(&ignored, &credential_);
  }
  Credential(const Credential&) = delete;
  Credential& operator=(const Credential&) = delete;

  OM_uint32 Acquire(const Name& user, const std::string& keytab, const std::string& cache,
                    OM_uint32* minor) {
    gss_key_value_element_desc elements[2];
    gss_key_value_set_desc store{.count = 0, .elements = elements};
    if (!keytab.empty()) elements[store.count++] = {"client_keytab", keytab.c_str()};
    if (!cache.empty()) elements[store.count++] = {"ccache", cache.c_str()};
    gss_OID_set_desc mechanisms{.count = 1, .elements = const_cast<gss_OID>(gss_mech_krb5)};
    return gss_acquire_cred_from(minor, user.get(), GSS_C_INDEFINITE, &mechanisms, GSS_C_INITIATE,
                                 &store, &credential_, nullptr, nullptr);
  }
  gss_cred_id_t get() const { return credential_; }

 private:
  gss_cred_id_t credential_ = GSS_C_NO_CREDENTIAL;
};

// Frees a ticket cache in the memory of the process.
void Destroy(const std::string& cache) {
  krb5_context context = nullptr;
  if (krb5_init_context(&context) != 0) return;
  krb5_ccache found = nullptr;
  if (krb5_cc_resolve(context, cache.c_str(), &found) == 0) krb5_cc_destroy(context, found);
  krb5_free_context(context);
}

// The user whose tickets or keys these are, for messages; empty if it cannot be read.
std::string UserOf(const std::string& keytab_file, const std::string& cache_name) {
  krb5_context context = nullptr;
  if (krb5_init_context(&context) != 0) return "";
  krb5_principal user = nullptr;
  if (!keytab_file.empty()) {
    krb5_keytab keytab = nullptr;
    krb5_kt_cursor cursor = nullptr;
    krb5_keytab_entry entry{};
    if (krb5_kt_resolve(context, keytab_file.c_str(), &keytab) == 0) {
      if (krb5_kt_start_seq_get(context, keytab, &cursor) == 0) {
        if (krb5_kt_next_entry(context, keytab, &entry, &cursor) == 0) {
          krb5_copy_principal(context, entry.principal, &user);
          krb5_free_keytab_entry_contents(context, &entry);
        }
        krb5_kt_end_seq_get(context, keytab, &cursor);
      }
      krb5_kt_close(context, keytab);
    }
  } else {
    krb5_ccache cache = nullptr;
    const bool found =
        (cache_name.empty() ? krb5_cc_default(context, &cache)
                            : krb5_cc_resolve(context, cache_name.c_str(), &cache)) == 0;
    if (found) {
      krb5_cc_get_principal(context, cache, &user);
      krb5_cc_close(context, cache);
    }
  }
  char* text = nullptr;
  std::string name;
  if (user != nullptr && krb5_unparse_name(context, user, &text) == 0) {
    name = text;
    krb5_free_unparsed_name(context, text);
  }
  krb5_free_principal(context, user);
  krb5_free_context(context);
  return name;
}

std::atomic<uint64_t> last_cache = 0;

// A name that no other ticket cache in the memory of the process has, which may hold several copies
// of this library.
std::string MemoryCacheName(uint64_t number) {
  return "MEMORY:tamis-" + std::to_string(reinterpret_cast<uintptr_t>(&last_cache)) + "-" +
         std::to_string(number);
}

}  // namespace

// Where the tickets of a login are: a cache of its own in memory, which goes with its last user, or
// the user's.
class KerberosLogin::TicketCache {
 public:
  explicit TicketCache(const KerberosOptions& options)
      : is_own_(!options.keytab_file.empty()),
        number_(++last_cache),
        name_(is_own_ ? MemoryCacheName(number_) : options.ticket_cache) {}
  ~TicketCache() {
    if (is_own_) Destroy(name_);
  }
  TicketCache(const TicketCache&) = delete;
  TicketCache& operator=(const TicketCache&) = delete;

  uint64_t number() const { return number_; }        // greater than those of earlier caches
  const std::string& name() const { return name_; }  // empty: the system's default

 private:
  const bool is_own_;
  const uint64_t number_;
  const std::string name_;
};

bool NamesPrincipal(std::string_view name, std::string_view principal) {
  const size_t at = name.find(kHost);
  if (at == std::string_view::npos) return name == principal;
  // Each part is there, with a host between them.
  const std::string_view service = name.substr(0, at + 1);
  const std::string_view realm = name.substr(at + kHost.size() - 1);
  return principal.size() > service.size() + realm.size() && principal.starts_with(service) &&
         principal.ends_with(realm) &&
         principal.find('/', service.size()) == std::string_view::npos;
}

Result<std::shared_ptr<KerberosLogin>> KerberosLogin::Create(KerberosOptions options) {
  if (options.master_principal.empty()) options.master_principal = options.region_server_principal;
  if (options.region_server_principal.empty()) {
    options.region_server_principal = options.master_principal;
  }
  TAMIS_RETURN_IF_ERROR(Check(options.region_server_principal));
  TAMIS_RETURN_IF_ERROR(Check(options.master_principal));
  if (!options.keytab_file.empty()) {
    if (!options.ticket_cache.empty()) {
      return InvalidArgument("a keytab and a ticket cache are given: give one of them");
    }
    errno = 0;
    if (!std::ifstream(options.keytab_file).good()) {
      return InvalidArgument("cannot read the keytab \"" + options.keytab_file +
                             "\": " + std::generic_category().message(errno));
    }
  }
  if (options.protections.empty()) {
    options.protections = {Protection::kPrivacy, Protection::kIntegrity,
                           Protection::kAuthentication};
  }
  return std::shared_ptr<KerberosLogin>(new KerberosLogin(std::move(options)));
}

KerberosLogin::KerberosLogin(KerberosOptions options)
    : options_(std::move(options)), cache_(std::make_shared<const TicketCache>(options_)) {
  threads_.emplace_back([this] { Run(); });
}

KerberosLogin::~KerberosLogin() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::vector<std::string> KerberosLogin::NamesOf(const Address& server,
                                                std::string_view service) const {
  const bool is_masters =
      service == "MasterService" || service == "HbckService" || service == "LockService";
  std::string first = is_masters ? options_.master_principal : options_.region_server_principal;
  std::string second = is_masters ? options_.region_server_principal : options_.master_principal;
  if (first == second) return {first};
  const auto known = accepted_.find(server);
  if (known != accepted_.end() && known->second.name == second) std::swap(first, second);
  return {first, second};
}

void KerberosLogin::Accepted(const Address& server, const std::string& name, uint64_t tickets) {
  accepted_[server] = {.name = name, .tickets = tickets};
}

bool KerberosLogin::Renew(const Address& server, uint64_t tickets) {
  if (options_.keytab_file.empty()) return false;
  if (tickets < wanted_) return true;
  const auto before = accepted_.find(server);
  if (before == accepted_.end() || before->second.tickets != tickets) return false;
  wanted_ = tickets + 1;
  return true;
}

std::string KerberosLogin::Missing(const Address& server, const std::string& name) const {
  return "no ticket for " + name + " of host " + server.host +
         " from the KDC (look at [realms] in krb5.conf, and at the network to it)";
}

void KerberosLogin::Begin(const Address& server, const std::string& name,
                          std::function<bool()> wanted,
                          std::function<void(Result<SaslStart>)> done) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({server, name, std::move(wanted), std::move(done)});
    if (queue_.size() > idle_ && threads_.size() < kMaxThreads) {
      try {
        threads_.emplace_back([this] { Run(); });
      } catch (const std::system_error&) {
        // The machine has no more threads: the work waits for one of ours.
      }
    }
  }
  changed_.notify_one();
}

void KerberosLogin::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
    --idle_;
    if (stopped_) return;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    {
      const WaitsForMemory waits;
      if (work.wanted()) work.done(Start(work.server, work.name));
      work = {};
    }
    lock.lock();
  }
}

Result<SaslStart> KerberosLogin::Start(const Address& server, const std::string& name) {
  KerberosParties parties{.keytab_file = options_.keytab_file,
                          .user = options_.principal.empty()
                                      ? UserOf(options_.keytab_file, options_.ticket_cache)
                                      : options_.principal};
  OM_uint32 minor = 0;
  Name user;
  if (!options_.principal.empty()) {
    const OM_uint32 major = user.Import(options_.principal, &minor);
    if (GSS_ERROR(major)) return KerberosFailure(parties, major, minor);
  }
  std::shared_ptr<const TicketCache> cache;
  Credential credential;
  {
    const std::lock_guard lock(acquiring_);
    if (stopped_) return Cancelled("the client was closed");
    if (cache_->number() < wanted_) {
      // Without a KDC the tickets that there are remain good for other servers.
      auto fresh = std::make_shared<const TicketCache>(options_);
      const OM_uint32 major = credential.Acquire(user, options_.keytab_file, fresh->name(), &minor);
      if (!GSS_ERROR(major)) cache_ = std::move(fresh);
    }
    cache = cache_;
    if (credential.get() == GSS_C_NO_CREDENTIAL) {
      const OM_uint32 major = credential.Acquire(user, options_.keytab_file, cache->name(), &minor);
      if (GSS_ERROR(major)) return KerberosFailure(parties, major, minor);
    }
  }
  parties.server = WithHost(name, server, options_.reverse_dns);
  auto start = GssapiMechanism::Begin(credential.get(), std::move(parties), options_.protections);
  if (start.ok()) start->tickets = cache->number();
  return start;
}

}  // namespace tamis::hbase
