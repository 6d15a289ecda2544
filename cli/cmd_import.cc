#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/status.h"
#include "base/text_layout.h"
#include "base/version.h"
#include "capture/assemble/capture_pipeline.h"
#include "capture/files/file_source.h"
#include "capture/files/import_report.h"
#include "capture/import/columns.h"
#include "cli/command.h"
#include "cli/loss_text.h"
#include "cli/print.h"
#include "cli/progress_line.h"
#include "cli/terminal.h"
#include "format/io_record.h"
#include "format/loss.h"
#include "format/partial_file.h"
#include "format/trace.pb.h"
#include "format/trace_reader.h"
#include "format/trace_writer.h"

namespace blktape {
namespace {

struct ImportOptions {
  std::vector<std::string> inputs;
  std::string output;
  FileSourceOptions source;
  bool list_formats = false;
  bool no_process_names = false;
  bool json = false;
};

struct Imported {
  std::string description;
  std::vector<Disk> devices;
  std::vector<std::string> files;
  CaptureCounts counts;
  std::optional<ImportReport> rows;  // of a format that has rows
  proto::Summary summary;
  uint64_t zone_append_bytes = 0;  // summary.write_bytes has them, too
  uint64_t size_bytes = 0;

  uint64_t write_bytes() const { return summary.write_bytes() - zone_append_bytes; }
};

// Says how far it is, a few times a second at the most.
class ImportProgress {
 public:
  void Show(double share) {
    const int64_t now_ns = Clock::Monotonic()->NowNs();
    if (now_ns < next_ns_) return;
    next_ns_ = now_ns + kNanosPerSecond / 5;
    line_.Show("importing " + std::to_string(static_cast<int>(share * 100)) + " %");
  }

 private:
  ProgressLine line_;
  int64_t next_ns_ = 0;
};

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

proto::Header HeaderOf(const FileSource& source, const ImportOptions& options,
                       const std::vector<std::string>& paths) {
  proto::Header header;
  header.set_tool_version(kVersion);
  header.set_source(std::string(source.name()));
  for (const Disk& device : source.devices()) *header.add_devices() = device.description;
  if (source.start()) *header.mutable_start() = *source.start();
  for (const std::string& path : paths) {
    header.add_imported_from(path == "-" ? path : std::filesystem::path(path).filename().string());
  }
  header.set_process_names(options.no_process_names ? "none" : "recorded");
  return header;
}

uint64_t RecordsOf(const proto::Summary& summary, Op op) {
  const auto it = summary.records_by_op().find(static_cast<uint32_t>(op));
  return it == summary.records_by_op().end() ? 0 : it->second;
}

Result<Imported> Import(const ImportOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, ResolveInputs(options.inputs));
  // Said before anything is read: reading may take long.
  for (const std::string& path : {options.output, PartialPath(options.output)}) {
    std::error_code error;  // then it cannot be made, either
    if (std::filesystem::exists(path, error)) {
      return Status(StatusCode::kAlreadyExists, path +
                                                    ": exists; an import overwrites nothing\n"
                                                    "  try:  another name, or remove it first");
    }
  }
  const std::vector<std::string> missing = MissingPerCpuFiles(paths);
  if (!missing.empty()) {
    Print(stderr, "warning: " + missing.front() + (missing.size() > 1 ? " and others are" : " is") +
                      " of the same recording, with other CPUs' events, and not read\n"
                      "  try:  the files' common prefix, as in `blktape import sda`\n");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<FileSource> source,
                   OpenFileSource(paths, FolderOf(options.output), options.source));
  RETURN_IF_ERROR(source->Start());
  if (source->devices().empty()) {
    return Status(StatusCode::kDataLoss, paths.front() + ": names no device");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<TraceWriter> writer,
                   TraceWriter::Create(options.output, HeaderOf(*source, options, paths)));

  CapturePipelineOptions pipeline_options;
  if (options.no_process_names) {
    pipeline_options.rename_process = [](std::string_view) { return std::string(); };
  }
  CapturePipeline pipeline(writer.get(), source->devices(), pipeline_options);
  {
    ImportProgress progress;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, source->Poll(/*timeout_ms=*/0, &pipeline));
      RETURN_IF_ERROR(pipeline.status());
      if (!more) break;
      progress.Show(source->progress());
    }
  }
  RETURN_IF_ERROR(source->Stop(&pipeline));
  RETURN_IF_ERROR(pipeline.Finish());
  proto::Summary extra;
  pipeline.FillSummary(&extra);
  RETURN_IF_ERROR(writer->Finish(extra));
  writer.reset();

  Imported result;
  result.description = source->description();
  result.devices = source->devices();
  result.files = paths;
  result.counts = pipeline.counts();
  if (source->report() != nullptr) result.rows = *source->report();
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader, TraceReader::Open(options.output));
  if (!reader->summary()) {
    return Status(StatusCode::kIoError, options.output + ": has no summary after it was finished");
  }
  result.summary = *reader->summary();
  if (RecordsOf(result.summary, Op::kZoneAppend) > 0) {
    RETURN_IF_ERROR(ForEachRecord(reader.get(), [&result](const IoRecord& io) {
      if (io.op == Op::kZoneAppend) result.zone_append_bytes += io.bytes;
    }));
  }
  std::error_code error;
  result.size_bytes = std::filesystem::file_size(options.output, error);
  return result;
}

void PrintEntries(const char* what, const std::vector<ImportReport::Entry>& entries) {
  for (const ImportReport::Entry& entry : entries) {
    Print(stdout, what + FormatCount(entry.count) + ": " + EntryText(entry) + "\n");
  }
}

Json EntriesJson(const std::vector<ImportReport::Entry>& entries) {
  Json json = Json::array();
  for (const ImportReport::Entry& entry : entries) {
    json.push_back({{"what", entry.what}, {"count", entry.count}, {"first", entry.places}});
  }
  return json;
}

void PrintText(const ImportOptions& options, const Imported& result) {
  const proto::Summary& summary = result.summary;
  const CaptureCounts& counts = result.counts;
  std::printf("read      %s, %s\n", FormatCounted(result.files.size(), "file").c_str(),
              result.description.c_str());
  for (const Disk& device : result.devices) {
    std::printf("device    %s (%u:%u)%s\n", device.description.name().c_str(),
                device.description.major(), device.description.minor(),
                device.bio_based.value_or(false) ? ", takes bios as they are" : "");
  }
  if (result.rows) {
    std::printf("rows      %s", FormatCount(result.rows->rows).c_str());
    if (result.rows->sorted > 0) {
      std::printf(", of which %s stood behind later ones and were sorted",
                  FormatCount(result.rows->sorted).c_str());
    }
    std::printf("\n");
    PrintEntries("dropped   ", result.rows->dropped);
    PrintEntries("repaired  ", result.rows->repaired);
  }
  if (counts.events > 0)
    std::printf(
        "events    %s: %s queued, %s merged, %s issued, %s requeued,\n"
        "          %s completed\n",
        FormatCount(counts.events).c_str(), FormatCount(counts.queued).c_str(),
        FormatCount(counts.merged).c_str(), FormatCount(counts.issued).c_str(),
        FormatCount(counts.requeued).c_str(), FormatCount(counts.completed).c_str());
  std::printf("I/Os      %s", FormatCount(summary.records()).c_str());
  if (summary.has_first_ns() && summary.has_last_ns()) {
    std::printf(" in %s", FormatDurationNs(summary.last_ns() - summary.first_ns()).c_str());
  }
  std::printf("\n");
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const uint64_t records = RecordsOf(summary, op);
    if (records == 0) continue;
    std::string bytes;
    if (op == Op::kRead) bytes = "  " + FormatBytes(summary.read_bytes());
    if (op == Op::kWrite) bytes = "  " + FormatBytes(result.write_bytes());
    if (op == Op::kZoneAppend) bytes = "  " + FormatBytes(result.zone_append_bytes);
    if (op == Op::kDiscard) bytes = "  " + FormatBytes(summary.discard_bytes());
    std::printf("  %-14s %12s%s\n", OpName(op), FormatCount(records).c_str(), bytes.c_str());
  }
  if (counts.passthrough > 0) {
    std::printf("left out  %s of passthrough commands\n",
                FormatCounted(counts.passthrough, "event").c_str());
  }
  const LossTally losses = TallyOf(summary);
  if (losses.lost_events() == 0) std::printf("missing   nothing\n");
  for (const auto& [reason, total] : losses.by_reason()) {
    std::printf("%-9s %s: %s\n", MeansLostEvents(reason) ? "missing" : "note",
                LossAmount(total).c_str(), LossReasonName(reason));
  }
  std::printf("wrote     %s, %s", options.output.c_str(), FormatBytes(result.size_bytes).c_str());
  if (summary.records() > 0) {
    std::printf(" (%s B an I/O)", FormatNumber(static_cast<double>(result.size_bytes) /
                                               static_cast<double>(summary.records()))
                                      .c_str());
  }
  std::printf("\n");
}

void PrintJson(const ImportOptions& options, const Imported& result) {
  const proto::Summary& summary = result.summary;
  Json json;
  json["output"] = options.output;
  json["output_bytes"] = result.size_bytes;
  json["format"] = result.description;
  json["files"] = result.files;
  for (const Disk& device : result.devices) {
    json["devices"].push_back(device.description.name());
  }
  const CaptureCounts& counts = result.counts;
  json["events"] = {{"all", counts.events},
                    {"queued", counts.queued},
                    {"merged", counts.merged},
                    {"issued", counts.issued},
                    {"requeued", counts.requeued},
                    {"completed", counts.completed},
                    {"passthrough", counts.passthrough}};
  if (result.rows) {
    json["rows"] = {{"taken", result.rows->rows},
                    {"sorted", result.rows->sorted},
                    {"dropped", EntriesJson(result.rows->dropped)},
                    {"repaired", EntriesJson(result.rows->repaired)}};
  }
  json["ios"] = summary.records();
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (RecordsOf(summary, op) > 0) json["ios_by_op"][OpName(op)] = RecordsOf(summary, op);
  }
  json["read_bytes"] = summary.read_bytes();
  json["write_bytes"] = result.write_bytes();
  json["zone_append_bytes"] = result.zone_append_bytes;
  json["discard_bytes"] = summary.discard_bytes();
  json["losses"] = Json::array();
  for (const proto::LossTotal& loss : summary.losses()) {
    json["losses"].push_back({{"reason", LossReasonName(loss.reason())},
                              {"count", loss.count()},
                              {"reports_without_count", loss.unknowable()},
                              {"events_missing", MeansLostEvents(loss.reason())}});
  }
  std::cout << JsonText(json) << "\n";
}

int ListFormats() {
  const size_t columns = LookOf(STDOUT_FILENO).columns;
  const std::string indent(12, ' ');
  for (const FileFormatName& format : FileFormats()) {
    Print(stdout, Wrapped(fmt::format("{:<12}", format.name), indent, format.title, columns) +
                      Wrapped(indent, indent, "lacks: " + format.lacks, columns));
  }
  return kExitOk;
}

int Run(const ImportOptions& options) {
  const Result<Imported> result = Import(options);
  if (!result.ok()) return Fail(result.status());
  if (options.json) {
    PrintJson(options, *result);
  } else {
    PrintText(options, *result);
  }
  return TallyOf(result->summary).lost_events() > 0 ? kExitDegraded : kExitOk;
}

}  // namespace

Command ImportCommand() {
  Command command;
  command.name = "import";
  command.summary = "Make a trace from another program's recording";
  command.examples =
      "blktape import sda.blktrace.0 sda.blktrace.1 -o monday.tape\n"
      "blktape import sda -o monday.tape             all of sda.blktrace.*\n"
      "blktape import CAMRESWEBA03-lvm0.csv.gz -o web.tape\n"
      "blktape import iotrace.tar.xz -o cas.tape\n"
      "blktape import rows.csv --columns time:us,op,offset,size -o rows.tape\n"
      "blkparse -i sda -d - -O | blktape import - -o monday.tape";
  command.declare = [](Flags* flags) -> std::function<int()> {
    auto options = std::make_shared<ImportOptions>();
    flags->PositionalList(
        "FILE", &options->inputs,
        "Another program's recording: files of one format, a folder or tar archive of such files, "
        "or the common prefix of blktrace's per-CPU files; also compressed with gzip, bzip2, xz or "
        "zstd; \"-\" is standard input",
        /*required=*/false);
    flags->Text("-o,--output", &options->output, "The trace to write; never overwritten", "FILE");
    flags->Text(
        "--format", &options->source.format,
        "Read the input as this format (see --list-formats) instead of recognising it by content",
        "NAME");
    flags->Text("--columns", &options->source.columns, std::string("The columns ") + kColumnsHelp,
                "COLUMNS");
    flags->Switch("--list-formats", &options->list_formats,
                  "Print the formats, and what each of them lacks");
    flags->Switch("--no-process-names", &options->no_process_names, "Leave out process names");
    flags->Switch("--json", &options->json, "Print what was done as JSON");
    return [options]() -> int {
      if (options->list_formats) return ListFormats();
      if (options->inputs.empty()) {
        return UsageError("blktape import: what to read? Give a FILE");
      }
      if (options->output.empty()) {
        return UsageError("blktape import: where to write? Give -o FILE");
      }
      return Run(*options);
    };
  };
  return command;
}

}  // namespace blktape
