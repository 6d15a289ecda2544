// Scores a simulated drive that is not the same twice, as real ones are, for tests of what is
// computed from it:
//   noisy_score score TRACE FOLDER DRIVE [NAME=VALUE ...]   prints its JSON, leaves report and runs
//   noisy_score suite WEIGHT REPORT [WEIGHT REPORT ...]     prints the result of a suite of them
// All times of a run on the drive are stretched by one factor, and each I/O is late by up to 2 % of
// its service time. The same words give the same runs. What NAME may be, and what it is if it is
// not given:
//   sd=0.02      standard deviation of the logarithm of a run's factor
//   drift=0      by so much this logarithm grows from cycle to cycle
//   seed=1       of both
//   spoil=0      somebody else did I/O during this cycle
//   cycles=3     published=0    budget_ms=0    sample=1 (its seed)    reference= (a folder)

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "analysis/score_report.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "base/units.h"
#include "bench/campaign.h"
#include "bench/suite.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "format/trace_reader.h"
#include "format/trace_writer.h"
#include "replay/prepare/prepare.h"
#include "replay/replayer.h"
#include "report/score_report_out.h"

namespace blktape {
namespace {

// Does nothing: pauses before runs are no part of it.
class StillClock : public Clock {
 public:
  int64_t NowNs() override { return 0; }
  void SleepUntilNs(int64_t) override {}
};

struct Noise {
  double sd = 0.02;
  double drift = 0;
  uint32_t spoil = 0;
  std::mt19937_64 random;
};

// Writes the result of a run anew.
Status Disturb(const std::string& path, uint32_t cycle, Noise* noise) {
  std::vector<IoRecord> records;
  ASSIGN_OR_RETURN(const auto reader, TraceReader::Open(path));
  RETURN_IF_ERROR(
      ForEachRecord(reader.get(), [&records](const IoRecord& io) { records.push_back(io); }));
  proto::Summary summary;
  *summary.mutable_replay() = reader->summary()->replay();
  if (cycle == noise->spoil) summary.mutable_replay()->set_foreign_sectors(8);
  const double factor = std::exp(std::normal_distribution<double>(0, noise->sd)(noise->random) +
                                 noise->drift * cycle);
  const int64_t start_ns = *records.front().queue_ns;
  const auto stretch = [&](int64_t ns) {
    return start_ns + std::llround(static_cast<double>(ns - start_ns) * factor);
  };
  std::uniform_real_distribution<double> late(0, 0.02);
  std::filesystem::remove(path);
  ASSIGN_OR_RETURN(const auto writer, TraceWriter::Create(path, reader->header()));
  for (IoRecord& io : records) {
    const double service_ns = factor * static_cast<double>(*io.complete_ns - *io.issue_ns);
    io.issue_ns = stretch(*io.issue_ns);
    io.complete_ns = stretch(*io.complete_ns);
    if (io.backlog_ns) {
      io.backlog_ns = static_cast<uint64_t>(*io.issue_ns - stretch(*io.queue_ns));
    }
    io.queue_ns = stretch(*io.queue_ns) - std::llround(service_ns * late(noise->random));
    RETURN_IF_ERROR(writer->Write(io));
  }
  return writer->Finish(summary);
}

Result<ScoreReport> Score(const CampaignOptions& options, Noise noise) {
  StillClock clock;
  const std::atomic<bool> stop{false};
  const ReplayFunction replay = [&noise](
                                    const ReplayOptions& asked, const std::atomic<bool>& stopped,
                                    const std::function<void(const ReplayProgress&)>& progress) {
    Result<proto::ReplayOutcome> outcome = RunReplay(asked, stopped, progress);
    if (!outcome.ok() || asked.cycle == 0) return outcome;
    const Status disturbed = Disturb(asked.result_path, asked.cycle, &noise);
    return disturbed.ok() ? outcome : Result<proto::ReplayOutcome>(disturbed);
  };
  const CampaignTools tools{.replay = replay, .prepare = RunPrepare, .clock = &clock};
  return RunCampaign(options, tools, stop, {});
}

int Fail(const Status& status) {
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return 1;
}

int PrintScore(const std::vector<std::string>& words) {
  CampaignOptions options;
  options.piece.trace_path = words[1];
  options.folder = words[2];
  options.target_path = "sim:" + words[3];
  Noise noise;
  std::map<std::string, std::function<void(const std::string&)>> names = {
      {"sd", [&](const std::string& value) { noise.sd = std::stod(value); }},
      {"drift", [&](const std::string& value) { noise.drift = std::stod(value); }},
      {"seed", [&](const std::string& value) { noise.random.seed(std::stoull(value)); }},
      {"spoil",
       [&](const std::string& value) { noise.spoil = static_cast<uint32_t>(std::stoul(value)); }},
      {"cycles", [&](const std::string& value) { options.cycles = std::stoull(value); }},
      {"published", [&](const std::string& value) { options.published = value == "1"; }},
      {"budget_ms",
       [&](const std::string& value) { options.budget_ns = std::stoll(value) * kNanosPerMilli; }},
      {"sample", [&](const std::string& value) { options.seed = std::stoull(value); }},
      {"reference", [&](const std::string& value) { options.reference_folder = value; }},
  };
  noise.random.seed(1);
  for (size_t i = 4; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const auto name = names.find(words[i].substr(0, equals));
    if (equals == std::string::npos || name == names.end()) {
      std::fprintf(stderr, "error: unknown: %s\n", words[i].c_str());
      return 2;
    }
    name->second(words[i].substr(equals + 1));
  }
  const auto report = Score(options, noise);
  if (!report.ok()) return Fail(report.status());
  const std::string text = JsonText(ScoreJson(*report)) + "\n";
  const auto sink = CreateFile(options.folder + "/report.json");
  if (!sink.ok()) return Fail(sink.status());
  const Status written = (*sink)->Write(std::as_bytes(std::span(text.data(), text.size())));
  if (!written.ok()) return Fail(written);
  fmt::print("{}", text);
  return 0;
}

int PrintSuite(const std::vector<std::string>& words) {
  Suite suite{.name = "made up", .traces = {}};
  std::vector<std::string> reports;
  for (size_t i = 1; i + 1 < words.size(); i += 2) {
    suite.traces.push_back({.weight = std::stod(words[i]), .path = words[i + 1]});
    const auto text = ReadFile(words[i + 1]);
    if (!text.ok()) return Fail(text.status());
    reports.push_back(*text);
  }
  const auto text = SuiteResultText(suite, /*order_seed=*/1, reports);
  if (!text.ok()) return Fail(text.status());
  fmt::print("{}", *text);
  return 0;
}

}  // namespace
}  // namespace blktape

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() >= 4 && words[0] == "score") return blktape::PrintScore(words);
  if (words.size() >= 3 && words[0] == "suite") return blktape::PrintSuite(words);
  std::fprintf(stderr, "usage: see noisy_score.cc\n");
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
