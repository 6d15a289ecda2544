#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/byte_stream.h"
#include "base/new_file.h"
#include "base/quantity.h"
#include "base/status.h"
#include "base/text_layout.h"
#include "capture/export/exporter.h"
#include "cli/command.h"
#include "cli/loss_text.h"
#include "cli/print.h"
#include "cli/terminal.h"
#include "format/io_record.h"
#include "format/trace_reader.h"

namespace blktape {
namespace {

struct ExportOptions {
  std::string trace;
  std::string format;
  std::string output;
  bool list_formats = false;
};

class StandardOutput : public ByteSink {
 public:
  Status Write(std::span<const std::byte> bytes) override {
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() &&
        std::fflush(stdout) == 0) {
      return OkStatus();
    }
    return ErrnoStatus(errno, "standard output");
  }
  Status Sync() override { return OkStatus(); }
  std::string_view name() const override { return "standard output"; }
};

// New files, which have their names only when the export is whole.
class NewFiles : public ExportOutput {
 public:
  explicit NewFiles(std::string path) : path_(std::move(path)) {}

  Result<ByteSink*> File(const std::string& suffix) override {
    if (path_ == "-") return &standard_output_;
    const std::string path = path_ + suffix;
    ASSIGN_OR_RETURN(NewFile file, NewFile::Create(path));
    ASSIGN_OR_RETURN(std::unique_ptr<ByteSink> sink, file.Sink());
    files_.push_back({path, std::move(file), std::move(sink)});
    return files_.back().sink.get();
  }
  Status GiveNames() {
    for (One& one : files_) RETURN_IF_ERROR(one.file.GiveName());
    return OkStatus();
  }
  std::string Names() const {
    if (path_ == "-") return "standard output";
    std::string names;
    for (const One& one : files_) names += (names.empty() ? "" : " ") + one.path;
    return names;
  }

 private:
  struct One {
    std::string path;
    NewFile file;
    std::unique_ptr<ByteSink> sink;
  };

  std::string path_;
  std::deque<One> files_;
  StandardOutput standard_output_;
};

// What no exporter is told.
class Unexported : public LossLog {
 public:
  void OnMark(const proto::Mark& /*mark*/) override { ++marks_; }
  uint64_t marks() const { return marks_; }

 private:
  uint64_t marks_ = 0;
};

Status Copy(TraceReader* reader, Exporter* exporter, uint64_t* records) {
  RETURN_IF_ERROR(exporter->Begin(reader->header()));
  IoRecord record;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader->Next(&record));
    if (!more) break;
    ++*records;
    RETURN_IF_ERROR(exporter->Record(
        record, record.process ? reader->ProcessName(*record.process) : std::string_view()));
  }
  return exporter->Finish();
}

int ListFormats() {
  const size_t columns = LookOf(STDOUT_FILENO).columns;
  const std::string indent(12, ' ');
  for (const ExportFormat& format : ExportFormats()) {
    Print(stdout, Wrapped(fmt::format("{:<12}", format.name), indent, format.title, columns) +
                      Wrapped(indent, indent, "cannot hold: " + format.lacks, columns));
  }
  Print(stdout,
        "parquet, arrow\n" +
            Wrapped(indent, indent, "by the Python package: python3 -m blktape --help", columns));
  return kExitOk;
}

int RunExport(const ExportOptions& options) {
  if (options.list_formats) return ListFormats();
  if (options.trace.empty()) return UsageError("blktape export: what to read? Give a TRACE");
  const ExportFormat* format = nullptr;
  for (const ExportFormat& candidate : ExportFormats()) {
    if (candidate.name == options.format) format = &candidate;
  }
  if (format == nullptr) {
    return UsageError(options.format.empty() ? "blktape export: into what? Give --to FORMAT"
                                             : "--to " + options.format +
                                                   ": no such format; see "
                                                   "--list-formats");
  }
  if (options.output.empty()) return UsageError("blktape export: where to write? Give -o FILE");
  if (options.output == "-" && format->several_files) {
    return UsageError("--to " + options.format + " writes several files: give -o NAME");
  }
  Unexported unexported;
  const auto reader = TraceReader::Open(options.trace, &unexported);
  if (!reader.ok()) return Fail(reader.status());
  NewFiles files(options.output);
  const std::unique_ptr<Exporter> exporter = format->make(&files);
  uint64_t records = 0;
  Status written = Copy(reader->get(), exporter.get(), &records);
  if (written.ok()) written = files.GiveNames();
  if (!written.ok()) return Fail(written);
  // Standard output may be what was exported.
  std::string said = "wrote     " + files.Names() + ": " + FormatCounted(records, "I/O") + " as " +
                     format->name + "\n";
  for (const auto& [what, count] : exporter->left_out()) {
    said += "left out  " + what + " (" + FormatCounted(count, "I/O") + ")\n";
  }
  if (unexported.marks() > 0) {
    said += "left out  " + FormatCounted(unexported.marks(), "mark") + "\n";
  }
  Print(options.output == "-" ? stderr : stdout, said);
  unexported.Warn(std::string((*reader)->name()));
  return (*reader)->lost_events() > 0 ? kExitDegraded : kExitOk;
}

}  // namespace

Command ExportCommand() {
  std::string names;
  for (const ExportFormat& format : ExportFormats()) {
    names += (names.empty() ? "" : ", ") + format.name;
  }
  return {
      .name = "export",
      .summary = "Write a trace in the format of another program",
      .examples =
          "blktape export monday.tape --to fio-iolog -o monday.fio\n"
          "blktape export monday.tape --to blktrace -o sda    makes sda.blktrace.0 ...\n"
          "blktape export monday.tape --to perfetto -o monday.json\n"
          "blktape export monday.tape --to jsonl -o - | jq .bytes",
      .declare = [names](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<ExportOptions>();
        flags->Positional("TRACE", &options->trace,
                          "A .tape or .tape.partial file; - is standard input",
                          /*required=*/false);
        flags->Text("--to", &options->format,
                    "One of " + names +
                        "; parquet and arrow by the Python package (python3 -m "
                        "blktape)",
                    "FORMAT");
        flags->Text("-o,--output", &options->output,
                    "The file to write, never overwritten; - is standard output", "FILE");
        flags->Switch("--list-formats", &options->list_formats,
                      "Print the formats, and what each of them cannot represent");
        return [options] { return RunExport(*options); };
      },
  };
}

}  // namespace blktape
