#include "tamis/table/json_path.h"

#include <algorithm>
#include <charconv>

#include "tamis/base/ascii.h"
#include "tamis/base/utf8.h"
#include "tamis/table/escape.h"

namespace tamis {
namespace {

// Reads one JSON text from its front to its end, and keeps the value that the path names.
class ValueFinder {
 public:
  ValueFinder(std::string_view json, const JsonPath& path) : rest_(json), path_(path) {}

  // nullopt: no JSON, or no such value.
  std::optional<std::string_view> Find() {
    SkipSpace();
    if (!ReadValue(0, 0)) return std::nullopt;
    SkipSpace();
    if (!rest_.empty()) return std::nullopt;
    return found_;
  }

  // REQUIRES: a string stands in front. False: it is malformed. `out` may be nullptr.
  bool ReadString(std::string* out) {
    rest_.remove_prefix(1);
    while (!rest_.empty() && rest_[0] != '"') {
      if (rest_[0] == '\\') {
        if (!ReadEscape(out)) return false;
        continue;
      }
      const size_t size = Utf8Size(rest_);
      if (size == 0 || static_cast<unsigned char>(rest_[0]) < 0x20) return false;
      if (out != nullptr) out->append(rest_, 0, size);
      rest_.remove_prefix(size);
    }
    return Take('"');
  }

 private:
  static constexpr size_t kOffPath = JsonPath::kMaxSteps + 1;

  bool Take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void SkipSpace() {
    while (Take(' ') || Take('\t') || Take('\n') || Take('\r')) {
    }
  }

  // `step`: how many steps of the path lead to this value, or kOffPath.
  bool ReadValue(int depth, size_t step) {
    if (rest_.empty() || depth > JsonPath::kMaxDepth) return false;
    const std::string_view begin = rest_;
    bool good = false;
    switch (rest_[0]) {
      case '{':
        good = ReadObject(depth, step);
        break;
      case '[':
        good = ReadArray(depth, step);
        break;
      case '"':
        good = ReadString(nullptr);
        break;
      case 't':
        good = TakeWord("true");
        break;
      case 'f':
        good = TakeWord("false");
        break;
      case 'n':
        good = TakeWord("null");
        break;
      default:
        good = TakeNumber();
    }
    if (good && step == path_.steps.size()) found_ = begin.substr(0, begin.size() - rest_.size());
    return good;
  }

  bool ReadObject(int depth, size_t step) {
    const std::string* wanted =
        step < path_.steps.size() ? std::get_if<std::string>(&path_.steps[step]) : nullptr;
    rest_.remove_prefix(1);
    SkipSpace();
    if (Take('}')) return true;
    do {
      SkipSpace();
      std::string key;
      if (rest_.empty() || rest_[0] != '"') return false;
      if (!ReadString(wanted == nullptr ? nullptr : &key)) return false;
      SkipSpace();
      if (!Take(':')) return false;
      SkipSpace();
      const bool leads_on = wanted != nullptr && key == *wanted;
      if (leads_on) wanted = nullptr;
      if (!ReadValue(depth + 1, leads_on ? step + 1 : kOffPath)) return false;
      SkipSpace();
    } while (Take(','));
    return Take('}');
  }

  bool ReadArray(int depth, size_t step) {
    const uint32_t* wanted =
        step < path_.steps.size() ? std::get_if<uint32_t>(&path_.steps[step]) : nullptr;
    rest_.remove_prefix(1);
    SkipSpace();
    if (Take(']')) return true;
    uint64_t number = 0;
    do {
      SkipSpace();
      const bool leads_on = wanted != nullptr && number++ == *wanted;
      if (!ReadValue(depth + 1, leads_on ? step + 1 : kOffPath)) return false;
      SkipSpace();
    } while (Take(','));
    return Take(']');
  }

  bool TakeWord(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  bool TakeDigits() {
    const size_t size =
        static_cast<size_t>(std::ranges::find_if_not(rest_, IsDigit) - rest_.begin());
    rest_.remove_prefix(size);
    return size > 0;
  }

  bool TakeNumber() {
    Take('-');
    if (!Take('0') && !TakeDigits()) return false;
    if (Take('.') && !TakeDigits()) return false;
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      return TakeDigits();
    }
    return true;
  }

  bool ReadEscape(std::string* out) {
    static constexpr std::string_view kNames = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    rest_.remove_prefix(1);
    if (rest_.empty()) return false;
    if (const size_t at = kNames.find(rest_[0]); at != std::string_view::npos) {
      if (out != nullptr) out->push_back(kMeanings[at]);
      rest_.remove_prefix(1);
      return true;
    }
    std::optional<uint32_t> unit = TakeUnit();
    if (!unit.has_value()) return false;
    uint32_t character = *unit;
    if (character >= 0xdc00 && character <= 0xdfff) return false;
    if (character >= 0xd800 && character <= 0xdbff) {
      if (!Take('\\')) return false;
      unit = TakeUnit();
      if (!unit.has_value() || *unit < 0xdc00 || *unit > 0xdfff) return false;
      character = 0x10000 + ((character - 0xd800) << 10) + (*unit - 0xdc00);
    }
    if (out != nullptr) AppendUtf8(character, out);
    return true;
  }

  // "u" and four hexadecimal digits.
  std::optional<uint32_t> TakeUnit() {
    if (rest_.size() < 5 || rest_[0] != 'u') return std::nullopt;
    uint32_t unit = 0;
    const char* const begin = rest_.data() + 1;
    if (std::from_chars(begin, begin + 4, unit, 16).ptr != begin + 4) return std::nullopt;
    rest_.remove_prefix(5);
    return unit;
  }

  std::string_view rest_;
  const JsonPath& path_;
  std::optional<std::string_view> found_;
};

bool IsPlainKey(std::string_view key) {
  return !key.empty() && !IsDigit(key[0]) && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_';
  });
}

// Takes one step off the front of the text after "$".
std::optional<JsonPath::Step> TakeStep(std::string_view* text) {
  const char first = text->front();
  text->remove_prefix(1);
  if (first == '[') {
    uint32_t number = 0;
    const char* const end = text->data() + text->size();
    const auto [at, error] = std::from_chars(text->data(), end, number);
    if (error != std::errc() || at == end || *at != ']') return std::nullopt;
    text->remove_prefix(static_cast<size_t>(at - text->data()) + 1);
    return number;
  }
  if (first != '.') return std::nullopt;
  if (text->starts_with('"')) {
    const size_t end = text->find('"', 1);
    if (end == std::string_view::npos) return std::nullopt;
    auto key = Unescape(text->substr(1, end - 1));
    text->remove_prefix(end + 1);
    return key;
  }
  const std::string_view key = text->substr(0, text->find_first_of(".["));
  text->remove_prefix(key.size());
  if (!IsPlainKey(key)) return std::nullopt;
  return std::string(key);
}

}  // namespace

Result<JsonPath> JsonPath::Parse(std::string_view text) {
  const auto unreadable = [&](const std::string& why) {
    return InvalidArgument("cannot read the JSON path \"" + std::string(text.substr(0, 60)) +
                           "\": " + why);
  };
  JsonPath path;
  if (!text.starts_with('$')) return unreadable("it begins with $, as in $.address.city");
  std::string_view rest = text.substr(1);
  while (!rest.empty()) {
    auto step = TakeStep(&rest);
    if (!step.has_value()) {
      return unreadable(
          "each step is .KEY, .\"KEY\" with \\xNN for bytes that are not printable, or [NUMBER]");
    }
    path.steps.push_back(*std::move(step));
  }
  if (Status status = path.Validate(); !status.ok()) return unreadable(status.message());
  return path;
}

std::string JsonPath::ToString() const {
  std::string out = "$";
  for (const Step& step : steps) {
    if (const auto* number = std::get_if<uint32_t>(&step)) {
      out += "[" + std::to_string(*number) + "]";
      continue;
    }
    const std::string& key = std::get<std::string>(step);
    out += IsPlainKey(key) ? "." + key : ".\"" + Escape(key, "") + "\"";
  }
  return out;
}

Status JsonPath::Validate() const {
  if (steps.empty() || steps.size() > kMaxSteps) {
    return InvalidArgument("a JSON path has 1 to " + std::to_string(kMaxSteps) + " steps");
  }
  for (const Step& step : steps) {
    const auto* key = std::get_if<std::string>(&step);
    if (key == nullptr) continue;
    if (key->size() > kMaxKeySize || FindInvalidUtf8(*key) != std::string_view::npos) {
      return InvalidArgument("a key of a JSON path is UTF-8 of at most " +
                             std::to_string(kMaxKeySize) + " bytes");
    }
  }
  return Status::Ok();
}

std::optional<std::string> JsonPath::Find(std::string_view json) const {
  const auto found = ValueFinder(json, *this).Find();
  if (!found.has_value() || found == "null") return std::nullopt;
  if (found->front() != '"') return std::string(*found);
  std::string text;
  ValueFinder(*found, *this).ReadString(&text);  // which was read once already
  return text;
}

}  // namespace tamis
