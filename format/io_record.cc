#include "format/io_record.h"

#include <cstdio>

namespace blktape {
namespace {

struct FlagName {
  uint32_t bit;
  const char* word;
  char letter;
};

constexpr FlagName kFlagNames[] = {
    {kFlagSync, "sync", 'S'},           {kFlagFua, "fua", 'F'},
    {kFlagPreflush, "preflush", 'P'},   {kFlagMeta, "meta", 'M'},
    {kFlagReadahead, "readahead", 'A'}, {kFlagDerived, "derived", 'D'},
    {kFlagAtomic, "atomic", 'T'},       {kFlagEmulated, "emulated", 'E'},
    {kFlagBacklog, "backlog", 'B'},     {kFlagMapped, "mapped", 'L'},
};

}  // namespace

std::string FlagNames(uint32_t flags) {
  std::string names;
  for (const FlagName& name : kFlagNames) {
    if ((flags & name.bit) == 0) continue;
    flags &= ~name.bit;
    names += (names.empty() ? "" : "+") + std::string(name.word);
  }
  if (flags != 0) {
    char rest[16];
    std::snprintf(rest, sizeof(rest), "0x%x", flags);
    names += (names.empty() ? "" : "+") + std::string(rest);
  }
  return names;
}

std::string FlagLetters(uint32_t flags) {
  std::string letters;
  for (const FlagName& name : kFlagNames) {
    if ((flags & name.bit) == 0) continue;
    flags &= ~name.bit;
    letters += name.letter;
  }
  return flags == 0 ? letters : letters + "?";
}

const char* OpName(Op op) {
  switch (op) {
    case Op::kRead:
      return "read";
    case Op::kWrite:
      return "write";
    case Op::kDiscard:
      return "discard";
    case Op::kFlush:
      return "flush";
    case Op::kWriteZeroes:
      return "write_zeroes";
    case Op::kSecureErase:
      return "secure_erase";
    case Op::kZoneReset:
      return "zone_reset";
    case Op::kZoneResetAll:
      return "zone_reset_all";
    case Op::kZoneOpen:
      return "zone_open";
    case Op::kZoneClose:
      return "zone_close";
    case Op::kZoneFinish:
      return "zone_finish";
    case Op::kZoneAppend:
      return "zone_append";
  }
  return "unknown";
}

}  // namespace blktape
