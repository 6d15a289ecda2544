#include "capture/export/csv_row.h"

#include <cstdint>
#include <optional>
#include <string>

namespace blktape {
namespace {

void Append(std::string_view more, fmt::memory_buffer* text) {
  text->append(more.data(), more.data() + more.size());
}

template <typename Number>
void Cell(const std::optional<Number>& number, fmt::memory_buffer* text) {
  if (number) {
    const fmt::format_int digits(*number);
    text->append(digits.data(), digits.data() + digits.size());
  }
  text->push_back(',');
}

void TextCell(std::string_view cell, fmt::memory_buffer* text) {
  if (cell.find_first_of(",\"\r\n") == std::string_view::npos) {
    Append(cell, text);
  } else {
    text->push_back('"');
    for (const char c : cell) {
      if (c == '"') text->push_back('"');
      text->push_back(c);
    }
    text->push_back('"');
  }
  text->push_back(',');
}

}  // namespace

void AppendCsvRow(const IoRecord& io, std::string_view device, std::string_view process,
                  fmt::memory_buffer* text) {
  Cell(io.queue_ns, text);
  Cell(io.issue_ns, text);
  Cell(io.complete_ns, text);
  TextCell(device, text);
  Append(OpName(io.op), text);
  text->push_back(',');
  if (io.flags != 0) Append(FlagNames(io.flags), text);
  text->push_back(',');
  Cell(io.lba ? std::optional<uint64_t>(io.lba->sectors) : std::nullopt, text);
  Cell(std::optional<uint64_t>(io.bytes), text);
  Cell(io.error, text);
  Cell(io.pid, text);
  TextCell(process, text);
  if (io.cpu) {
    const fmt::format_int digits(*io.cpu);
    text->append(digits.data(), digits.data() + digits.size());
  }
}

}  // namespace blktape
