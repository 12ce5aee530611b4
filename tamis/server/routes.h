// Routes: which function answers which request. The table also gives the OpenAPI document.
//
// A pattern has parameters in braces: "/v1/tables/{table}/rows/{key}". A parameter is one step of
// the path, decoded.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tamis/server/exchange.h"

namespace tamis::server {

// A request that a route matches.
struct Call {
  ExchangePtr exchange;
  std::map<std::string, std::string> parameters;  // parameters of the path

  const Request& request() const { return exchange->request(); }
};

struct Route {
  std::string method;
  std::string pattern;
  std::string summary;                            // a sentence
  std::string request_type = "application/json";  // the type for POST and PUT
  std::string answer_type = "application/json";
  bool is_conditional = false;  // takes If-Match and If-None-Match
  bool is_open = false;         // answered without a token
  std::function<void(const Call&)> answer;
};

class Routes {
 public:
  explicit Routes(std::vector<Route> routes) : routes_(std::move(routes)) {}

  // The route of the request and its parameters; null, with the methods that the path has, if there
  // is none. HEAD is answered as GET is.
  const Route* Find(const Request& request, std::map<std::string, std::string>* parameters,
                    std::vector<std::string>* methods) const;
  // An OpenAPI 3.1 document.
  std::string OpenApi(const std::string& version) const;

 private:
  const std::vector<Route> routes_;
};

// %41 is "A". Returns false for a % without two hexadecimal digits.
bool DecodePercent(std::string_view text, std::string* out);

}  // namespace tamis::server
