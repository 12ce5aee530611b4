#include "tamis/store/store_kind.h"

#include <strings.h>

#include <algorithm>

namespace tamis {

std::string_view PrefixOfStore(std::string_view name) {
  const auto is_letter = [](unsigned char c) { return (c >= 'a' && c <= 'z') || c == '+'; };
  const size_t colon = name.find(':');
  if (colon == std::string_view::npos || colon == 0) return "";
  const std::string_view prefix = name.substr(0, colon);
  return std::ranges::all_of(prefix, is_letter) ? prefix : "";
}

std::string StoreForms(std::string_view between) {
  std::string forms;
  for (const StoreKind* kind : kStoreKinds) {
    if (!forms.empty()) forms += between;
    forms += kind->form;
  }
  return forms;
}

Result<const StoreKind*> KindOfStore(const std::string& name) {
  const std::string_view prefix = PrefixOfStore(name);
  const std::string begin = name.substr(0, std::min(name.size(), name.find(':')));
  for (const StoreKind* kind : kStoreKinds) {
    if (begin == kind->prefix || begin.size() != kind->prefix.size() ||
        strncasecmp(begin.c_str(), kind->prefix.data(), begin.size()) != 0) {
      continue;
    }
    return InvalidArgument("cannot open store \"" + name + "\": write \"" +
                           std::string(kind->prefix) +
                           ":\" in lower case (and a directory of that "
                           "name as \"./" +
                           name + "\")");
  }
  if (prefix.empty()) return &kRocksKind;
  for (const StoreKind* kind : kStoreKinds) {
    if (kind->prefix == prefix) return kind;
  }
  return InvalidArgument("cannot open store \"" + name + "\": there is no kind of store \"" +
                         std::string(prefix) + "\"; there is " + StoreForms(" and ") +
                         " (write a directory of that name as \"./" + name + "\")");
}

}  // namespace tamis
