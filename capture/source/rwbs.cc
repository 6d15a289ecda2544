#include "capture/source/rwbs.h"

namespace blktape {
namespace {

// Reads the op letters at the start of `text` and drops them.
void TakeOp(std::string_view* text, Rwbs* rwbs) {
  const char letter = text->empty() ? 'N' : text->front();
  if (!text->empty()) text->remove_prefix(1);
  const auto take = [text](char next) {
    if (text->empty() || text->front() != next) return false;
    text->remove_prefix(1);
    return true;
  };
  switch (letter) {
    case 'R':
      rwbs->op = Op::kRead;
      return;
    case 'W':
      rwbs->op = take('Z') ? Op::kWriteZeroes : Op::kWrite;
      return;
    case 'D':
      rwbs->op = take('E') ? Op::kSecureErase : Op::kDiscard;
      return;
    case 'F':
      rwbs->op = Op::kFlush;
      return;
    case 'Z':
      if (take('A')) {
        rwbs->op = Op::kZoneAppend;
      } else if (take('R')) {
        rwbs->op = take('A') ? Op::kZoneResetAll : Op::kZoneReset;
      } else if (take('F')) {
        rwbs->op = Op::kZoneFinish;
      } else if (take('O')) {
        rwbs->op = Op::kZoneOpen;
      } else if (take('C')) {
        rwbs->op = Op::kZoneClose;
      } else {
        rwbs->none = true;
      }
      return;
    default:
      rwbs->none = true;
      return;
  }
}

}  // namespace

Rwbs ParseRwbs(std::string_view text) {
  Rwbs rwbs;
  // A leading F is PREFLUSH if an op follows it; else it is the op, a flush.
  if (text.size() >= 2 && text[0] == 'F' &&
      std::string_view("RWDFNZ").find(text[1]) != std::string_view::npos) {
    rwbs.flags |= kFlagPreflush;
    text.remove_prefix(1);
  }
  TakeOp(&text, &rwbs);
  for (const char letter : text) {
    switch (letter) {
      case 'F':
        rwbs.flags |= kFlagFua;
        break;
      case 'A':
        rwbs.flags |= kFlagReadahead;
        break;
      case 'S':
        rwbs.flags |= kFlagSync;
        break;
      case 'M':
        rwbs.flags |= kFlagMeta;
        break;
      case 'U':
        rwbs.flags |= kFlagAtomic;
        break;
      default:
        break;
    }
  }
  return rwbs;
}

}  // namespace blktape
