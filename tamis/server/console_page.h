// ConsolePage: the web console, a page with its style and its scripts, embedded at build time
// (console/).
//
// The page needs no token; it asks for one and sends it with its own requests. Its policy permits
// nothing but this server's files and requests to this server.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tamis/server/exchange.h"
#include "tamis/server/routes.h"

namespace tamis::server {

// GET / and GET /console/{file}.
std::vector<Route> ConsoleRoutes();

struct ConsoleFile {
  std::string_view name;
  std::string_view content;
};
// All files; the first is the page. Its source is made by console/embed.cmake.
std::span<const ConsoleFile> ConsoleFiles();

}  // namespace tamis::server
