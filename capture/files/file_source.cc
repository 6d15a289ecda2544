#include "capture/files/file_source.h"

#include <array>
#include <filesystem>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "base/decompress.h"
#include "base/file.h"
#include "capture/blktrace/blktrace_decoder.h"
#include "capture/files/blktrace_file_source.h"

namespace blktape {
namespace {

struct FileFormat {
  const char* name;
  bool (*looks_like)(std::span<const std::byte> head);
  std::unique_ptr<FileSource> (*make)(std::vector<std::unique_ptr<ByteSource>> inputs);
};

// A further format is one more line.
constexpr FileFormat kFormats[] = {
    {"blktrace (binary, version 7 or 8)", LooksLikeBlktrace,
     [](std::vector<std::unique_ptr<ByteSource>> inputs) -> std::unique_ptr<FileSource> {
       return std::make_unique<BlktraceFileSource>(std::move(inputs));
     }},
};

std::string KnownFormats() {
  std::string known;
  for (const FileFormat& format : kFormats) known += std::string("\n  ") + format.name;
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

// Opened, decompressed and at its start, readable more than once.
Result<std::unique_ptr<ByteSource>> OpenInput(const std::string& path,
                                              const std::string& spool_folder) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> file, OpenForReading(path));
  if (!file->Seek(0).ok()) {
    ASSIGN_OR_RETURN(file, Spool(file.get(), spool_folder));
  }
  return Decompressed(std::move(file));
}

// The members of a per-CPU set, in the order of their CPUs.
std::vector<std::string> PerCpuFiles(const std::string& base) {
  const std::filesystem::path path(base);
  std::filesystem::path folder = path.parent_path();
  const std::string prefix = path.filename().string() + ".blktrace.";
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

Result<std::unique_ptr<FileSource>> OpenFileSource(const std::vector<std::string>& paths,
                                                   const std::string& spool_folder) {
  std::vector<std::unique_ptr<ByteSource>> inputs;
  const FileFormat* format = nullptr;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> input, OpenInput(path, spool_folder));
    std::array<std::byte, 4096> head;
    ASSIGN_OR_RETURN(const size_t got, ReadFully(input.get(), head));
    RETURN_IF_ERROR(input->Seek(0));
    const std::string name(input->name());
    inputs.push_back(std::move(input));
    if (got == 0) continue;  // a CPU without events
    const FileFormat* found = nullptr;
    for (const FileFormat& candidate : kFormats) {
      if (candidate.looks_like(std::span(head).first(got))) found = &candidate;
    }
    if (found == nullptr) {
      return Status(StatusCode::kFailedPrecondition,
                    name + ": not of a format that can be imported; known are:" + KnownFormats());
    }
    if (format != nullptr && format != found) {
      return Status(StatusCode::kFailedPrecondition,
                    name + ": is " + found->name + ", but the files before it are " + format->name);
    }
    format = found;
  }
  if (format == nullptr) {
    return Status(StatusCode::kFailedPrecondition,
                  (paths.empty() ? "no input" : paths.front()) + (": is empty; nothing to import"));
  }
  return format->make(std::move(inputs));
}

}  // namespace blktape
