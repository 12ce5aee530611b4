#include "tamis/query/explain.h"

#include <fmt/format.h>

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

}  // namespace

void Explain::Add(const Explain& other) {
  Join(&table, other.table);
  Join(&predicate, other.predicate);
  Join(&index, other.index);
  Join(&reason, other.reason);
  for (const std::string& term : other.terms) terms.push_back(term);
  for (auto field :
       {&Explain::regions_total, &Explain::regions_asked, &Explain::regions_excluded_by_filter,
        &Explain::regions_excluded_by_range, &Explain::regions_excluded_by_key,
        &Explain::regions_unknown, &Explain::regions_scanned, &Explain::false_positive_regions,
        &Explain::servers_total, &Explain::servers_asked, &Explain::requests, &Explain::index_seeks,
        &Explain::entries_read, &Explain::rows_read, &Explain::rows_returned,
        &Explain::cells_undecodable, &Explain::rows_unparsed}) {
    this->*field += other.*field;
  }
  for (auto field : {&Explain::routing_time, &Explain::server_time, &Explain::merge_time}) {
    this->*field += other.*field;
  }
}

std::string Explain::ToLine() const {
  return fmt::format(
      "{}: {} of {} servers, {} of {} regions asked ({} excluded by filter, {} by range, {} by "
      "key); "
      "{} entries and {} rows read, {} returned",
      index.empty() ? "scan" : "index " + index, servers_asked, servers_total, regions_asked,
      regions_total, regions_excluded_by_filter, regions_excluded_by_range, regions_excluded_by_key,
      entries_read, rows_read, rows_returned);
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
  line("regions", fmt::format("{} of {} asked; excluded: {} by filter, {} by range, {} by key",
                              regions_asked, regions_total, regions_excluded_by_filter,
                              regions_excluded_by_range, regions_excluded_by_key));
  line("",
       fmt::format("{} asked though their filters are not known, {} scanned, {} false positives",
                   regions_unknown, regions_scanned, false_positive_regions));
  line("servers",
       fmt::format("{} of {} asked, in {} requests", servers_asked, servers_total, requests));
  line("read", fmt::format("{} index seeks, {} entries, {} rows; {} rows returned", index_seeks,
                           entries_read, rows_read, rows_returned));
  if (cells_undecodable + rows_unparsed > 0) {
    line("foreign", fmt::format("{} cells do not decode and count as NULL, {} rows have keys that "
                                "do not parse and are left out",
                                cells_undecodable, rows_unparsed));
  }
  line("time", fmt::format("{} us routing, {} us servers, {} us merging", Micros(routing_time),
                           Micros(server_time), Micros(merge_time)));
  return text;
}

std::string Explain::ToJson() const {
  const nlohmann::ordered_json json = {{"table", table},
                                       {"predicate", predicate},
                                       {"index", index},
                                       {"terms", terms},
                                       {"reason", reason},
                                       {"regions_total", regions_total},
                                       {"regions_asked", regions_asked},
                                       {"regions_excluded_by_filter", regions_excluded_by_filter},
                                       {"regions_excluded_by_range", regions_excluded_by_range},
                                       {"regions_excluded_by_key", regions_excluded_by_key},
                                       {"regions_unknown", regions_unknown},
                                       {"regions_scanned", regions_scanned},
                                       {"false_positive_regions", false_positive_regions},
                                       {"servers_total", servers_total},
                                       {"servers_asked", servers_asked},
                                       {"requests", requests},
                                       {"index_seeks", index_seeks},
                                       {"entries_read", entries_read},
                                       {"rows_read", rows_read},
                                       {"rows_returned", rows_returned},
                                       {"cells_undecodable", cells_undecodable},
                                       {"rows_unparsed", rows_unparsed},
                                       {"routing_us", Micros(routing_time)},
                                       {"server_us", Micros(server_time)},
                                       {"merge_us", Micros(merge_time)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tamis
