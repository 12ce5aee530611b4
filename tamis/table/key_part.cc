#include "tamis/table/key_part.h"

#include <charconv>

#include "tamis/table/escape.h"

namespace tamis {
namespace {

constexpr uint32_t kMaxWidth = 1024;
constexpr size_t kMaxDelimiterSize = 16;

Status Unreadable(std::string_view text, const std::string& why) {
  return InvalidArgument("cannot read key part \"" + std::string(text.substr(0, 60)) +
                         "\": " + why);
}

}  // namespace

Status KeyPart::Validate(Type type) const {
  if (form == Form::kOrdered) {
    if (encoding != CellEncoding::kNone || width != 0 || !delimiter.empty()) {
      return InvalidArgument("an ordered part has no encoding, width or delimiter");
    }
    return Status::Ok();
  }
  if (!IsEncodingOf(type, encoding)) {
    return InvalidArgument("a value of type " + std::string(TypeName(type)) + " has no encoding " +
                           std::string(EncodingName(encoding)));
  }
  const bool has_width = EncodingWidth(type, encoding).has_value();
  if (width != 0 && (form != Form::kFixed || has_width)) {
    return InvalidArgument("only text and bytes are given a width");
  }
  if (!delimiter.empty() && form != Form::kUntil) {
    return InvalidArgument("only a part that ends at a delimiter has one");
  }
  switch (form) {
    case Form::kFixed:
      if (has_width) return Status::Ok();
      if (!KeepsBytes(encoding) || width < 1 || width > kMaxWidth) {
        return InvalidArgument("a value of encoding " + std::string(EncodingName(encoding)) +
                               " has no fixed width of its own: write width=N (text and bytes, up "
                               "to 1024), until=DELIMITER, or, for the last part, rest");
      }
      return Status::Ok();
    case Form::kUntil:
      if (delimiter.empty() || delimiter.size() > kMaxDelimiterSize) {
        return InvalidArgument("a delimiter has 1 to 16 bytes");
      }
      break;
    case Form::kRest:
      break;
    default:
      return InvalidArgument("the form of a key part is unknown");
  }
  if (has_width) {
    return InvalidArgument("encoding " + std::string(EncodingName(encoding)) +
                           " has a fixed width: it needs no delimiter and is no rest");
  }
  if (type == Type::kDouble) {
    return InvalidArgument(
        "a double cannot be a key as text, since one number has several spellings: use the "
        "ordered encoding");
  }
  return Status::Ok();
}

Result<KeyPart> ParseKeyPart(Type type, std::string_view text) {
  KeyPart part;
  if (text == "ordered" || text.empty()) return part;
  part.form = KeyPart::Form::kFixed;
  part.encoding = DefaultEncoding(type);
  bool formed = false;
  std::string_view rest = text;
  while (true) {
    const size_t colon = rest.find(':');
    const std::string_view word = rest.substr(0, colon);
    const bool form_word =
        word == "rest" || word.starts_with("until=") || word.starts_with("width=");
    if (form_word && formed) return Unreadable(text, "it has two forms");
    formed |= form_word;
    if (word == "rest") {
      part.form = KeyPart::Form::kRest;
    } else if (word.starts_with("until=")) {
      part.form = KeyPart::Form::kUntil;
      const auto delimiter = Unescape(word.substr(6));
      if (!delimiter) return Unreadable(text, "a backslash begins \\xNN, a byte in hexadecimal");
      part.delimiter = *delimiter;
    } else if (word.starts_with("width=")) {
      const std::string_view number = word.substr(6);
      const auto [end, error] =
          std::from_chars(number.data(), number.data() + number.size(), part.width);
      if (error != std::errc() || end != number.data() + number.size()) {
        return Unreadable(text, "the width is no number");
      }
    } else {
      TAMIS_ASSIGN_OR_RETURN(part.encoding, ParseEncoding(word));
    }
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (Status status = part.Validate(type); !status.ok()) return Unreadable(text, status.message());
  return part;
}

std::string KeyPartText(Type type, const KeyPart& part) {
  if (part.form == KeyPart::Form::kOrdered) return "ordered";
  std::string form;
  if (part.form == KeyPart::Form::kRest) form = "rest";
  if (part.form == KeyPart::Form::kUntil) form = "until=" + Escape(part.delimiter, ":,()");
  if (part.width != 0) form = "width=" + std::to_string(part.width);
  if (!form.empty() && part.encoding == DefaultEncoding(type)) return form;
  return std::string(EncodingName(part.encoding)) + (form.empty() ? "" : ":" + form);
}

}  // namespace tamis
