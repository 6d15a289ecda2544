#include "capture/tracefs/tracefs_format.h"

#include <charconv>
#include <optional>

namespace blktape {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::string_view TakeLine(std::string_view* text) {
  const size_t end = text->find('\n');
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return Trim(line);
}

std::optional<uint32_t> ParseNumber(std::string_view text) {
  text = Trim(text);
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The value of "key:VALUE;" in a field line.
std::optional<uint32_t> Attribute(std::string_view line, std::string_view key) {
  const size_t begin = line.find(key);
  if (begin == std::string_view::npos) return std::nullopt;
  line.remove_prefix(begin + key.size());
  return ParseNumber(line.substr(0, line.find(';')));
}

// "char rwbs[10]" declares rwbs, "__data_loc char[] cmd" declares cmd.
std::string_view DeclaredName(std::string_view declaration) {
  declaration = Trim(declaration);
  const size_t blank = declaration.find_last_of(" \t");
  std::string_view name =
      blank == std::string_view::npos ? declaration : declaration.substr(blank + 1);
  return name.substr(0, name.find('['));
}

// "field:TYPE NAME; offset:N; size:N; signed:N;", absent if it is not one.
std::optional<TracefsEventFormat::Field> ParseField(std::string_view line) {
  constexpr std::string_view kField = "field:";
  if (!line.starts_with(kField)) return std::nullopt;
  line.remove_prefix(kField.size());
  TracefsEventFormat::Field field;
  field.name = DeclaredName(line.substr(0, line.find(';')));
  const std::optional<uint32_t> offset = Attribute(line, "offset:");
  const std::optional<uint32_t> size = Attribute(line, "size:");
  const std::optional<uint32_t> is_signed = Attribute(line, "signed:");
  // No event is larger than a page of 64 KiB.
  if (field.name.empty() || !offset || !size || *offset > 65536 || *size > 65536) {
    return std::nullopt;
  }
  field.place = {*offset, *size, is_signed.value_or(0) != 0};
  return field;
}

}  // namespace

const TracefsField* TracefsEventFormat::Find(std::string_view field) const {
  for (const Field& candidate : fields) {
    if (candidate.name == field) return &candidate.place;
  }
  return nullptr;
}

Result<TracefsEventFormat> ParseTracefsEventFormat(std::string_view text) {
  TracefsEventFormat format;
  bool has_id = false;
  while (!text.empty()) {
    const std::string_view line = TakeLine(&text);
    if (line.starts_with("print fmt:")) break;
    if (line.starts_with("name:")) {
      format.name = Trim(line.substr(5));
    } else if (line.starts_with("ID:")) {
      const std::optional<uint32_t> id = ParseNumber(line.substr(3));
      if (!id) return Status(StatusCode::kDataLoss, "tracefs event format: bad ID line");
      format.id = *id;
      has_id = true;
    } else if (line.starts_with("field:")) {
      std::optional<TracefsEventFormat::Field> field = ParseField(line);
      if (!field) {
        return Status(StatusCode::kDataLoss,
                      "tracefs event format: bad field line \"" + std::string(line) + "\"");
      }
      format.fields.push_back(*std::move(field));
    }
  }
  if (format.name.empty() || !has_id) {
    return Status(StatusCode::kDataLoss, "tracefs event format: no name or no ID");
  }
  return format;
}

Result<TracefsPageLayout> ParseTracefsHeaderPage(std::string_view text) {
  TracefsPageLayout layout;
  int found = 0;
  while (!text.empty()) {
    std::string_view line = TakeLine(&text);
    // Here, and only here, a blank follows "field:".
    const std::optional<TracefsEventFormat::Field> field = ParseField(line);
    if (!field) continue;
    if (field->name == "timestamp") layout.timestamp = field->place, ++found;
    if (field->name == "commit") layout.commit = field->place, ++found;
    if (field->name == "data") layout.data = field->place, ++found;
  }
  if (found != 3 || layout.timestamp.size_bytes != 8 || layout.data.size_bytes == 0 ||
      (layout.commit.size_bytes != 4 && layout.commit.size_bytes != 8) ||
      layout.timestamp.offset_bytes + 8 > layout.data.offset_bytes ||
      layout.commit.offset_bytes + layout.commit.size_bytes > layout.data.offset_bytes) {
    return Status(StatusCode::kDataLoss, "tracefs header_page: not the fields expected");
  }
  return layout;
}

}  // namespace blktape
