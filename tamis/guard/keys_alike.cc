#include "tamis/guard/keys_alike.h"

#include "tamis/base/ascii.h"
#include "tamis/guard/shown_key.h"

namespace tamis {

void KeysAlike::Add(std::string_view key) {
  if (count_ == 0) first_ = key;
  if (count_ >= 2) {
    common_.Add(last_);
    number_form_.Add(last_);
  }
  ++count_;
  last_ = key;
}

// Few keys share some text by chance: the first and the last one must have it, too.
bool KeysAlike::AreFew() const { return count_ < 8; }

// If there are few keys, the last one and the first one count, too.
std::string KeysAlike::Fault() const {
  CommonText common = common_;
  NumberForm number_form = number_form_;
  if (common.keys() < 2 && count_ > 1) common.Add(last_);
  if (common.keys() < 2) common.Add(first_);
  // A head or foot is no number.
  if (IsDigit(first_.front())) number_form.Add(first_);
  if (count_ > 1 && IsDigit(last_.front())) number_form.Add(last_);
  // The first and the last may have it within other text, as in JSON.
  const auto framed_alike = [&](const std::string& frame) {
    return !AreFew() || (first_.find(frame) != first_.npos && last_.find(frame) != last_.npos);
  };
  if (const std::string frame = common.Frame(); !frame.empty() && framed_alike(frame)) {
    return "every key has " + ShownKey(frame) + " before or behind it";
  }
  if (count_ > 1 && AreFew()) {
    common.Add(first_);
    common.Add(last_);
  }
  if (common.Separator() != '\0') {
    return "every key has " + ShownKey(std::string(1, common.Separator())) +
           " within, as several columns have";
  }
  if (const std::string_view fault = number_form.Fault(); !fault.empty()) {
    return "the keys are numbers with " + std::string(fault);
  }
  return "";
}

}  // namespace tamis
