#include "format/io_record.h"

namespace blktape {

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
