#include "host/block_stat.h"

#include <charconv>
#include <vector>

#include "base/file.h"

namespace blktape {

std::optional<BlockStat> ParseBlockStat(std::string_view text) {
  std::vector<uint64_t> fields;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    while (at != end && (*at == ' ' || *at == '\n' || *at == '\t')) ++at;
    if (at == end) break;
    uint64_t value = 0;
    const auto parsed = std::from_chars(at, end, value);
    if (parsed.ec != std::errc()) return std::nullopt;
    fields.push_back(value);
    at = parsed.ptr;
  }
  if (fields.size() < 11) return std::nullopt;
  BlockStat stat{.reads = fields[0],
                 .read_sectors = fields[2],
                 .read_ms = fields[3],
                 .writes = fields[4],
                 .write_sectors = fields[6],
                 .write_ms = fields[7]};
  if (fields.size() >= 15) {
    stat.discards = fields[11];
    stat.discard_sectors = fields[13];
  }
  if (fields.size() >= 17) stat.flushes = fields[15];
  return stat;
}

std::optional<BlockStat> ReadBlockStat(const std::string& folder) {
  // A partition shares the queue of the disk above it.
  for (const char* queue : {"/queue/iostats", "/../queue/iostats"}) {
    if (const auto iostats = ReadAttribute(folder + queue); iostats.ok()) {
      if (*iostats == "0") return std::nullopt;
      break;
    }
  }
  const Result<std::string> text = ReadAttribute(folder + "/stat");
  if (!text.ok()) return std::nullopt;
  return ParseBlockStat(*text);
}

}  // namespace blktape
