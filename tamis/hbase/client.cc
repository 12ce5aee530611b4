#include "tamis/hbase/client.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>
#include <variant>

#include "tamis/base/waits_for_memory.h"
#include "tamis/hbase/admin.h"
#include "tamis/hbase/batch.h"
#include "tamis/hbase/kerberos_login.h"
#include "tamis/hbase/row_calls.h"
#include "tamis/hbase/scanner.h"
#include "tamis/hbase/session.h"
#include "tamis/hbase/task.h"
#include "tamis/hbase/tls_context.h"
#include "tamis/hbase/token_login.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {

namespace asio = boost::asio;

struct ClientThread {
  ClientThread(ClientOptions options, std::shared_ptr<TlsContext> tls,
               std::shared_ptr<SaslLogin> login)
      : session(io, std::move(options), std::move(tls), std::move(login)), admin(session) {}

  Deadline OperationDeadline() const { return Clock::now() + session.options.operation_timeout; }

  // An exception that leaves a handler would end the process, and one in the middle of a connection
  // would leave it half done: handlers wait for memory, each for half a minute at the most.
  void Run() {
    while (true) {
      const WaitsForMemory waits;
      if (io.run_one() == 0) return;
    }
  }

  asio::io_context io{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{
      asio::make_work_guard(io)};
  Session session;
  Admin admin;
  std::thread thread;
};

struct RowStream::Inside {
  Inside(std::shared_ptr<ClientThread> of, std::string table, Scan scan)
      : client(std::move(of)), scanner(client->session, std::move(table), std::move(scan)) {}
  std::shared_ptr<ClientThread> client;
  Scanner scanner;
};

namespace {

// Runs the coroutine that `make` returns, then calls `done` with its result. Keeps `keep` alive
// until then.
template <class T, class Keep, class Make>
Task<void> Run(Keep keep, Make make, Done<T> done) {
  T result = co_await make(*keep);
  done(std::move(result));
}

template <class T, class Keep, class Make>
void Spawn(asio::io_context& io, Keep keep, Make make, Done<T> done) {
  // An exception here is a lack of memory or a bug. The caller would wait for ever, so the process
  // ends.
  asio::co_spawn(io, Run<T, Keep, Make>(std::move(keep), std::move(make), std::move(done)),
                 EndIfItThrew);
}

// Calls start(done) and waits until done was called.
template <class T, class Start>
T Block(Start start) {
  auto promise = std::make_shared<std::promise<T>>();
  start([promise](T value) { promise->set_value(std::move(value)); });
  return promise->get_future().get();
}

Result<std::shared_ptr<SaslLogin>> LoginOf(const KerberosOptions& options) {
  if (!options.token_file.empty()) {
    TAMIS_ASSIGN_OR_RETURN(auto tokens, ReadTokens(options.token_file));
    std::erase_if(tokens, [](const auto& token) { return token.kind != kHBaseTokenKind; });
    if (!tokens.empty()) {
      return std::shared_ptr<SaslLogin>(new TokenLogin(std::move(tokens), options));
    }
  }
  TAMIS_ASSIGN_OR_RETURN(auto login, KerberosLogin::Create(options));
  return std::shared_ptr<SaslLogin>(std::move(login));
}

}  // namespace

Result<std::unique_ptr<Client>> Client::Open(ClientOptions options) {
  TAMIS_ASSIGN_OR_RETURN(
      const auto addresses,
      ParseAddresses(options.zookeeper ? options.zookeeper->quorum : options.addresses));
  if (options.window < 1 || options.operation_timeout.count() < 1 ||
      options.call_timeout.count() < 1 || options.connect_timeout.count() < 1) {
    return InvalidArgument("a client's window and timeouts are at least 1");
  }
  std::shared_ptr<TlsContext> tls;
  if (options.tls) {
    TAMIS_ASSIGN_OR_RETURN(tls, TlsContext::Load(*options.tls));
  }
  std::shared_ptr<SaslLogin> login;
  if (options.kerberos) {
    TAMIS_ASSIGN_OR_RETURN(login, LoginOf(*options.kerberos));
  }
  auto* const tokens = dynamic_cast<TokenLogin*>(login.get());
  auto inside =
      std::make_shared<ClientThread>(std::move(options), std::move(tls), std::move(login));
  if (tokens != nullptr) {
    tokens->FindClusterBy([client = inside.get()](Done<Result<std::string>> done) {
      Spawn<Result<std::string>>(
          client->io, client,
          [](ClientThread& thread) {
            return thread.session.registry.ClusterId(thread.OperationDeadline());
          },
          std::move(done));
    });
  }
  inside->thread = std::thread([client = inside.get()] { client->Run(); });
  return std::unique_ptr<Client>(new Client(std::move(inside)));
}

Client::~Client() {
  asio::post(inside_->io, [inside = inside_.get()] {
    inside->session.Close();
    inside->work.reset();  // the thread ends when all coroutines have
  });
  inside_->thread.join();
}

void Client::Close() {
  asio::post(inside_->io, [inside = inside_] { inside->session.Close(); });
}

RowStream::~RowStream() {
  asio::io_context& io = inside_->client->io;
  asio::post(io, [inside = std::move(inside_)] { inside->scanner.Close(); });
}

void RowStream::Next(Done<Result<std::vector<Row>>> done) {
  Spawn<Result<std::vector<Row>>>(
      inside_->client->io, inside_,
      [](Inside& inside) { return inside.scanner.Next(inside.client->OperationDeadline()); },
      std::move(done));
}

Result<std::vector<Row>> RowStream::Next() {
  return Block<Result<std::vector<Row>>>([&](auto done) { Next(std::move(done)); });
}

void Client::Get(std::string table, hbase::Get get, Done<Result<Row>> done) {
  Spawn<Result<Row>>(
      inside_->io, inside_,
      [table = std::move(table), get = std::move(get)](ClientThread& inside) mutable {
        return GetRow(inside.session, std::move(table), std::move(get), inside.OperationDeadline());
      },
      std::move(done));
}

Result<Row> Client::Get(std::string table, hbase::Get get) {
  return Block<Result<Row>>(
      [&](auto done) { Get(std::move(table), std::move(get), std::move(done)); });
}

void Client::Get(std::string table, std::vector<hbase::Get> gets,
                 Done<std::vector<Result<Row>>> done) {
  std::vector<std::variant<hbase::Get, Mutation>> actions(std::make_move_iterator(gets.begin()),
                                                          std::make_move_iterator(gets.end()));
  Spawn<std::vector<Result<Row>>>(
      inside_->io, inside_,
      [table = std::move(table), actions = std::move(actions)](ClientThread& inside) mutable {
        return RunBatch(inside.session, std::move(table), std::move(actions), {},
                        inside.OperationDeadline());
      },
      std::move(done));
}

std::vector<Result<Row>> Client::Get(std::string table, std::vector<hbase::Get> gets) {
  return Block<std::vector<Result<Row>>>(
      [&](auto done) { Get(std::move(table), std::move(gets), std::move(done)); });
}

void Client::Mutate(std::string table, Mutation mutation, WriteOptions options,
                    Done<Result<MutateResult>> done) {
  Spawn<Result<MutateResult>>(
      inside_->io, inside_,
      [table = std::move(table), mutation = std::move(mutation),
       options = std::move(options)](ClientThread& inside) mutable {
        return hbase::MutateRow(inside.session, std::move(table), std::move(mutation),
                                std::move(options), inside.OperationDeadline());
      },
      std::move(done));
}

Result<MutateResult> Client::Mutate(std::string table, Mutation mutation, WriteOptions options) {
  return Block<Result<MutateResult>>([&](auto done) {
    Mutate(std::move(table), std::move(mutation), std::move(options), std::move(done));
  });
}

void Client::MutateRow(std::string table, std::vector<Mutation> mutations, WriteOptions options,
                       Done<Result<MutateResult>> done) {
  Spawn<Result<MutateResult>>(
      inside_->io, inside_,
      [table = std::move(table), mutations = std::move(mutations),
       options = std::move(options)](ClientThread& inside) mutable {
        return MutateRowTogether(inside.session, std::move(table), std::move(mutations),
                                 std::move(options), inside.OperationDeadline());
      },
      std::move(done));
}

Result<MutateResult> Client::MutateRow(std::string table, std::vector<Mutation> mutations,
                                       WriteOptions options) {
  return Block<Result<MutateResult>>([&](auto done) {
    MutateRow(std::move(table), std::move(mutations), std::move(options), std::move(done));
  });
}

void Client::Mutate(std::string table, std::vector<Mutation> mutations, WriteOptions options,
                    Done<std::vector<Result<Row>>> done) {
  std::vector<std::variant<hbase::Get, Mutation>> actions(
      std::make_move_iterator(mutations.begin()), std::make_move_iterator(mutations.end()));
  Spawn<std::vector<Result<Row>>>(
      inside_->io, inside_,
      [table = std::move(table), actions = std::move(actions),
       options = std::move(options)](ClientThread& inside) mutable {
        return RunBatch(inside.session, std::move(table), std::move(actions), std::move(options),
                        inside.OperationDeadline());
      },
      std::move(done));
}

std::vector<Result<Row>> Client::Mutate(std::string table, std::vector<Mutation> mutations,
                                        WriteOptions options) {
  return Block<std::vector<Result<Row>>>([&](auto done) {
    Mutate(std::move(table), std::move(mutations), std::move(options), std::move(done));
  });
}

std::unique_ptr<RowStream> Client::Scan(std::string table, hbase::Scan scan) {
  return std::unique_ptr<RowStream>(new RowStream(
      std::make_shared<RowStream::Inside>(inside_, std::move(table), std::move(scan))));
}

void Client::Exec(std::string table, std::string row, ServiceCall call,
                  Done<Result<std::string>> done) {
  Spawn<Result<std::string>>(
      inside_->io, inside_,
      [table = std::move(table), row = std::move(row),
       call = std::move(call)](ClientThread& inside) mutable {
        return ExecService(inside.session, std::move(table), std::move(row), std::move(call),
                           inside.OperationDeadline());
      },
      std::move(done));
}

Result<std::string> Client::Exec(std::string table, std::string row, ServiceCall call) {
  return Block<Result<std::string>>(
      [&](auto done) { Exec(std::move(table), std::move(row), std::move(call), std::move(done)); });
}

void Client::ExecAt(const Region& region, ServiceCall call, Done<ServiceReply> done) {
  Spawn<ServiceReply>(
      inside_->io, inside_,
      [server = region.server, name = region.name,
       call = std::move(call)](ClientThread& inside) mutable {
        return ExecServiceAt(inside.session, std::move(server), std::move(name), std::move(call),
                             inside.OperationDeadline());
      },
      std::move(done));
}

ServiceReply Client::ExecAt(const Region& region, ServiceCall call) {
  return Block<ServiceReply>([&](auto done) { ExecAt(region, std::move(call), std::move(done)); });
}

void Client::ExecServer(ServerName server, ServiceCall call, Done<ServiceReply> done) {
  Spawn<ServiceReply>(
      inside_->io, inside_,
      [server = std::move(server), call = std::move(call)](ClientThread& inside) mutable {
        return ExecRegionServerService(inside.session, std::move(server), std::move(call),
                                       inside.OperationDeadline());
      },
      std::move(done));
}

ServiceReply Client::ExecServer(ServerName server, ServiceCall call) {
  return Block<ServiceReply>(
      [&](auto done) { ExecServer(std::move(server), std::move(call), std::move(done)); });
}

Result<DelegationToken> Client::IssueToken() {
  const auto bytes = Exec("hbase:meta", "",
                          {.service = "AuthenticationService",
                           .method = "GetAuthenticationToken",
                           .request = pb::GetAuthenticationTokenRequest().SerializeAsString()});
  if (!bytes.ok()) return bytes.status().WithContext("cannot get a delegation token");
  pb::GetAuthenticationTokenResponse answer;
  if (!answer.ParseFromString(*bytes) || answer.token().identifier().empty()) {
    return DataLoss("cannot get a delegation token: an answer that cannot be read");
  }
  return DelegationToken{.identifier = answer.token().identifier(),
                         .password = answer.token().password(),
                         .kind = std::string(kHBaseTokenKind),
                         .service = answer.token().service()};
}

void Client::Locate(std::string table, std::string row, Done<Result<RegionPtr>> done) {
  Spawn<Result<RegionPtr>>(
      inside_->io, inside_,
      [table = std::move(table), row = std::move(row)](ClientThread& inside) mutable {
        return inside.session.locator.Holding(NormalTableName(table), std::move(row),
                                              inside.OperationDeadline());
      },
      std::move(done));
}

Result<RegionPtr> Client::Locate(std::string table, std::string row) {
  return Block<Result<RegionPtr>>(
      [&](auto done) { Locate(std::move(table), std::move(row), std::move(done)); });
}

void Client::Regions(std::string table, Done<Result<std::vector<RegionPtr>>> done) {
  Spawn<Result<std::vector<RegionPtr>>>(
      inside_->io, inside_,
      [table = std::move(table)](ClientThread& inside) mutable {
        return inside.session.locator.All(NormalTableName(table), inside.OperationDeadline());
      },
      std::move(done));
}

Result<std::vector<RegionPtr>> Client::Regions(std::string table) {
  return Block<Result<std::vector<RegionPtr>>>(
      [&](auto done) { Regions(std::move(table), std::move(done)); });
}

void Client::Regions(std::string table, std::string start, std::string end,
                     Done<Result<std::vector<RegionPtr>>> done) {
  Spawn<Result<std::vector<RegionPtr>>>(
      inside_->io, inside_,
      [table = std::move(table), start = std::move(start),
       end = std::move(end)](ClientThread& inside) mutable {
        return inside.session.locator.Between(NormalTableName(table), std::move(start),
                                              std::move(end), inside.OperationDeadline());
      },
      std::move(done));
}

void Client::Suspect(RegionPtr region) {
  asio::post(inside_->io, [inside = inside_, region = std::move(region)] {
    inside->session.locator.Suspect(region);
  });
}

Client::Counts Client::counts() {
  return Block<Counts>([&](auto done) {
    asio::post(inside_->io, [inside = inside_, done = std::move(done)] {
      const Locator::Counts& counts = inside->session.locator.counts();
      done({.meta_lookups = counts.meta_lookups,
            .meta_table_scans = counts.meta_table_scans,
            .registry_lookups = counts.registry_lookups,
            .hints_taken = counts.hints_taken});
    });
  });
}

// ---- The master.

namespace {

// Starts a procedure and waits for its end.
template <class Start>
Task<Status> Procedure(Admin& admin, Start start, Deadline deadline) {
  Result<uint64_t> id = co_await start(admin, deadline);
  if (!id.ok()) co_return id.status();
  co_return co_await admin.AwaitProcedure(*id, deadline);
}

template <class T, class Keep, class Make>
T BlockOn(asio::io_context& io, Keep keep, Make make) {
  return Block<T>([&](Done<T> done) {
    Spawn<T>(
        io, std::move(keep),
        [make = std::move(make)](auto& inside) {
          return make(inside.admin, inside.OperationDeadline());
        },
        std::move(done));
  });
}

template <class Keep, class Start>
Status BlockOnProcedure(asio::io_context& io, Keep keep, Start start) {
  return BlockOn<Status>(io, std::move(keep),
                         [start = std::move(start)](Admin& admin, Deadline deadline) {
                           return Procedure(admin, start, deadline);
                         });
}

}  // namespace

Status Client::CreateTable(TableDescription table, std::vector<std::string> split_keys) {
  return BlockOnProcedure(inside_->io, inside_,
                          [table, split_keys](Admin& admin, Deadline deadline) {
                            return admin.StartCreateTable(table, split_keys, deadline);
                          });
}

Status Client::ModifyTable(TableDescription table, bool reopen) {
  return BlockOnProcedure(inside_->io, inside_, [table, reopen](Admin& admin, Deadline deadline) {
    return admin.StartModifyTable(table, reopen, deadline);
  });
}

Status Client::EnableTable(std::string table) {
  return BlockOnProcedure(inside_->io, inside_, [table](Admin& admin, Deadline deadline) {
    return admin.StartOnTable("EnableTable", table, deadline);
  });
}

Status Client::DisableTable(std::string table) {
  return BlockOnProcedure(inside_->io, inside_, [table](Admin& admin, Deadline deadline) {
    return admin.StartOnTable("DisableTable", table, deadline);
  });
}

Status Client::DeleteTable(std::string table) {
  return BlockOnProcedure(inside_->io, inside_, [table](Admin& admin, Deadline deadline) {
    return admin.StartOnTable("DeleteTable", table, deadline);
  });
}

Status Client::CreateNamespace(std::string name) {
  return BlockOnProcedure(inside_->io, inside_, [name](Admin& admin, Deadline deadline) {
    return admin.StartCreateNamespace(name, deadline);
  });
}

Status Client::DeleteNamespace(std::string name) {
  return BlockOnProcedure(inside_->io, inside_, [name](Admin& admin, Deadline deadline) {
    return admin.StartDeleteNamespace(name, deadline);
  });
}

Result<std::vector<std::string>> Client::Namespaces() {
  return BlockOn<Result<std::vector<std::string>>>(
      inside_->io, inside_,
      [](Admin& admin, Deadline deadline) { return admin.Namespaces(deadline); });
}

Result<std::vector<TableDescription>> Client::Tables(std::string name_space) {
  return BlockOn<Result<std::vector<TableDescription>>>(
      inside_->io, inside_,
      [name_space](Admin& admin, Deadline deadline) { return admin.Tables(name_space, deadline); });
}

Result<TableDescription> Client::Table(std::string name) {
  return BlockOn<Result<TableDescription>>(
      inside_->io, inside_,
      [name](Admin& admin, Deadline deadline) { return admin.Table(name, deadline); });
}

Result<TableState> Client::StateOfTable(std::string name) {
  return BlockOn<Result<TableState>>(inside_->io, inside_, [name](Admin& admin, Deadline deadline) {
    return admin.StateOfTable(name, deadline);
  });
}

Status Client::SplitRegion(Region region, std::string key) {
  return BlockOnProcedure(inside_->io, inside_, [region, key](Admin& admin, Deadline deadline) {
    return admin.StartSplit(region, key, deadline);
  });
}

Status Client::MergeRegions(std::vector<Region> neighbours) {
  return BlockOnProcedure(inside_->io, inside_, [neighbours](Admin& admin, Deadline deadline) {
    return admin.StartMerge(neighbours, deadline);
  });
}

Status Client::MoveRegion(Region region, ServerName to) {
  return BlockOn<Status>(inside_->io, inside_, [region, to](Admin& admin, Deadline deadline) {
    return admin.MoveRegion(region, to, deadline);
  });
}

Status Client::FlushRegion(Region region) {
  return BlockOn<Status>(inside_->io, inside_, [region](Admin& admin, Deadline deadline) {
    return admin.FlushRegion(region, deadline);
  });
}

Status Client::CompactRegion(Region region, bool major) {
  return BlockOn<Status>(inside_->io, inside_, [region, major](Admin& admin, Deadline deadline) {
    return admin.CompactRegion(region, major, deadline);
  });
}

Result<bool> Client::IsCompacting(Region region) {
  return BlockOn<Result<bool>>(inside_->io, inside_, [region](Admin& admin, Deadline deadline) {
    return admin.IsCompacting(region, deadline);
  });
}

Result<SplitState> Client::StateOfSplit(Region region) {
  return BlockOn<Result<SplitState>>(
      inside_->io, inside_,
      [region](Admin& admin, Deadline deadline) { return admin.StateOfSplit(region, deadline); });
}

Result<bool> Client::SwitchBalancer(bool on) {
  return BlockOn<Result<bool>>(inside_->io, inside_, [on](Admin& admin, Deadline deadline) {
    return admin.SwitchBalancer(on, deadline);
  });
}

Result<uint64_t> Client::Balance() {
  return BlockOn<Result<uint64_t>>(inside_->io, inside_, [](Admin& admin, Deadline deadline) {
    return admin.Balance(deadline);
  });
}

Result<ClusterState> Client::Cluster(ClusterDetail detail) {
  return BlockOn<Result<ClusterState>>(
      inside_->io, inside_,
      [detail](Admin& admin, Deadline deadline) { return admin.Cluster(detail, deadline); });
}

ServiceReply Client::ExecMaster(ServiceCall call) {
  return BlockOn<ServiceReply>(inside_->io, inside_, [call](Admin& admin, Deadline deadline) {
    return admin.ExecMasterService(call, deadline);
  });
}

}  // namespace tamis::hbase
