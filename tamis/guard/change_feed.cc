#include "tamis/guard/change_feed.h"

#include <poll.h>

namespace tamis {
namespace {

std::optional<std::string> Unescape(std::string_view text) {
  std::string key;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') return {};  // a line's end of Windows, which is no part of the key
    if (text[i] != '\\') {
      key += text[i];
      continue;
    }
    if (++i == text.size()) return {};
    if (text[i] != '\\' && text[i] != 'n' && text[i] != 'r') return {};
    key += text[i] == 'n' ? '\n' : text[i] == 'r' ? '\r' : '\\';
  }
  return key;
}

}  // namespace

Result<std::optional<FeedChanges>> ChangeFeed::Next() {
  FeedChanges changes;
  size_t whole_added = 0;  // the number of changes that a mark follows
  size_t whole_erased = 0;
  size_t bytes = 0;
  const auto give = [&] {
    changes.added.resize(whole_added);
    changes.erased.resize(whole_erased);
    return std::optional(std::move(changes));
  };
  while (true) {
    auto line = lines_.Next();
    // A line that is cut off is no change: the feed begins after the last mark again.
    if (!line.ok() && lines_.is_cut_off()) line = std::optional<std::string_view>();
    if (!line.ok()) return line.status();
    if (!*line) {
      if (changes.mark.empty()) return std::optional<FeedChanges>();
      return give();
    }
    const auto wrong = [&](std::string_view what) {
      return InvalidArgument("cannot read line " + std::to_string(lines_.lines()) +
                             " of the feed: " + std::string(what));
    };
    if ((*line)->empty()) return wrong("it is empty");
    const std::string_view text = (*line)->substr(1);
    bytes += text.size();
    switch ((**line)[0]) {
      case '+':
      case '-': {
        auto key = Unescape(text);
        if (!key) return wrong("a backslash may only precede \\, n or r; a carriage return is \\r");
        ((**line)[0] == '+' ? changes.added : changes.erased).push_back(std::move(*key));
        break;
      }
      case '=':
        if (text.empty() || text.size() > 1024) return wrong("a mark has 1 to 1024 bytes");
        if (text.back() == '\r') return wrong("the mark ends with a carriage return");
        changes.mark = text;
        whole_added = changes.added.size();
        whole_erased = changes.erased.size();
        break;
      case '!':
        if (!text.empty()) return wrong("\"!\" must be alone in its line");
        if (changes.size() != whole_added + whole_erased) {
          return wrong("\"!\" is within a transaction: a mark must precede it");
        }
        changes.caught_up = true;
        return give();
      default:
        return wrong("it begins with none of + - = !");
    }
    if (bytes > kGreatestBytes) return wrong("the transaction is greater than a GiB");
    const bool whole = !changes.mark.empty() && changes.size() == whole_added + whole_erased;
    if (!whole) continue;
    if (changes.size() >= kGreatestBatch) return give();
    pollfd file{file_, POLLIN, 0};
    if (!lines_.has_more() && poll(&file, 1, 0) == 0) return give();
  }
}

}  // namespace tamis
