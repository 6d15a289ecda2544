#include "cli/target_consent.h"

#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

#include "base/quantity.h"
#include "cli/print.h"
#include "cli/replay_report.h"
#include "format/trace.pb.h"
#include "replay/target/signature.h"
#include "replay/target/target.h"
#include "report/target_notes.h"

namespace blktape {

MadeFiles::~MadeFiles() {
  for (const std::string& path : paths_) {
    if (unlink(path.c_str()) == 0) Print(stderr, "removed " + path + " again\n");
  }
}

namespace {

// A name in /dev is that of a device, and no file is made in its place.
Status CheckIsNoDevice(const std::string& path) {
  if (!path.starts_with("/dev/") || path.starts_with("/dev/shm/")) return OkStatus();
  return Status(StatusCode::kNotFound, path + ": there is no such device");
}

}  // namespace

Status CreateScratchTarget(const std::string& path, uint64_t size_bytes, bool prepared,
                           MadeFiles* made) {
  RETURN_IF_ERROR(CheckIsNoDevice(path));
  RETURN_IF_ERROR(CreateScratchFile(path, size_bytes));
  made->Add(path);
  Print(stderr, "created " + path + ", " + FormatBytes(size_bytes) + ", without content" +
                    (prepared ? "\n"
                              : ": reads of blocks that were never written\ncost next to nothing "
                                "and flatter the drive; `blktape prepare` writes them\n"));
  return OkStatus();
}

Status CreateScratchTargets(const ReplayOptions& options, bool create, bool prepared,
                            const std::atomic<bool>& stop, MadeFiles* made) {
  for (const ReplayOptions::Mapping& mapping : options.mappings) {
    const std::string& path = mapping.target_path;
    std::error_code error;
    if (path == "none" || std::filesystem::exists(path, error)) continue;
    RETURN_IF_ERROR(CheckIsNoDevice(path));
    if (!create) {
      return Status(StatusCode::kNotFound,
                    path +
                        ": there is no such file\n  try:  --create, which makes a scratch file "
                        "of the size the trace wants");
    }
    ASSIGN_OR_RETURN(const uint64_t end_bytes, FootprintEndBytes(options, stop));
    constexpr uint64_t kMebibyte = 1 << 20;
    if (end_bytes > INT64_MAX - kMebibyte) {
      return Status(StatusCode::kFailedPrecondition,
                    path + ": the trace reaches up to " + FormatBytes(end_bytes) +
                        ", and no file is as large\n  try:  a file or device that is there, with "
                        "replay --remap scale or wrap");
    }
    const uint64_t size_bytes = (end_bytes / kMebibyte + 1) * kMebibyte;
    RETURN_IF_ERROR(CreateScratchTarget(path, size_bytes, prepared, made));
  }
  return OkStatus();
}

void TellShared(const ReplayPreview& preview, const std::string& way_out) {
  for (const std::string& one : preview.shared) {
    Print(stderr, "warning: " + one + ": their I/Os go to the same addresses\n");
  }
  if (!preview.shared.empty() && !way_out.empty()) {
    std::fprintf(stderr, "  try:  %s\n", way_out.c_str());
  }
}

void TellLostFlushes(const ReplayPreview& preview) {
  for (const proto::Device& target : preview.targets) {
    const std::string note = LostFlushesNote(target);
    if (!note.empty()) Print(stderr, "warning: " + note + "\n");
  }
}

bool ChangesDevices(const ReplayOptions& options, const ReplayPreview& preview) {
  if (options.skip_writes) return false;
  for (const proto::Device& target : preview.targets) {
    if (!target.is_file() && !target.path().empty()) return true;
  }
  return false;
}

Status ConfirmOverwrite(const ReplayPreview& preview, const std::atomic<bool>& stop) {
  if (isatty(STDIN_FILENO) == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "writing to a device wants a confirmation, and there is no terminal to ask on\n"
                  "  try:  --yes");
  }
  std::fprintf(stderr, "This will destroy what lies on\n");
  for (const proto::Device& target : preview.targets) {
    Print(stderr, "  " + DescribeTarget(target) + "\n");
    const auto holds = FindSignature(target.path());
    if (holds.ok()) {
      Print(stderr,
            "    which holds " + holds->value_or("nothing that libblkid recognises") + "\n");
    }
  }
  std::fprintf(stderr, "Type yes to go on: ");
  // A read would go on waiting for the answer after a signal that only asks to stop.
  pollfd terminal{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  constexpr int kLookEveryMs = 100;
  while (!stop.load() && poll(&terminal, 1, kLookEveryMs) <= 0) {
  }
  std::string answer;
  if (!stop.load()) std::getline(std::cin, answer);
  if (answer != "yes" || stop.load())
    return Status(StatusCode::kCancelled, "not confirmed; nothing was written");
  return OkStatus();
}

}  // namespace blktape
