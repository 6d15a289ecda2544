#include "format/trace_anonymizer.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/address_shuffle.h"
#include "format/io_record.h"
#include "format/partial_file.h"
#include "format/process_dictionary.h"
#include "format/trace.pb.h"
#include "format/trace_copier.h"
#include "format/trace_reader.h"

namespace blktape {
namespace {

bool SpansMuch(Op op) { return op != Op::kRead && op != Op::kWrite && op != Op::kZoneAppend; }

class Anonymizer : public TraceCopier {
 public:
  Anonymizer(const AnonymizeOptions& options, const std::vector<AddressShuffle>* places,
             AnonymizeReport* report)
      : options_(options), places_(*places), report_(*report) {}

 private:
  bool Edit(IoRecord* record, std::string_view /*process*/) override {
    Renumber(&record->pid);
    Renumber(&record->waker);
    if (!options_.shuffle_addresses || !record->lba) return true;
    const AddressShuffle& places = places_[record->device];
    const Lba before = *record->lba;
    record->lba = places.Moved(before);
    if (SpansMuch(record->op) && record->bytes > 0) {
      const uint64_t sectors = (record->bytes - 1) / kSectorBytes;
      if (before.sectors <= UINT64_MAX - sectors &&
          places.Moved(Lba(before.sectors + sectors)).sectors - record->lba->sectors != sectors) {
        ++report_.wide_discards;
      }
    }
    return true;
  }
  // As they appear; 0 is the kernel's idle task everywhere.
  void Renumber(std::optional<uint32_t>* thread) {
    if (!*thread) return;
    const auto [known, added] =
        pids_.try_emplace(**thread, static_cast<uint32_t>(pids_.size() + 1));
    if (**thread != 0) *thread = known->second;
  }
  std::string Rename(std::string_view process) override {
    if (options_.keep_process_names) return std::string(process);
    const std::string number = std::to_string(++report_.processes);
    return (process.starts_with(kKernelWorker) ? std::string(kKernelWorker) : "process") + number;
  }
  // Details are words of the recorder, and may name paths.
  bool EditLoss(proto::Loss* loss) override {
    loss->clear_detail();
    return true;
  }
  bool EditMark(proto::Mark* mark) override {
    mark->clear_detail();
    return options_.keep_wall_clock || mark->kind() != proto::WALL_CLOCK_STEP;
  }
  bool EditAnchor(proto::ClockAnchor* /*anchor*/) override { return options_.keep_wall_clock; }
  bool KeepsUnknown() const override { return false; }

  const AnonymizeOptions& options_;
  const std::vector<AddressShuffle>& places_;
  AnonymizeReport& report_;
  std::unordered_map<uint32_t, uint32_t> pids_;
};

proto::Header AnonymousHeader(const proto::Header& header, const AnonymizeOptions& options) {
  // What is not named here is left out, also what a later version adds.
  proto::Header kept;
  kept.set_format_version(header.format_version());
  kept.set_tool_version(header.tool_version());
  kept.set_source(header.source());
  for (const std::string& filter : header.filters()) {
    if (filter.starts_with("op=")) kept.add_filters(filter);
  }
  kept.add_filters("anonymized");
  kept.set_process_names(options.keep_process_names ? header.process_names() : "hashed");
  kept.set_buffer_bytes_per_cpu(header.buffer_bytes_per_cpu());
  if (options.keep_wall_clock) {
    if (header.has_start()) *kept.mutable_start() = header.start();
    kept.set_timezone(header.timezone());
  }
  int number = 0;
  for (const proto::Device& device : header.devices()) {
    proto::Device* const to = kept.add_devices();
    *to = device;
    to->set_name("disk" + std::to_string(number));
    // Numbers of the range for local use: tools tell devices apart by them.
    to->set_major(240);
    to->set_minor(static_cast<uint32_t>(number++));
    to->clear_model();
    to->clear_firmware();
    to->clear_serial();
    to->clear_path();
    to->DiscardUnknownFields();
  }
  return kept;
}

}  // namespace

Result<AnonymizeReport> AnonymizeTrace(const std::string& from_path, const std::string& to_path,
                                       const AnonymizeOptions& options) {
  AnonymizeReport report;
  std::vector<AddressShuffle> places;
  if (options.shuffle_addresses) {
    ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader, TraceReader::Open(from_path));
    places.resize(static_cast<size_t>(reader->header().devices_size()));
    IoRecord record;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, reader->Next(&record));
      if (!more) break;
      if (record.lba && !SpansMuch(record.op)) {
        places[record.device].Touch(*record.lba, record.bytes);
      }
    }
    uint64_t seed = options.seed;
    for (AddressShuffle& device : places) {
      device.Choose(seed++);
      report.islands += device.islands();
      report.still_devices += device.islands() == 1;
    }
  }
  Anonymizer copier(options, &places, &report);
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader,
                   TraceReader::Open(from_path, &copier));
  if (reader->header().has_replay()) {
    return Status(StatusCode::kInvalidArgument,
                  from_path +
                      ": is the result of a replay, which names its target and its trace\n"
                      "  try:  anonymize the recording, and replay that");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceWriter> writer,
                   TraceWriter::Create(to_path, AnonymousHeader(reader->header(), options)));
  RETURN_IF_ERROR(copier.Copy(reader.get(), writer.get()));
  if (copier.unknown_columns() > 0) {
    std::remove(PartialPath(to_path).c_str());
    return UnknownColumns(from_path, reader->header());
  }
  proto::Summary extra;
  if (!copier.IsWhole(*reader)) extra.set_recovered(true);
  if (reader->summary()) {
    extra.set_own_excluded(reader->summary()->own_excluded());
    extra.set_own_excluded_bytes(reader->summary()->own_excluded_bytes());
    extra.set_filtered(reader->summary()->filtered());
    if (reader->summary()->has_end() && options.keep_wall_clock) {
      *extra.mutable_end() = reader->summary()->end();
    }
  }
  RETURN_IF_ERROR(writer->Finish(extra));
  report.records = writer->records();
  report.lost_events = reader->lost_events();
  return report;
}

}  // namespace blktape
