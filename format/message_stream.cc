#include "format/message_stream.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"

namespace blktape {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

// The first byte of a Message that holds a RecordBatch: field number, wire type 2.
constexpr char kBatchTag = proto::Message::kBatchFieldNumber << 3 | 2;

// Smaller messages are parsed without a check: even if they consist only of empty messages, they
// take about 10 MiB.
constexpr uint64_t kUncountedBytes = 64u << 10;
// More fields than any writer puts into one message: 65,536 names and 8,192 places of an index.
constexpr uint64_t kMaxFields = 1u << 18;
constexpr uint64_t kMaxBatchFields = 1u << 10;

// Whether `in` up to its limit, a message of kind `type`, has at most `*left` fields, including
// those of nested messages; subtracts them. Each field may take about a hundred bytes once parsed.
bool HasFewFields(CodedInputStream* in, const Descriptor* type, uint64_t* left) {
  while (const uint32_t tag = in->ReadTag()) {
    if ((*left)-- == 0) return false;
    switch (WireFormatLite::GetTagWireType(tag)) {
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
        uint32_t bytes = 0;
        if (!in->ReadVarint32(&bytes) || bytes > INT32_MAX) return false;
        const FieldDescriptor* const field =
            type->FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
        if (field == nullptr || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
          if (!in->Skip(static_cast<int>(bytes))) return false;
          break;
        }
        const auto limit = in->PushLimit(static_cast<int>(bytes));
        if (!HasFewFields(in, field->message_type(), left)) return false;
        in->PopLimit(limit);
        break;
      }
      case WireFormatLite::WIRETYPE_START_GROUP:  // none of ours: not counted, so not allowed
      case WireFormatLite::WIRETYPE_END_GROUP:
        return false;
      default:
        if (!WireFormatLite::SkipField(in, tag)) return false;
    }
  }
  return in->ConsumedEntireMessage();
}

// Whether `message` is a batch and nothing else: only that may be large, as a decoder bounds it.
bool IsBatchAlone(std::string_view message) {
  if (message.empty() || message.front() != kBatchTag) return false;
  message.remove_prefix(1);
  CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()),
                      static_cast<int>(message.size()));
  uint64_t bytes = 0;
  return in.ReadVarint64(&bytes) &&
         bytes == message.size() - static_cast<size_t>(in.CurrentPosition());
}

bool IsParsedCheaply(std::string_view message) {
  if (message.size() <= kUncountedBytes) return true;
  CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()),
                      static_cast<int>(message.size()));
  uint64_t left = IsBatchAlone(message) ? kMaxBatchFields : kMaxFields;
  return HasFewFields(&in, proto::Message::descriptor(), &left);
}

}  // namespace

void AppendDelimited(const proto::Message& message, std::string* to) {
  const size_t bytes = message.ByteSizeLong();
  uint8_t prefix[10];
  const uint8_t* const prefix_end = CodedOutputStream::WriteVarint64ToArray(bytes, prefix);
  to->append(reinterpret_cast<const char*>(prefix), prefix_end - prefix);
  BLKTAPE_CHECK(message.AppendToString(to));
}

bool TakeDelimited(std::string_view* from, proto::Message* message) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(from->data()),
                      static_cast<int>(from->size()));
  uint64_t bytes = 0;
  if (!in.ReadVarint64(&bytes)) return false;
  from->remove_prefix(in.CurrentPosition());
  if (bytes == 0 || bytes > from->size()) return false;
  const std::string_view bare = from->substr(0, bytes);
  if (bytes > kMaxSmallMessageBytes && !IsBatchAlone(bare)) return false;
  if (!IsParsedCheaply(bare)) return false;
  if (!message->ParseFromArray(from->data(), static_cast<int>(bytes))) return false;
  from->remove_prefix(bytes);
  return true;
}

void MakeStringsUtf8(google::protobuf::Message* message) {
  const google::protobuf::Reflection* const reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection->FieldSize(*message, field) : 1;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      for (int i = 0; i < count; ++i) {
        MakeStringsUtf8(field->is_repeated() ? reflection->MutableRepeatedMessage(message, field, i)
                                             : reflection->MutableMessage(message, field));
      }
    } else if (field->type() == FieldDescriptor::TYPE_STRING) {
      for (int i = 0; i < count; ++i) {
        const std::string text = field->is_repeated()
                                     ? reflection->GetRepeatedString(*message, field, i)
                                     : reflection->GetString(*message, field);
        if (IsUtf8(text)) continue;
        if (field->is_repeated()) {
          reflection->SetRepeatedString(message, field, i, ToUtf8(text));
        } else {
          reflection->SetString(message, field, ToUtf8(text));
        }
      }
    }
  }
}

}  // namespace blktape
