#include "tamis/server/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace tamis::server {
namespace {

double SecondsOf(Duration duration) { return Metrics::Seconds(duration).count(); }

void Describe(std::string* out, std::string_view name, std::string_view type,
              std::string_view help) {
  fmt::format_to(std::back_inserter(*out), "# TYPE {} {}\n# HELP {} {}\n", name, type, name, help);
}

void AppendGauge(std::string* out, std::string_view name, std::string_view help, uint64_t value) {
  Describe(out, name, "gauge", help);
  fmt::format_to(std::back_inserter(*out), "{} {}\n", name, value);
}

}  // namespace

void Metrics::Histogram::Add(double seconds) {
  for (size_t i = 0; i < kBounds.size(); ++i) {
    if (seconds <= kBounds[i]) ++counts[i];
  }
  ++count;
  sum += seconds;
}

void Metrics::Histogram::AppendTo(std::string* out, const std::string& name,
                                  const std::string& labels) const {
  const std::string before = labels.empty() ? "" : labels + ",";
  const std::string alone = labels.empty() ? "" : "{" + labels + "}";
  for (size_t i = 0; i < kBounds.size(); ++i) {
    fmt::format_to(std::back_inserter(*out), "{}_bucket{{{}le=\"{}\"}} {}\n", name, before,
                   kBounds[i], counts[i]);
  }
  fmt::format_to(std::back_inserter(*out),
                 "{0}_bucket{{{1}le=\"+Inf\"}} {2}\n{0}_count{3} {2}\n{0}_sum{3} {4}\n", name,
                 before, count, alone, sum);
}

void Metrics::CountRequest(const std::string& route, int http_status, Seconds time) {
  std::lock_guard lock(mutex_);
  ++requests_[{route, http_status}];
  request_times_[route].Add(time.count());
}

void Metrics::CountStatement(const std::string& outcome, uint64_t rows) {
  std::lock_guard lock(mutex_);
  ++statements_[outcome];
  rows_ += rows;
}

void Metrics::CountSearch(const Explain& search) {
  std::lock_guard lock(mutex_);
  searches_ += std::max<uint64_t>(1, search.searches);
  for (const Explain::Number& number : Explain::Numbers()) {
    sums_.*number.value += search.*number.value;
  }
  if (search.searches > 1) return;  // the times of a sum are not those of a search
  routing_.Add(SecondsOf(search.routing_time));
  servers_.Add(SecondsOf(search.server_time));
  merging_.Add(SecondsOf(search.merge_time));
}

Metrics::Totals Metrics::totals() const {
  std::lock_guard lock(mutex_);
  Totals totals{.rows = rows_, .searches = searches_, .sums = sums_};
  for (const auto& [outcome, count] : statements_) totals.statements += count;
  return totals;
}

std::string Metrics::Text(const Now& now) const {
  std::string out;
  const auto append = [&](std::string_view format, const auto&... values) {
    fmt::format_to(std::back_inserter(out), fmt::runtime(format), values...);
  };
  std::lock_guard lock(mutex_);

  Describe(&out, "tamis_http_requests", "counter", "Requests that were answered.");
  for (const auto& [key, count] : requests_) {
    append("tamis_http_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", key.first, key.second,
           count);
  }
  Describe(&out, "tamis_http_request_seconds", "histogram",
           "Time from the request to the end of its answer.");
  for (const auto& [route, times] : request_times_) {
    times.AppendTo(&out, "tamis_http_request_seconds", "route=\"" + route + "\"");
  }
  Describe(&out, "tamis_statements", "counter", "SQL statements that ended.");
  for (const auto& [outcome, count] : statements_) {
    append("tamis_statements_total{{outcome=\"{}\"}} {}\n", outcome, count);
  }
  Describe(&out, "tamis_statement_rows", "counter", "Rows that statements returned.");
  append("tamis_statement_rows_total {}\n", rows_);

  Describe(&out, "tamis_searches", "counter", "Searches of a table, one or more for a statement.");
  append("tamis_searches_total {}\n", searches_);
  for (const Explain::Number& number : Explain::Numbers()) {
    const std::string name = "tamis_search_" + std::string(number.name);
    Describe(&out, name, "counter", "Sum over all searches; docs/SQL.md explains the number.");
    append("{}_total {}\n", name, sums_.*number.value);
  }
  for (const auto& [name, help, times] :
       {std::tuple("tamis_search_routing_seconds", "Deciding which regions to ask.", &routing_),
        std::tuple("tamis_search_server_seconds", "From sending to the region servers' answers.",
                   &servers_),
        std::tuple("tamis_search_merge_seconds", "Merging the answers.", &merging_)}) {
    Describe(&out, name, "histogram", help);
    times->AppendTo(&out, name, "");
  }

  const Engine::Totals& totals = now.totals;
  Describe(&out, "tamis_writes", "counter",
           "Writes of rows; unknown: a server did not answer and may have carried it out.");
  append(
      "tamis_writes_total{{outcome=\"acknowledged\"}} {}\n"
      "tamis_writes_total{{outcome=\"refused\"}} {}\n"
      "tamis_writes_total{{outcome=\"unknown\"}} {}\n",
      totals.writes, totals.writes_refused, totals.writes_unknown);
  Describe(&out, "tamis_write_batch_seconds", "summary",
           "Time of batches of writes, with the waits for coordinators' acknowledgements.");
  append("tamis_write_batch_seconds_count {}\ntamis_write_batch_seconds_sum {}\n", totals.batches,
         SecondsOf(totals.batch_time));
  Describe(&out, "tamis_coordinator_polls", "counter", "Polls of region servers.");
  append(
      "tamis_coordinator_polls_total{{outcome=\"answered\"}} {}\n"
      "tamis_coordinator_polls_total{{outcome=\"failed\"}} {}\n",
      totals.polls, totals.polls_failed);
  Describe(&out, "tamis_coordinator_events", "counter",
           "Changes of filters and regions that were taken in from the region servers.");
  append("tamis_coordinator_events_total {}\n", totals.events);

  AppendGauge(&out, "tamis_connections", "Open connections of clients.", now.connections);
  AppendGauge(&out, "tamis_event_streams", "Streams of events to consoles.", now.event_streams);
  AppendGauge(&out, "tamis_statements_running", "Statements that run now.", now.statements);
  const Engine::Knowledge& known = now.known;
  AppendGauge(&out, "tamis_coordinator_servers", "Region servers that this coordinator polls.",
              known.servers);
  AppendGauge(&out, "tamis_coordinator_servers_without_lease",
              "Region servers that did not answer lately: searches ask all of their regions.",
              known.servers_without_lease);
  AppendGauge(&out, "tamis_coordinator_regions", "Regions that this coordinator knows.",
              known.regions);
  AppendGauge(&out, "tamis_coordinator_indexes_missing",
              "Pairs of region and index whose filter bits are not here; searches ask the region.",
              known.indexes_missing);
  AppendGauge(&out, "tamis_coordinator_indexes_left_out",
              "The part of these pairs whose bits find no room in memory.", known.indexes_left_out);
  AppendGauge(&out, "tamis_coordinator_filters_coarse",
              "Filters that keep fewer bits than they have, since memory has no room for all.",
              known.filters_coarse);
  AppendGauge(&out, "tamis_coordinator_filter_bytes", "Bytes of the copies of filters.",
              known.filter_bytes);
  AppendGauge(&out, "tamis_coordinator_filter_bytes_limit", "Bound of these bytes.",
              known.max_filter_bytes);
  return out + "# EOF\n";
}

}  // namespace tamis::server
