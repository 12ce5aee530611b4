#include "tamis/hbase/client_options.h"

#include <algorithm>
#include <cctype>

namespace tamis::hbase {

Result<std::vector<Protection>> ParseProtections(std::string_view list) {
  std::vector<Protection> protections;
  for (std::string_view rest = list; !rest.empty();) {
    const size_t comma = rest.find(',');
    std::string word(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    std::erase(word, ' ');
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
    if (word == "authentication") {
      protections.push_back(Protection::kAuthentication);
    } else if (word == "integrity") {
      protections.push_back(Protection::kIntegrity);
    } else if (word == "privacy") {
      protections.push_back(Protection::kPrivacy);
    } else {
      return InvalidArgument("there is no protection \"" + word +
                             "\", only authentication, integrity and privacy");
    }
  }
  if (protections.empty()) return InvalidArgument("no protection is named");
  return protections;
}

}  // namespace tamis::hbase
