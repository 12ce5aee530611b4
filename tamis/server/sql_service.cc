#include "tamis/server/sql_service.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "tamis/base/exception_status.h"
#include "tamis/server/json_body.h"
#include "tamis/server/json_rows.h"
#include "tamis/server/problem.h"
#include "tamis/server/streamed_call.h"

namespace tamis::server {
namespace {

constexpr const char* kStreamType = "application/x-ndjson";
constexpr size_t kPartBytes = 64 << 10;
constexpr std::chrono::milliseconds kPartTime{20};  // then rows are sent, however few
constexpr size_t kExplainedRegions = 100'000;       // regions of one statement
constexpr size_t kExplainedSearches = 1000;  // searches of one statement; later ones are a sum

struct SqlRequest {
  std::string sql;
  nlohmann::json parameters = nlohmann::json::array();
  std::optional<std::chrono::milliseconds> timeout;
  std::optional<uint64_t> max_rows;
  bool explain = false;
  bool explain_regions = false;
  NotUtf8 not_utf8 = NotUtf8::kReplaced;
  std::map<std::string, uint64_t> tables;  // their ids, as the client knows them
};

Result<SqlRequest> ParseRequest(const std::string& body) {
  const std::string what = "cannot read the request: ";
  auto parsed = ParseJsonBody(body);
  if (!parsed.ok()) return parsed.status().WithContext("cannot read the request");
  const nlohmann::json json = *std::move(parsed);
  if (!json.is_object()) {
    return InvalidArgument(what +
                           "its body must be a JSON object, such as {\"sql\": \"SELECT 1\"}");
  }
  SqlRequest request;
  for (const auto& [name, value] : json.items()) {
    const auto wrong = [&, name = name](const std::string& type) {
      return InvalidArgument(what + "\"" + name + "\" must be " + type);
    };
    if (name == "sql") {
      if (!value.is_string()) return wrong("text");
      request.sql = value.get<std::string>();
    } else if (name == "parameters") {
      if (!value.is_array()) return wrong("an array");
      request.parameters = value;
    } else if (name == "timeout_ms") {
      if (!value.is_number_unsigned() || value.get<uint64_t>() == 0)
        return wrong("a number of milliseconds");
      request.timeout =
          std::chrono::milliseconds(std::min<uint64_t>(value.get<uint64_t>(), 1u << 31));
    } else if (name == "max_rows") {
      if (!value.is_number_unsigned()) return wrong("a number of rows");
      request.max_rows = value.get<uint64_t>();
    } else if (name == "explain" || name == "explain_regions") {
      if (!value.is_boolean()) return wrong("true or false");
      (name == "explain" ? request.explain : request.explain_regions) = value.get<bool>();
    } else if (name == "tables") {
      const auto is_id = [](const auto& id) { return id.is_number_unsigned(); };
      if (!value.is_object() || !std::all_of(value.begin(), value.end(), is_id)) {
        return wrong("an object with ids of tables");
      }
      for (const auto& [table, id] : value.items()) request.tables[table] = id.get<uint64_t>();
    } else if (name == "exact_texts") {
      if (!value.is_boolean()) return wrong("true or false");
      request.not_utf8 = value.get<bool>() ? NotUtf8::kExact : NotUtf8::kReplaced;
    } else {
      return InvalidArgument(what + "\"" + name +
                             "\" is no member; they are sql, parameters, timeout_ms, max_rows, "
                             "explain, explain_regions, tables and exact_texts");
    }
  }
  if (!json.contains("sql")) return InvalidArgument(what + "the member \"sql\" is missing");
  if (request.sql.empty()) return InvalidArgument(what + "the member \"sql\" is empty");
  if (request.sql.find('\0') != std::string::npos) {
    return InvalidArgument(what + "the statement contains a NUL character");
  }
  return request;
}

// A sentence about all searches together.
std::string LineOf(const std::vector<Explain>& searches) {
  if (searches.empty()) return "no table of the store was searched";
  Explain sum;
  for (const Explain& search : searches) {
    Explain numbers;  // the texts of thousands of searches would be long
    numbers.index = search.index;
    numbers.uses = search.uses;
    numbers.searches = search.searches;
    for (const Explain::Number& number : Explain::Numbers()) {
      numbers.*number.value = search.*number.value;
    }
    sum.Add(numbers);
  }
  return sum.ToLine();
}

}  // namespace

// One statement.
class SqlService::Statement final : public StreamedCall {
 public:
  Statement(SqlService* service, ExchangePtr exchange)
      : StreamedCall(std::move(exchange), kStreamType, service->workers_, service->statements_),
        service_(service) {}
  ~Statement() override {
    if (deadline_) service_->deadlines_.Cancel(*deadline_);
  }

 private:
  void Interrupt() override {
    if (database_ != nullptr) database_->Interrupt();
  }

  void Run() override {
    is_stream_ = exchange_->request().Header("accept").find(kStreamType) != std::string::npos;
    auto request = ParseRequest(exchange_->request().body);
    if (!request.ok()) return Fail(request.status());
    request_ = *std::move(request);
    max_rows_ = std::min(service_->options_.max_rows, request_.max_rows.value_or(UINT64_MAX));
    auto prepared = TakeAndPrepare(/*fresh=*/false);
    // A database that was kept does not know a table or a column that was made since.
    const auto misses = [&](const char* what) {
      return prepared.message().find(what) != std::string::npos;
    };
    if (!prepared.ok() && was_kept_ &&
        (misses("no such table") || misses("no such column") || misses("has no column named"))) {
      prepared = TakeAndPrepare(/*fresh=*/true);
    }
    if (!prepared.ok()) return Fail(prepared);
    if (statement_ == nullptr) return Fail(InvalidArgument("the text has no statement"));
    if (const Status same = CheckTables(); !same.ok()) return Fail(same);
    if (const Status bound = database_->Bind(statement_, request_.parameters); !bound.ok()) {
      return Fail(bound);
    }
    const auto time = std::min(service_->options_.max_time,
                               request_.timeout.value_or(service_->options_.max_time));
    deadline_ = service_->deadlines_.Add(time, [weak = weak_from_this(), time] {
      if (const auto self = weak.lock()) {
        self->Cancel(DeadlineExceeded("the statement was ended after " +
                                      std::to_string(time.count()) +
                                      " ms; a longer time is \"timeout_ms\" in the request and "
                                      "--statement-time of the server"));
      }
    });
    database_->session()->searches = &searches_;
    database_->session()->most_searches = kExplainedSearches;
    out_ = "{";
    AppendJsonHeader(statement_, &out_);
    out_ += is_stream_ ? "}\n" : ",\"rows\":[";
    Step();
  }

  // A client that has planned with a table's types must not ask another table of its name.
  Status CheckTables() {
    for (const auto& [name, id] : request_.tables) {
      TAMIS_ASSIGN_OR_RETURN(const SchemaPtr table, database_->session()->engine->Table(name));
      if (table->id == id) continue;
      return FailedPrecondition("table \"" + name +
                                "\" was dropped and created again since it was described");
    }
    return Status::Ok();
  }

  Status TakeAndPrepare(bool fresh) {
    Release(/*keep=*/false);
    auto taken = service_->databases_.Take(fresh);
    if (!taken.ok()) return taken.status();
    was_kept_ = !fresh;
    {
      std::lock_guard lock(mutex_);
      database_ = *std::move(taken);
      if (!why_cancelled_.ok()) return why_cancelled_;
    }
    database_->session()->explained_regions = request_.explain_regions ? kExplainedRegions : 0;
    auto statement = database_->Prepare(request_.sql);
    if (!statement.ok()) return statement.status();
    statement_ = *statement;
    return Status::Ok();
  }

  // Makes rows until a part is full, or the statement ends.
  void Step() {
    const auto begun = std::chrono::steady_clock::now();
    while (true) {
      const int rc = sqlite3_step(statement_);
      if (rc == SQLITE_DONE) return Complete();
      if (rc != SQLITE_ROW) return Fail(database_->ErrorOf(rc));
      if (rows_ == max_rows_) {
        more_rows_ = true;
        return Complete();
      }
      if (!is_stream_ && rows_ > 0) out_ += ',';
      const size_t before = out_.size();
      const uint64_t most = service_->options_.max_document_bytes;
      replaced_ +=
          AppendJsonRow(statement_, request_.not_utf8, &out_, (is_stream_ ? before : 0) + most);
      if (is_stream_ && out_.size() - before > most) {
        out_.resize(before);
        return Fail(InvalidArgument("a row is longer than " + std::to_string(most) +
                                    " bytes; ask for fewer columns"));
      }
      if (is_stream_) out_ += '\n';
      ++rows_;
      if (is_stream_) {
        if (out_.size() >= kPartBytes || std::chrono::steady_clock::now() - begun >= kPartTime) {
          return SendPart(std::exchange(out_, {}), [this](bool sent) {
            if (!sent) return Fail(Cancelled("the client takes no rows"));
            Step();
          });
        }
      } else if (out_.size() > most) {
        return Fail(InvalidArgument(
            "the answer is longer than " + std::to_string(most) +
            " bytes; ask for a stream (Accept: application/x-ndjson) or fewer rows"));
      }
    }
  }

  // The last line of a stream, or the last members of a document.
  std::string Trailer() {
    std::string text = "\"complete\":true,\"row_count\":" + std::to_string(rows_);
    if (more_rows_) text += ",\"more_rows\":true";
    if (sqlite3_stmt_readonly(statement_) == 0) {
      text += ",\"changes\":" + std::to_string(sqlite3_changes64(database_->db()));
    }
    if (replaced_ > 0) text += ",\"texts_not_utf8\":" + std::to_string(replaced_);
    return text;
  }

  void Complete() {
    std::string trailer = Trailer();
    // The cursors' searches end with the statement.
    statement_ = nullptr;
    const int rc = database_->End(/*keep=*/true);
    if (rc != SQLITE_OK && rc != SQLITE_ROW) return Fail(database_->ErrorOf(rc));
    if (request_.explain || request_.explain_regions) {
      if (!searches_.empty() && searches_.back().searches > 1) {
        searches_.back().reason =
            "the numbers are sums of " + std::to_string(searches_.back().searches) + " searches";
      }
      trailer += ",\"explain\":";
      AppendJsonText(LineOf(searches_), &trailer);
      trailer += ",\"searches\":[";
      for (size_t i = 0; i < searches_.size(); ++i) {
        trailer += (i == 0 ? "" : ",") + searches_[i].ToJson();
      }
      trailer += ']';
    }
    End("complete");
    if (!is_stream_) return exchange_->Send({.body = out_ + "]," + trailer + "}\n"});
    out_ += "{" + trailer + "}\n";
    // A whole stream in one piece is sent in one piece.
    if (!has_begun()) {
      return exchange_->Send({.content_type = kStreamType, .body = std::move(out_)});
    }
    SendLast(std::move(out_));
  }

  void Fail(Status status) override {
    {
      std::lock_guard lock(mutex_);
      if (!why_cancelled_.ok() && status.code() == StatusCode::kCancelled) {
        status = MayHaveChanged() ? status.WithContext(why_cancelled_.message()) : why_cancelled_;
      }
    }
    // A change is not to be sent again when a part may stand.
    const bool retried =
        status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kCancelled;
    if (MayHaveChanged() && retried) {
      status = DeadlineExceeded(status.message() + "; a change may have been made");
    }
    End(OutcomeOf(status));
    if (!has_begun()) return exchange_->Send(Problem(status));
    const int http_status = HttpStatusOf(status.code());
    out_ += "{\"error\":" + ProblemText(http_status, status) + "}\n";
    SendErrorPart(std::move(out_));
  }

  bool MayHaveChanged() const {
    return statement_ != nullptr && sqlite3_stmt_readonly(statement_) == 0;
  }

  void End(const std::string& outcome) {
    if (ended_) return;
    ended_ = true;
    Release(outcome == "complete");
    for (const Explain& search : searches_) service_->metrics_->CountSearch(search);
    service_->metrics_->CountStatement(outcome, rows_);
  }

  void Release(bool keep) {
    statement_ = nullptr;
    if (database_ != nullptr) database_->End(/*keep=*/false);
    std::unique_ptr<SqlDatabase> database;
    {
      std::lock_guard lock(mutex_);
      database = std::move(database_);
    }
    if (database == nullptr) return;
    database->session()->searches = nullptr;
    database->session()->explained_regions = 0;
    if (keep) service_->databases_.GiveBack(std::move(database));
  }

  SqlService* const service_;
  SqlRequest request_;
  bool is_stream_ = false;
  bool was_kept_ = false;
  bool ended_ = false;
  bool more_rows_ = false;
  uint64_t max_rows_ = 0;
  uint64_t rows_ = 0;
  uint64_t replaced_ = 0;
  std::string out_;  // made and not sent
  std::vector<Explain> searches_;
  std::optional<Deadlines::Id> deadline_;
  sqlite3_stmt* statement_ = nullptr;

  std::unique_ptr<SqlDatabase> database_;  // replaced with mutex_
};

SqlService::SqlService(std::shared_ptr<OpenedStore> store, WorkerThreads* workers,
                       RunningStatements* statements, Metrics* metrics, Options options)
    : workers_(workers),
      statements_(statements),
      metrics_(metrics),
      options_(options),
      databases_(std::move(store), options.may_write, static_cast<size_t>(options.max_statements)),
      deadlines_(&databases_.store()->engine().executor()) {}

SqlService::~SqlService() = default;

void SqlService::Answer(ExchangePtr exchange) {
  const auto statement = std::make_shared<Statement>(this, exchange);
  const Status added = statements_->Add(statement.get());
  if (added.ok()) return statement->Start();
  metrics_->CountStatement("refused", 0);
  exchange->Send(Problem(added));
}

}  // namespace tamis::server
