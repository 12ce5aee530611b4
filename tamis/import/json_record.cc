#include "tamis/import/json_record.h"

#include <nlohmann/json.hpp>

namespace tamis {
namespace {

constexpr size_t kMaxDepth = 100;

// Takes the members of the outermost object as they come, so that numbers keep their digits; what
// is nested is written down again as JSON.
class MemberReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit MemberReader(Record* record) : record_(record) {}

  bool null() override {
    if (depth_ == 1) return Take(std::nullopt);
    return Nested("null");
  }
  bool boolean(bool b) override { return Scalar(b ? "true" : "false"); }
  bool number_integer(number_integer_t n) override { return Scalar(std::to_string(n)); }
  bool number_unsigned(number_unsigned_t n) override { return Scalar(std::to_string(n)); }
  bool number_float(number_float_t, const string_t& digits) override { return Scalar(digits); }
  bool string(string_t& text) override {
    if (depth_ == 1) return Take(std::move(text));
    return Nested(JsonString(text));
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return Open('{'); }
  bool end_object() override { return Close('}'); }
  bool start_array(std::size_t) override { return Open('['); }
  bool end_array() override { return Close(']'); }
  bool key(string_t& name) override {
    if (depth_ == 1) {
      auto column = names_.Add(name);
      if (!column.ok()) return Refuse(column.status().message());
      name_ = *std::move(column);
      return true;
    }
    Separate();
    nested_ += JsonString(name) + ":";
    first_ = true;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override {
    constexpr int kNumberOutOfRange = 406;
    error_ =
        error.id == kNumberOutOfRange
            ? "the number " + token + " is greater than any double; as a JSON string it can be text"
            : "it is not JSON at byte " + std::to_string(position);
    return false;
  }

  const std::string& error() const { return error_; }

 private:
  static std::string JsonString(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  bool Refuse(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }
  bool Take(std::optional<std::string> text) {
    record_->fields.push_back({name_, std::move(text)});
    return true;
  }
  bool Scalar(std::string text) {
    if (depth_ == 1) return Take(std::move(text));
    return Nested(text);
  }
  void Separate() {
    if (!first_) nested_ += ',';
    first_ = false;
  }
  bool Nested(const std::string& text) {
    if (depth_ == 0) return Refuse("it is not a JSON object");
    Separate();
    nested_ += text;
    return true;
  }
  bool Open(char bracket) {
    if (depth_ == 0 && bracket != '{') return Refuse("it is not a JSON object");
    if (depth_ >= kMaxDepth) return Refuse("it is nested too deep");
    if (depth_ == 1) {
      nested_.clear();
      first_ = true;
    }
    if (depth_ >= 1) {
      Separate();
      nested_ += bracket;
      first_ = true;
    }
    ++depth_;
    return true;
  }
  bool Close(char bracket) {
    --depth_;
    if (depth_ == 0) return true;
    nested_ += bracket;
    first_ = false;
    return depth_ > 1 || Take(nested_);
  }

  Record* record_;
  FieldNames names_;
  std::string name_;
  std::string nested_;
  std::string error_;
  bool first_ = true;
  size_t depth_ = 0;
};

}  // namespace

Result<Record> ParseJsonRecord(std::string_view text) {
  // The parser takes a byte 0 for the end of the text.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return InvalidArgument("it is not JSON at byte " + std::to_string(zero + 1) +
                           ", which is 0: the line is no text, or not UTF-8");
  }
  Record record;
  MemberReader reader(&record);
  if (!nlohmann::json::sax_parse(text, &reader)) {
    return InvalidArgument(reader.error().empty() ? "it is not a JSON object" : reader.error());
  }
  return record;
}

}  // namespace tamis
