#include "tamis/server/console_page.h"

#include <string>

#include "tamis/server/problem.h"

namespace tamis::server {
namespace {

std::string ContentType(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

Response Answer(const ConsoleFile& file) {
  return {.content_type = ContentType(file.name),
          .body = std::string(file.content),
          .headers = {{"Content-Security-Policy",
                       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                       "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
                       "'none'; require-trusted-types-for 'script'"},
                      {"Cross-Origin-Opener-Policy", "same-origin"},
                      {"Cross-Origin-Resource-Policy", "same-origin"},
                      {"Referrer-Policy", "no-referrer"}}};
}

Response AnswerNamed(const std::string& name) {
  for (const ConsoleFile& file : ConsoleFiles()) {
    if (file.name == name) return Answer(file);
  }
  return Problem(NotFound("the console has no file \"" + name + "\""));
}

}  // namespace

std::vector<Route> ConsoleRoutes() {
  return {
      {.method = "GET",
       .pattern = "/",
       .summary = "The console, a page for a browser",
       .answer_type = "text/html",
       .is_open = true,
       .answer = [](const Call& call) { call.exchange->Send(Answer(ConsoleFiles().front())); }},
      {.method = "GET",
       .pattern = "/console/{file}",
       .summary = "A style or a script of the console",
       .answer_type = "text/javascript",
       .is_open = true,
       .answer =
           [](const Call& call) { call.exchange->Send(AnswerNamed(call.parameters.at("file"))); }},
  };
}

}  // namespace tamis::server
