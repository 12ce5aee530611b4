#include "tests/golden/formats.h"

#include <bit>
#include <sstream>
#include <vector>

#include "tamis/cluster/cluster.pb.h"
#include "tests/golden/golden_text.h"

namespace tamis {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string ScalarText(const Message& message, const FieldDescriptor& field, int i) {
  const auto& get = *message.GetReflection();
  const bool many = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return std::to_string(many ? get.GetRepeatedUInt32(message, &field, i)
                                 : get.GetUInt32(message, &field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return std::to_string(many ? get.GetRepeatedUInt64(message, &field, i)
                                 : get.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_INT32:
      return std::to_string(many ? get.GetRepeatedInt32(message, &field, i)
                                 : get.GetInt32(message, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return std::to_string(many ? get.GetRepeatedInt64(message, &field, i)
                                 : get.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:  // its bits
      return std::to_string(std::bit_cast<uint64_t>(many ? get.GetRepeatedDouble(message, &field, i)
                                                         : get.GetDouble(message, &field)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return (many ? get.GetRepeatedBool(message, &field, i) : get.GetBool(message, &field)) ? "1"
                                                                                             : "0";
    case FieldDescriptor::CPPTYPE_ENUM:
      return std::to_string(many ? get.GetRepeatedEnumValue(message, &field, i)
                                 : get.GetEnumValue(message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return Hex(many ? get.GetRepeatedString(message, &field, i) : get.GetString(message, &field));
    default:
      return "?";  // the messages have no others
  }
}

// " 3.1.2=value" for each field that is set, by field numbers; a repeated one as often as it is
// there.
void AppendFields(const Message& message, const std::string& path, std::string* out) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string name = path + std::to_string(field->number());
    const auto& get = *message.GetReflection();
    const int count = field->is_repeated() ? get.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        *out += " " + name + "{";
        AppendFields(field->is_repeated() ? get.GetRepeatedMessage(message, field, i)
                                          : get.GetMessage(message, field),
                     "", out);
        *out += " }";
      } else {
        *out += " " + name + "=" + ScalarText(message, *field, i);
      }
    }
  }
}

// Sets every field, and every one of what is inside, to a value of its own.
void FillIn(Message* message, uint64_t* next) {
  const auto& set = *message->GetReflection();
  const auto& type = *message->GetDescriptor();
  for (int f = 0; f < type.field_count(); ++f) {
    const FieldDescriptor* field = type.field(f);
    for (int i = 0; i < (field->is_repeated() ? 2 : 1); ++i) {
      const bool many = field->is_repeated();
      const uint64_t n = ++*next;
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_UINT32:
          many ? set.AddUInt32(message, field, static_cast<uint32_t>(n * 1000))
               : set.SetUInt32(message, field, static_cast<uint32_t>(n * 1000));
          break;
        case FieldDescriptor::CPPTYPE_UINT64:
          many ? set.AddUInt64(message, field, ~uint64_t{0} - n)
               : set.SetUInt64(message, field, ~uint64_t{0} - n);
          break;
        case FieldDescriptor::CPPTYPE_INT32:
          many ? set.AddInt32(message, field, static_cast<int32_t>(n * 1000))
               : set.SetInt32(message, field, static_cast<int32_t>(n * 1000));
          break;
        case FieldDescriptor::CPPTYPE_INT64:
          many ? set.AddInt64(message, field, static_cast<int64_t>(n * 1'000'000))
               : set.SetInt64(message, field, static_cast<int64_t>(n * 1'000'000));
          break;
        case FieldDescriptor::CPPTYPE_DOUBLE:
          many ? set.AddDouble(message, field, static_cast<double>(n) / 4)
               : set.SetDouble(message, field, static_cast<double>(n) / 4);
          break;
        case FieldDescriptor::CPPTYPE_BOOL:
          many ? set.AddBool(message, field, true) : set.SetBool(message, field, true);
          break;
        case FieldDescriptor::CPPTYPE_ENUM: {
          const auto& values = *field->enum_type();
          const int value = values.value(static_cast<int>(n) % values.value_count())->number();
          many ? set.AddEnumValue(message, field, value) : set.SetEnumValue(message, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_STRING: {
          const std::string text = field->type() == FieldDescriptor::TYPE_BYTES
                                       ? std::string("\0\xff", 2) + std::to_string(n)
                                       : "text " + std::to_string(n);
          many ? set.AddString(message, field, text) : set.SetString(message, field, text);
          break;
        }
        case FieldDescriptor::CPPTYPE_MESSAGE:
          FillIn(many ? set.AddMessage(message, field) : set.MutableMessage(message, field), next);
          break;
        default:
          break;
      }
    }
  }
}

template <class T>
void AppendMessage(T message, std::ostringstream* out) {
  for (const bool filled : {false, true}) {
    uint64_t next = 0;
    if (filled) FillIn(&message, &next);
    std::string fields;
    AppendFields(message, "", &fields);
    *out << "M " << message.GetDescriptor()->name() << " " << Hex(message.SerializeAsString())
         << fields << "\n";
  }
}

}  // namespace

std::string Messages() {
  std::ostringstream out;
  out << "# M message bytes fields: NUMBER=VALUE of each field that is set, a message inside as\n"
         "# NUMBER{ ... }; numbers, enumerations as numbers, 0 or 1, text and bytes in "
         "hexadecimal\n";
  AppendMessage(pb::MutateRequest(), &out);
  AppendMessage(pb::MutateReply(), &out);
  AppendMessage(pb::SearchRequest(), &out);
  AppendMessage(pb::SearchReply(), &out);
  AppendMessage(pb::PollRequest(), &out);
  AppendMessage(pb::PollReply(), &out);
  AppendMessage(pb::StatusRequest(), &out);
  AppendMessage(pb::StatusReply(), &out);
  AppendMessage(pb::StartJobRequest(), &out);
  AppendMessage(pb::StartJobReply(), &out);
  AppendMessage(pb::GetJobRequest(), &out);
  AppendMessage(pb::GetJobReply(), &out);
  return out.str();
}

}  // namespace tamis
