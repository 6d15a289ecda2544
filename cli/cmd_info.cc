#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/info_text.h"
#include "cli/print.h"
#include "cli/proto_json.h"
#include "cli/terminal.h"
#include "cli/trace_info.h"
#include "format/io_record.h"
#include "format/loss.h"

namespace blktape {
namespace {

struct InfoOptions {
  std::string trace;
  bool json = false;
};

std::string InfoJson(const TraceInfo& info) {
  Json json;
  json["trace"] = info.name;
  json["whole"] = info.whole();
  json["finished"] = info.summary.has_value();
  json["being_written"] = info.being_written;
  json["recovered"] = info.summary && info.summary->recovered();
  json["file_bytes"] = OrNull(info.file_bytes);
  json["bytes_per_record"] =
      info.file_bytes && info.records > 0
          ? Json(static_cast<double>(*info.file_bytes) / static_cast<double>(info.records))
          : Json(nullptr);
  json["start_wall_ns"] = OrNull(info.begin_wall_ns());
  json["end_wall_ns"] = OrNull(info.end_wall_ns());
  json["first_ns"] = OrNull(info.first_ns);
  json["last_ns"] = OrNull(info.last_ns);
  json["duration_ns"] = OrNull(info.duration_ns());
  json["records"] = info.records;
  json["records_by_op"] = Json::object();
  json["bytes_by_op"] = Json::object();
  for (int op = 0; op < kOpCount; ++op) {
    if (info.records_by_op[op] == 0) continue;
    json["records_by_op"][OpName(static_cast<Op>(op))] = info.records_by_op[op];
    json["bytes_by_op"][OpName(static_cast<Op>(op))] = info.bytes_by_op[op];
  }
  json["lost_events"] = info.lost_events;
  json["losses"] = Json::array();
  for (const auto& [reason, total] : info.losses.tally().by_reason()) {
    json["losses"].push_back({{"reason", proto::LossReason_Name(reason)},
                              {"count", total.count},
                              {"unknowable", total.unknowable}});
  }
  json["marks"] = Json::array();
  for (const proto::Mark& mark : info.marks) json["marks"].push_back(ProtoJson(mark));
  json["header"] = ProtoJson(info.header);
  if (info.summary) {
    proto::Summary summary = *info.summary;
    summary.clear_frames();
    summary.clear_process_names();
    json["summary"] = ProtoJson(summary);
  } else {
    json["summary"] = nullptr;
  }
  return JsonText(json) + "\n";
}

int RunInfo(const InfoOptions& options) {
  const auto info = ReadTraceInfo(options.trace);
  if (!info.ok()) return Fail(info.status());
  const std::string text =
      options.json ? InfoJson(**info) : InfoText(**info, LookOf(STDOUT_FILENO).columns);
  Print(stdout, text);
  return (*info)->whole() ? kExitOk : kExitDegraded;
}

}  // namespace

Command InfoCommand() {
  return {
      .name = "info",
      .summary = "Describe a trace, and verify that it is complete",
      .examples =
          "blktape info monday.tape\n"
          "blktape info monday.tape.partial\n"
          "blktape info monday.tape --json | jq .losses",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<InfoOptions>();
        flags->Positional("TRACE", &options->trace,
                          "A .tape or .tape.partial file; - is standard input");
        flags->Switch(
            "--json", &options->json,
            "The same as JSON (ns, bytes); header and summary as in trace.proto, bytes in hex");
        return [options] { return RunInfo(*options); };
      },
  };
}

}  // namespace blktape
