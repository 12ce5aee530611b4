#include "tamis/server/routes.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace tamis::server {
namespace {

std::vector<std::string_view> Steps(std::string_view path) {
  std::vector<std::string_view> steps;
  while (!path.empty()) {
    path.remove_prefix(1);  // the "/"
    const size_t end = path.find('/');
    steps.push_back(path.substr(0, end));
    path = end == std::string_view::npos ? std::string_view() : path.substr(end);
  }
  return steps;
}

bool IsParameter(std::string_view step) { return step.starts_with('{'); }

bool Matches(std::string_view pattern, std::string_view path,
             std::map<std::string, std::string>* parameters) {
  if (!path.starts_with('/')) return false;
  const auto wanted = Steps(pattern);
  const auto given = Steps(path);
  if (wanted.size() != given.size()) return false;
  parameters->clear();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!IsParameter(wanted[i])) {
      if (wanted[i] != given[i]) return false;
      continue;
    }
    const std::string name(wanted[i].substr(1, wanted[i].size() - 2));
    if (given[i].empty() || !DecodePercent(given[i], &(*parameters)[name])) return false;
  }
  return true;
}

void AddConditions(nlohmann::ordered_json* parameters) {
  for (const char* header : {"If-Match", "If-None-Match"}) {
    parameters->push_back({{"name", header},
                           {"in", "header"},
                           {"description", "* or tags of rows (ETag)"},
                           {"schema", {{"type", "string"}}}});
  }
}

}  // namespace

bool DecodePercent(std::string_view text, std::string* out) {
  out->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      *out += text[i];
      continue;
    }
    unsigned byte = 0;
    if (i + 2 >= text.size()) return false;
    const auto [end, error] = std::from_chars(&text[i + 1], &text[i + 1] + 2, byte, 16);
    if (error != std::errc() || end != &text[i + 1] + 2) return false;
    *out += static_cast<char>(byte);
    i += 2;
  }
  return true;
}

const Route* Routes::Find(const Request& request, std::map<std::string, std::string>* parameters,
                          std::vector<std::string>* methods) const {
  const std::string& method = request.method == "HEAD" ? "GET" : request.method;
  for (const Route& route : routes_) {
    if (!Matches(route.pattern, request.path, parameters)) continue;
    if (route.method == method) return &route;
    methods->push_back(route.method);
  }
  return nullptr;
}

std::string Routes::OpenApi(const std::string& version) const {
  nlohmann::ordered_json paths = nlohmann::ordered_json::object();
  for (const Route& route : routes_) {
    nlohmann::ordered_json operation = {{"summary", route.summary}};
    nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
    for (const std::string_view step : Steps(route.pattern)) {
      if (!IsParameter(step)) continue;
      parameters.push_back({{"name", step.substr(1, step.size() - 2)},
                            {"in", "path"},
                            {"required", true},
                            {"schema", {{"type", "string"}}}});
    }
    if (route.is_conditional) AddConditions(&parameters);
    if (!parameters.empty()) operation["parameters"] = parameters;
    if (route.method == "POST" || route.method == "PUT") {
      operation["requestBody"] = {
          {"required", true},
          {"content", {{route.request_type, {{"schema", {{"type", "object"}}}}}}}};
    }
    operation["responses"] = {
        {"200",
         {{"description", "The answer"},
          {"content", {{route.answer_type, nlohmann::ordered_json::object()}}}}},
        {"default",
         {{"description", "An error (RFC 9457)"},
          {"content", {{"application/problem+json", nlohmann::ordered_json::object()}}}}}};
    if (route.is_conditional) {
      operation["responses"][route.method == "GET" ? "304" : "412"] = {
          {"description", route.method == "GET" ? "The row has a tag of If-None-Match"
                                                : "The row does not meet a condition"}};
    }
    if (!route.is_open) operation["security"] = {{{"token", nlohmann::ordered_json::array()}}};
    std::string method = route.method;
    for (char& c : method) c = static_cast<char>(c + 32);
    paths[route.pattern][method] = std::move(operation);
  }
  const nlohmann::ordered_json document = {
      {"openapi", "3.1.0"},
      {"info", {{"title", "Tamis"}, {"version", version}}},
      {"paths", paths},
      {"components", {{"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
  return document.dump(2) + "\n";
}

}  // namespace tamis::server
