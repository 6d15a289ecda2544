#include "cli/proto_json.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace blktape {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
// One value of `field`; `index` where it is repeated, else -1.
Json Value(const Message& message, const FieldDescriptor* field, int index) {
  const google::protobuf::Reflection& get = *message.GetReflection();
  const bool one = index < 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return one ? get.GetInt32(message, field) : get.GetRepeatedInt32(message, field, index);
    case FieldDescriptor::CPPTYPE_INT64:
      return one ? get.GetInt64(message, field) : get.GetRepeatedInt64(message, field, index);
    case FieldDescriptor::CPPTYPE_UINT32:
      return one ? get.GetUInt32(message, field) : get.GetRepeatedUInt32(message, field, index);
    case FieldDescriptor::CPPTYPE_UINT64:
      return one ? get.GetUInt64(message, field) : get.GetRepeatedUInt64(message, field, index);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return one ? get.GetDouble(message, field) : get.GetRepeatedDouble(message, field, index);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return one ? get.GetFloat(message, field) : get.GetRepeatedFloat(message, field, index);
    case FieldDescriptor::CPPTYPE_BOOL:
      return one ? get.GetBool(message, field) : get.GetRepeatedBool(message, field, index);
    case FieldDescriptor::CPPTYPE_ENUM:
      return (one ? get.GetEnum(message, field) : get.GetRepeatedEnum(message, field, index))
          ->name();
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string text =
          one ? get.GetString(message, field) : get.GetRepeatedString(message, field, index);
      if (field->type() != FieldDescriptor::TYPE_BYTES) return text;
      // JSON has no bytes.
      std::string hex;
      for (const char byte : text) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
      return hex;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ProtoJson(one ? get.GetMessage(message, field)
                           : get.GetRepeatedMessage(message, field, index));
  }
  return nullptr;
}

Json Map(const Message& message, const FieldDescriptor* field) {
  const FieldDescriptor* const key_field = field->message_type()->map_key();
  const FieldDescriptor* const value_field = field->message_type()->map_value();
  std::map<std::string, Json> sorted;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    const Message& entry = message.GetReflection()->GetRepeatedMessage(message, field, i);
    const Json key = Value(entry, key_field, -1);
    sorted[key.is_string() ? key.get<std::string>() : JsonText(key, kOneLine)] =
        Value(entry, value_field, -1);
  }
  Json json = Json::object();
  // operator[] would look at all before it each time: they are distinct and in order already.
  auto& members = json.get_ref<Json::object_t&>();
  for (auto& [key, value] : sorted) members.push_back({key, std::move(value)});
  return json;
}

}  // namespace

Json ProtoJson(const Message& message) {
  Json json = Json::object();
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    Json& to = json[field->name()];
    if (field->is_map()) {
      to = Map(message, field);
    } else if (field->is_repeated()) {
      to = Json::array();
      for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
        to.push_back(Value(message, field, i));
      }
    } else {
      to = Value(message, field, -1);
    }
  }
  return json;
}

}  // namespace blktape
