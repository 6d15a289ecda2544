#include "report/target_notes.h"

#include <utility>

#include "base/quantity.h"

namespace blktape {
namespace {

std::string UnwrittenNote(const proto::Device& target, const std::string& state, bool sampled) {
  const bool prepared = state == "used" || state == "fresh";
  if (prepared || target.path().empty()) return "";
  std::string note;
  if (target.is_file()) {
    if (target.unwritten_bytes() == 0) return "";
    note = FormatBytes(target.unwritten_bytes()) + " of " + target.path() +
           " were unwritten when the run began";
  } else {
    note = "it is unknown which blocks of " + target.path() + " were never written";
  }
  note += "; reads of unwritten blocks make it look too fast (prepare writes them)";
  if (sampled) note += ", and a sample reads more of them: it leaves out what writes them before";
  return note;
}

}  // namespace

std::string LostFlushesNote(const proto::Device& target) {
  if (target.write_cache() != "write through" || target.drive_write_cache() != "write back") {
    return "";
  }
  return target.path() +
         " has a volatile write cache, but its queue is set to write through: no flush reaches it, "
         "so fsync does not protect data";
}

std::vector<std::string> TargetNotes(
    const google::protobuf::RepeatedPtrField<proto::Device>& targets, const std::string& state,
    bool reads, bool sampled) {
  std::vector<std::string> notes;
  for (const proto::Device& target : targets) {
    for (std::string note :
         {LostFlushesNote(target), reads ? UnwrittenNote(target, state, sampled) : std::string()}) {
      if (!note.empty()) notes.push_back(std::move(note));
    }
  }
  return notes;
}

}  // namespace blktape
