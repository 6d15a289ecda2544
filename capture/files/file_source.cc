#include "capture/files/file_source.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/decompress.h"
#include "base/file.h"
#include "base/tar.h"
#include "capture/blktrace/blktrace_decoder.h"
#include "capture/files/blktrace_file_source.h"
#include "capture/files/row_file_source.h"
#include "capture/import/columns.h"
#include "capture/import/import_format.h"

namespace blktape {
namespace {

// A format of its own source, or one of rows or events.
struct FileFormat {
  std::string name;
  std::string title;
  std::string lacks;
  std::function<bool(std::string_view head)> looks_like;
  std::function<std::unique_ptr<FileSource>(std::vector<std::unique_ptr<ByteSource>> inputs)> make;
};
using Inputs = std::vector<std::unique_ptr<ByteSource>>;

FileFormat OfRows(const ImportFormat& format) {
  return {format.name, format.title, format.lacks, format.looks_like,
          [&format](Inputs inputs) -> std::unique_ptr<FileSource> {
            return std::make_unique<RowFileSource>(format, std::move(inputs));
          }};
}

const std::vector<FileFormat>& Formats() {
  static const std::vector<FileFormat>* const formats = [] {
    auto* made = new std::vector<FileFormat>;
    made->push_back(
        {"blktrace", "blktrace binary, version 7 or 8, per CPU or merged", "nothing",
         [](std::string_view head) { return LooksLikeBlktrace(std::as_bytes(std::span(head))); },
         [](Inputs inputs) -> std::unique_ptr<FileSource> {
           return std::make_unique<BlktraceFileSource>(std::move(inputs));
         }});
    for (const ImportFormat& format : ImportFormats()) made->push_back(OfRows(format));
    return made;
  }();
  return *formats;
}

std::string KnownFormats() {
  std::string known;
  for (const FileFormat& format : Formats()) {
    known += "\n  " + format.name +
             std::string(12 - std::min<size_t>(11, format.name.size()), ' ') + format.title;
  }
  return known;
}

// Fills `buffer` unless the source is shorter.
Result<size_t> ReadFully(ByteSource* source, std::span<std::byte> buffer) {
  size_t filled = 0;
  while (filled < buffer.size()) {
    ASSIGN_OR_RETURN(const size_t got, source->Read(buffer.subspan(filled)));
    if (got == 0) break;
    filled += got;
  }
  return filled;
}

// Enough for the header lines of any format.
constexpr size_t kHeadBytes = 65536;

struct OpenedInput {
  std::unique_ptr<ByteSource> source;  // at its start, readable more than once
  std::string head;                    // its first bytes; all of a shorter one, with a line end
  bool optional = false;               // of a folder or archive: may be of no format
};

Result<OpenedInput> WithHead(std::unique_ptr<ByteSource> source, bool optional) {
  OpenedInput input;
  std::string head(kHeadBytes, '\0');
  const Result<size_t> got = ReadFully(source.get(), std::as_writable_bytes(std::span(head)));
  // Damage within the head: what came before it is still good to know the format by.
  if (!got.ok() && got.status().code() != StatusCode::kDataLoss) return got.status();
  if (!got.ok()) {
    RETURN_IF_ERROR(source->Seek(0));
    size_t filled = 0;
    while (true) {
      const Result<size_t> part = source->Read(std::as_writable_bytes(
          std::span(head).subspan(filled, std::min<size_t>(512, head.size() - filled))));
      if (!part.ok() || *part == 0) break;
      filled += *part;
    }
    head.resize(filled);
  } else {
    head.resize(*got);
  }
  RETURN_IF_ERROR(source->Seek(0));
  if (!head.empty() && head.size() < kHeadBytes && head.back() != '\n') head.push_back('\n');
  input.source = std::move(source);
  input.head = std::move(head);
  input.optional = optional;
  return input;
}

bool IsOfAnyFormat(std::string_view head) {
  for (const FileFormat& format : Formats()) {
    if (format.looks_like(head)) return true;
  }
  return false;
}

// What `path` holds: one input, or those in an archive.
Status OpenInput(const std::string& path, bool optional, const std::string& spool_folder,
                 std::vector<OpenedInput>* inputs) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> file, OpenForReading(path));
  if (!file->Seek(0).ok()) {
    ASSIGN_OR_RETURN(file, Spool(file.get(), spool_folder));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> content, Decompressed(std::move(file)));
  ASSIGN_OR_RETURN(OpenedInput opened, WithHead(std::move(content), optional));
  if (!LooksLikeTar(std::as_bytes(std::span(opened.head)))) {
    inputs->push_back(std::move(opened));
    return OkStatus();
  }
  TarReader tar(opened.source.get());
  while (true) {
    ASSIGN_OR_RETURN(const bool more, tar.Next());
    if (!more) return OkStatus();
    // A file in it may be compressed again.
    ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> member, Spool(&tar, spool_folder));
    ASSIGN_OR_RETURN(member, Decompressed(std::move(member)));
    ASSIGN_OR_RETURN(OpenedInput input, WithHead(std::move(member), /*optional=*/true));
    if (IsOfAnyFormat(input.head)) inputs->push_back(std::move(input));
  }
}

// All files in a folder, by name, numbers in it by their value.
std::vector<std::string> FilesIn(const std::string& folder) {
  std::map<std::pair<size_t, std::string>, std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (!entry.is_regular_file(error)) continue;
    const std::string name = entry.path().filename().string();
    files[{name.size(), name}] = entry.path().string();
  }
  std::vector<std::string> result;
  for (const auto& [key, file] : files) result.push_back(file);
  return result;
}

constexpr std::string_view kPerCpuInfix = ".blktrace.";

// The members of a per-CPU set, in the order of their CPUs.
std::vector<std::string> PerCpuFiles(const std::string& base) {
  const std::filesystem::path path(base);
  std::filesystem::path folder = path.parent_path();
  const std::string prefix = path.filename().string() + std::string(kPerCpuInfix);
  std::map<std::pair<size_t, std::string>, std::string> files;  // shorter numbers first
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.empty() ? "." : folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const std::string cpu = name.substr(prefix.size());
    const size_t digits = std::min(cpu.find_first_not_of("0123456789"), cpu.size());
    if (digits == 0) continue;
    files[{digits, cpu}] = (folder / name).string();
  }
  std::vector<std::string> result;
  for (const auto& [key, file] : files) result.push_back(file);
  return result;
}

}  // namespace

Result<std::vector<std::string>> ResolveInputs(const std::vector<std::string>& arguments) {
  std::vector<std::string> paths;
  for (const std::string& argument : arguments) {
    std::error_code error;
    if (argument == "-" || std::filesystem::exists(argument, error)) {
      paths.push_back(argument);
      continue;
    }
    const std::vector<std::string> set = PerCpuFiles(argument);
    if (set.empty()) {
      return Status(StatusCode::kNotFound,
                    argument + ": no such file, and no " + argument + ".blktrace.0 or the like");
    }
    paths.insert(paths.end(), set.begin(), set.end());
  }
  return paths;
}

std::vector<std::string> MissingPerCpuFiles(const std::vector<std::string>& paths) {
  // "sda.blktrace.0" also of "sda.blktrace.0.zst": one CPU's file may be compressed.
  const auto without_suffix = [](const std::string& path) {
    const size_t number = path.rfind(kPerCpuInfix);
    if (number == std::string::npos) return std::string();
    return path.substr(0, path.find_first_not_of("0123456789", number + kPerCpuInfix.size()));
  };
  std::set<std::string> bases;
  std::set<std::string> named;
  for (const std::string& path : paths) {
    const std::string file = without_suffix(path);
    if (file.empty()) continue;
    named.insert(file);
    bases.insert(file.substr(0, file.rfind(kPerCpuInfix)));
  }
  std::vector<std::string> missing;
  for (const std::string& base : bases) {
    for (const std::string& file : PerCpuFiles(base)) {
      if (!named.contains(without_suffix(file))) missing.push_back(file);
    }
  }
  return missing;
}

std::vector<FileFormatName> FileFormats() {
  std::vector<FileFormatName> names;
  for (const FileFormat& format : Formats()) {
    names.push_back({format.name, format.title, format.lacks});
  }
  return names;
}

namespace {

// The format of `head`; null where there is none.
Result<const FileFormat*> Recognise(std::string_view head, const std::string& name) {
  const FileFormat* found = nullptr;
  for (const FileFormat& candidate : Formats()) {
    if (!candidate.looks_like(head)) continue;
    if (found != nullptr) {
      return Status(StatusCode::kFailedPrecondition,
                    name + ": may be " + found->title + " or " + candidate.title +
                        "\n  try:  --format " + found->name + ", or --format " + candidate.name);
    }
    found = &candidate;
  }
  return found;
}

}  // namespace

Result<std::unique_ptr<FileSource>> OpenFileSource(const std::vector<std::string>& paths,
                                                   const std::string& spool_folder,
                                                   const FileSourceOptions& options) {
  const FileFormat* format = nullptr;
  std::optional<ImportFormat> table;
  if (!options.columns.empty()) {
    if (!options.format.empty()) {
      return Status(StatusCode::kInvalidArgument, "--columns is a format; leave --format out");
    }
    ASSIGN_OR_RETURN(const ColumnLayout layout, ParseColumns(options.columns));
    table.emplace();
    table->name = "table";
    table->title = "a table of columns " + options.columns;
    table->make = [layout] { return MakeColumnImporter(layout); };
  } else if (!options.format.empty()) {
    for (const FileFormat& candidate : Formats()) {
      if (candidate.name == options.format) format = &candidate;
    }
    if (format == nullptr) {
      return Status(StatusCode::kInvalidArgument,
                    "--format " + options.format +
                        ": there is none of that name; there are:" + KnownFormats());
    }
  }
  const bool forced = format != nullptr || table.has_value();

  std::vector<OpenedInput> opened;
  for (const std::string& path : paths) {
    std::error_code error;
    if (path == "-" || !std::filesystem::is_directory(path, error)) {
      RETURN_IF_ERROR(OpenInput(path, /*optional=*/false, spool_folder, &opened));
      continue;
    }
    for (const std::string& file : FilesIn(path)) {
      RETURN_IF_ERROR(OpenInput(file, /*optional=*/true, spool_folder, &opened));
    }
  }
  Inputs inputs;
  for (OpenedInput& input : opened) {
    if (input.head.empty()) {  // a CPU without events
      inputs.push_back(std::move(input.source));
      continue;
    }
    const std::string name(input.source->name());
    if (!forced) {
      ASSIGN_OR_RETURN(const FileFormat* const found, Recognise(input.head, name));
      if (found == nullptr) {
        if (input.optional) continue;
        return Status(StatusCode::kFailedPrecondition,
                      name + ": not of a format that can be imported; known are:" + KnownFormats() +
                          "\n  try:  --format NAME, or --columns for a table of another program");
      }
      if (format != nullptr && format != found) {
        return Status(StatusCode::kFailedPrecondition,
                      name + ": is " + found->title + ", but the files before it are " +
                          format->title + "\n  try:  the files of one recording");
      }
      format = found;
    }
    inputs.push_back(std::move(input.source));
  }
  if (table) {
    return std::unique_ptr<FileSource>(std::make_unique<RowFileSource>(*table, std::move(inputs)));
  }
  if (format == nullptr) {
    return Status(StatusCode::kFailedPrecondition,
                  (paths.empty() ? "no input" : paths.front()) +
                      (opened.empty() || opened.front().head.empty()
                           ? ": is empty; nothing to import"
                           : ": holds no file of a format that can be imported; known are:" +
                                 KnownFormats()));
  }
  return format->make(std::move(inputs));
}

}  // namespace blktape
