// KeyPart: how one column of a row key stands in the key's bytes, as the schema keeps it and as
// people write it; KeyFormat reads and writes keys by it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/table/cell_encoding.h"

namespace tamis {

struct KeyPart {
  // The numbers are stored; they never change.
  enum class Form : uint8_t {
    kOrdered = 0,  // our own encoding (codec.h), of any type
    kFixed = 1,    // the width of the encoding, or `width` bytes for text or bytes
    kUntil = 2,    // the bytes up to `delimiter`, which follows; they do not contain it
    kRest = 3,     // all bytes that are left: the last part only
  };
  Form form = Form::kOrdered;
  CellEncoding encoding = CellEncoding::kNone;  // kOrdered has none
  uint32_t width = 0;
  std::string delimiter;

  Status Validate(Type type) const;

  friend bool operator==(const KeyPart&, const KeyPart&) = default;
};

// "ordered", or an encoding and a form with colons between them; what follows from the type or the
// encoding may be left out: "long", "width=4", "text:until=|", "until=\x00", "rest".
Result<KeyPart> ParseKeyPart(Type type, std::string_view text);
std::string KeyPartText(Type type, const KeyPart& part);  // in the form that ParseKeyPart reads

}  // namespace tamis
