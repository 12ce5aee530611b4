#include "tamis/query/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace tamis {
namespace {

int64_t Micros(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

void Join(std::string* text, const std::string& other) {
  if (other.empty() || *text == other) return;
  if (!text->empty()) *text += "; ";
  *text += other;
}

// {"hit": ["3"], "filter": ["1", "2"]}: numbers as text, since they may have 63 bits.
nlohmann::ordered_json RegionsByOutcome(std::span<const Explain::Region> regions) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Explain::Region& region : regions) {
    json[std::string(Explain::OutcomeName(region.outcome))].push_back(std::to_string(region.id));
  }
  return json;
}

}  // namespace

void Explain::Add(const Explain& other) {
  Join(&table, other.table);
  Join(&predicate, other.predicate);
  Join(&index, other.index);
  Join(&reason, other.reason);
  searches += std::max<uint64_t>(1, other.searches);
  for (const std::string& term : other.terms) terms.push_back(term);
  for (const IndexUse& use : other.uses) uses.push_back(use);
  if (regions.empty()) regions = other.regions;
  AddCounts(other);
}

void Explain::AddCounts(const Explain& other) {
  for (const Number& number : Numbers()) this->*number.value += other.*number.value;
  for (const Time& time : Times()) this->*time.value += other.*time.value;
}

std::string_view Explain::OutcomeName(Outcome outcome) {
  static constexpr std::array<std::string_view, kOutcomes> kNames = {
      "hit", "in_vain", "unknown", "filter", "cells", "range", "key", "not_asked"};
  return kNames[static_cast<size_t>(outcome)];
}

std::span<const Explain::Number> Explain::Numbers() {
#define TAMIS_EXPLAIN_NUMBER(name) {#name, &Explain::name},
  static constexpr Number kNumbers[] = {TAMIS_EXPLAIN_NUMBERS(TAMIS_EXPLAIN_NUMBER)};
#undef TAMIS_EXPLAIN_NUMBER
  return kNumbers;
}

std::span<const Explain::Time> Explain::Times() {
  static constexpr Time kTimes[] = {{"routing_us", &Explain::routing_time},
                                    {"server_us", &Explain::server_time},
                                    {"merge_us", &Explain::merge_time}};
  return kTimes;
}

// Only of indexes that have cells.
std::string Explain::ByCells() const {
  return regions_excluded_by_cells == 0 ? ""
                                        : fmt::format("{} by cells, ", regions_excluded_by_cells);
}

std::string Explain::ToLine() const {
  std::string line = searches > 1 ? fmt::format("{} searches, sums: ", searches) : "";
  line += fmt::format(
      "{}: {} of {} servers, {} of {} regions asked ({} excluded by filter, {}{} by range, {} "
      "by key); {} entries and {} rows read, {} returned",
      index.empty() ? "scan" : "index " + index, servers_asked, servers_total, regions_asked,
      regions_total, regions_excluded_by_filter, ByCells(), regions_excluded_by_range,
      regions_excluded_by_key, entries_read, rows_read, rows_returned);
  if (IsIndexOnly()) line += "; index only: 0 rows read";
  uint64_t read_whole = 0;
  for (const IndexUse& use : uses) read_whole += use.index == kRows ? use.led : 0;
  if (read_whole > 0 && !index.empty()) {
    line += fmt::format("; {} regions read all rows, the cheaper way there", read_whole);
  }
  return line;
}

std::string Explain::ToText() const {
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<12} {}\n", name, value);
  };
  line("table", table);
  line("condition", predicate);
  line("plan", reason);
  line("index", index.empty() ? "none" : index);
  for (const std::string& term : terms) line("filter term", term);
  if (searches > 1) line("searches", fmt::format("{}; the numbers are sums", searches));
  line("regions", fmt::format("{} of {} asked; excluded: {} by filter, {}{} by range, {} by key",
                              regions_asked, regions_total, regions_excluded_by_filter, ByCells(),
                              regions_excluded_by_range, regions_excluded_by_key));
  line("",
       fmt::format("{} asked because their filters are not loaded, {} scanned, {} false positives",
                   regions_unknown, regions_scanned, false_positive_regions));
  line("servers",
       fmt::format("{} of {} asked, in {} requests", servers_asked, servers_total, requests));
  line("read", fmt::format("{} index seeks, {} entries, {} rows; {} rows returned", index_seeks,
                           entries_read, rows_read, rows_returned));
  if (groups > 0) line("", fmt::format("rows were sent as {} groups with their counts", groups));
  if (regions_in_parts > 0) {
    line("", fmt::format("of {} regions in parts, each as of its own instant", regions_in_parts));
  }
  if (groups_with_totals > 0) {
    line("", fmt::format("{} of the groups with the sums of their columns", groups_with_totals));
  }
  if (rows_from_entries > 0) {
    line("", IsIndexOnly() ? "index only: 0 rows read"
                           : fmt::format("{} rows from index entries alone", rows_from_entries));
  }
  for (const IndexUse& use : uses) {
    if (use.index == kRows) {
      line("", fmt::format("{} regions read all rows, the cheaper way there", use.led));
      continue;
    }
    line("",
         fmt::format("{}: {} entries read, {} expected; driving index in {} regions, joined in {}",
                     use.index, use.entries_read, use.entries_expected, use.led, use.joined));
  }
  if (cells_undecodable + rows_unparsed > 0) {
    line("foreign", fmt::format("{} cells do not decode and count as NULL, {} rows have keys that "
                                "do not parse and are left out",
                                cells_undecodable, rows_unparsed));
  }
  const std::string routing = fmt::format("{} us routing", Micros(routing_time));
  line("time", requests == 0 ? routing + "; no server was asked"
                             : fmt::format("{}, {} us servers, {} us merging", routing,
                                           Micros(server_time), Micros(merge_time)));
  return text;
}

std::string Explain::ToJson() const {
  nlohmann::ordered_json json = {{"table", table},
                                 {"predicate", predicate},
                                 {"index", index},
                                 {"terms", terms},
                                 {"reason", reason}};
  json["uses"] = nlohmann::ordered_json::array();
  for (const IndexUse& use : uses) {
    json["uses"].push_back({{"index", use.index},
                            {"led", use.led},
                            {"joined", use.joined},
                            {"entries_expected", use.entries_expected},
                            {"entries_read", use.entries_read}});
  }
  for (const Number& number : Numbers()) json[std::string(number.name)] = this->*number.value;
  for (const Time& time : Times()) json[std::string(time.name)] = Micros(this->*time.value);
  if (!regions.empty()) json["regions"] = RegionsByOutcome(regions);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tamis
