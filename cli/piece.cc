#include "cli/piece.h"

#include <algorithm>

#include "base/quantity.h"
#include "format/frame_index.h"

namespace blktape {
namespace {

// "4k", "4k-64k", "1M-": smallest and largest.
Status ParseSizes(const std::string& text, uint64_t* least_bytes, uint64_t* most_bytes) {
  const size_t dash = text.find('-');
  ASSIGN_OR_RETURN(*least_bytes, ParseBytes(std::string_view(text).substr(0, dash)));
  if (dash == std::string::npos) {
    *most_bytes = *least_bytes;
  } else if (dash + 1 < text.size()) {
    ASSIGN_OR_RETURN(*most_bytes, ParseBytes(std::string_view(text).substr(dash + 1)));
  }
  if (*most_bytes >= *least_bytes) return OkStatus();
  return Status(StatusCode::kInvalidArgument, "--size " + text + ": ends before it begins");
}

}  // namespace

void PieceFlags::Declare(Flags* flags) {
  flags->Duration("--from", &from_ns, "Only I/Os that arrived so long after the first or later");
  flags->Duration("--to", &to_ns, "Only I/Os that arrived before that");
  flags->TextList("--device", &devices, "Only of this device; again for more", "NAME");
  flags->TextList("--process", &processes, "Only of this process; again for more", "NAME");
  flags->TextList("--op", &ops, "Only these operations: read,write,discard,flush ...", "OPS");
  flags->TextList("--lba", &ranges,
                  "Only I/Os that touch these sectors (512 bytes), as in 0-2047 or 4096-, "
                  "and flushes, which have no address; again for more",
                  "RANGE");
  flags->Text("--size", &sizes, "Only of this size, or from one to another: 4k, 4k-64k, 1M-",
              "RANGE");
}

Result<Piece> Piece::Of(const PieceFlags& typed, const Flags& flags) {
  Piece piece;
  if (flags.Given("--from")) piece.from_ns_ = typed.from_ns;
  if (flags.Given("--to")) piece.to_ns_ = typed.to_ns;
  if (piece.from_ns_ && piece.to_ns_ && *piece.from_ns_ >= *piece.to_ns_) {
    return Status(StatusCode::kInvalidArgument, "--from must lie before --to");
  }
  piece.device_names_ = typed.devices;
  piece.processes_ = typed.processes;
  for (const std::string& ops : typed.ops) RETURN_IF_ERROR(piece.filter_.AddOps(ops));
  for (const std::string& range : typed.ranges) RETURN_IF_ERROR(piece.filter_.AddRange(range));
  if (!typed.sizes.empty()) {
    RETURN_IF_ERROR(ParseSizes(typed.sizes, &piece.least_bytes_, &piece.most_bytes_));
  }
  piece.filters_ = piece.filter_.Words();
  for (const std::string& name : typed.devices) piece.filters_.push_back("device=" + name);
  for (const std::string& name : typed.processes) piece.filters_.push_back("process=" + name);
  if (!typed.sizes.empty()) piece.filters_.push_back("size=" + typed.sizes);
  return piece;
}

Status Piece::ChooseDevices(const proto::Header& header) {
  devices_.assign(static_cast<size_t>(header.devices_size()), device_names_.empty());
  for (const std::string& name : device_names_) {
    bool found = false;
    for (int i = 0; i < header.devices_size(); ++i) {
      if (header.devices(i).name() != name) continue;
      devices_[static_cast<size_t>(i)] = found = true;
    }
    if (found) continue;
    std::string known;
    for (const proto::Device& device : header.devices()) known += " " + device.name();
    return Status(StatusCode::kInvalidArgument,
                  "--device " + name + ": the trace has" + (known.empty() ? " none" : known));
  }
  return OkStatus();
}

bool Piece::KeepsProcess(std::string_view name) const {
  return processes_.empty() || std::ranges::find(processes_, name) != processes_.end();
}

std::function<bool(const proto::FrameContents&)> Piece::FramesToRead(
    const TraceReader& reader) const {
  if (!has_filters() || !reader.summary()) return nullptr;
  uint64_t devices = 0;
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i]) devices |= uint64_t{1} << i % 64;
  }
  // A process without a name is one of which nobody knows.
  const bool any_process = KeepsProcess("");
  ProcessBits processes;
  for (int id = 0; id < reader.summary()->process_names_size(); ++id) {
    if (KeepsProcess(reader.ProcessName(static_cast<uint32_t>(id)))) {
      processes.Add(static_cast<uint32_t>(id));
    }
  }
  return [filter = filter_, least_bytes = least_bytes_, most_bytes = most_bytes_, devices,
          processes, any_process](const proto::FrameContents& contents) {
    return (contents.devices() & devices) != 0 &&
           (any_process || processes.Meets(contents.processes())) &&
           contents.least_bytes() <= most_bytes && contents.most_bytes() >= least_bytes &&
           filter.MayKeep(contents);
  };
}

std::vector<std::string> Piece::Words() const {
  std::vector<std::string> words = filters_;
  if (from_ns_) words.push_back("from " + FormatDurationNs(*from_ns_));
  if (to_ns_) words.push_back("to " + FormatDurationNs(*to_ns_));
  return words;
}

}  // namespace blktape
