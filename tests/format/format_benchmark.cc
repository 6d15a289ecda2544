// Speed and size of the format on a desktop's load, or on the records of a trace:
//   bazel run //tests/format:format_benchmark
//   BLKTAPE_BENCH_TRACE=/path/to.tape bazel run //tests/format:format_benchmark
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "base/check.h"
#include "format/column_codec.h"
#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

const std::vector<IoRecord>& Records() {
  static const std::vector<IoRecord> records = [] {
    const char* const path = std::getenv("BLKTAPE_BENCH_TRACE");
    if (path == nullptr) return DesktopRecords(/*seed=*/1, 300'000);
    std::vector<IoRecord> read;
    const auto reader = TraceReader::Open(path);
    BLKTAPE_CHECK(reader.ok());
    IoRecord io;
    while (*(*reader)->Next(&io)) read.push_back(io);
    return read;
  }();
  return records;
}

void CountRecords(benchmark::State& state) {
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * Records().size()));
}

std::string Written(int zstd_level, uint32_t records_per_frame) {
  MemorySink sink;
  TraceWriterOptions options;
  options.zstd_level = zstd_level;
  options.records_per_frame = records_per_frame;
  const auto writer = TraceWriter::ToSink(&sink, TestHeader(64), options);
  for (const IoRecord& io : Records()) BLKTAPE_CHECK((*writer)->Write(io).ok());
  BLKTAPE_CHECK((*writer)->Finish({}).ok());
  return sink.bytes();
}

void Write(benchmark::State& state) {
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = Written(static_cast<int>(state.range(0)), static_cast<uint32_t>(state.range(1))).size();
  }
  CountRecords(state);
  state.counters["bytes_per_io"] =
      static_cast<double>(bytes) / static_cast<double>(Records().size());
}
BENCHMARK(Write)
    ->ArgNames({"zstd", "frame"})
    ->Args({3, 300})
    ->Args({3, 4096})
    ->Args({3, 32768})
    ->Args({19, 32768})
    ->Unit(benchmark::kMillisecond);

void Read(benchmark::State& state) {
  const std::string trace = Written(3, static_cast<uint32_t>(state.range(0)));
  for (auto _ : state) {
    const auto reader = TraceReader::FromSource(std::make_unique<MemorySource>(trace));
    IoRecord io;
    while (*(*reader)->Next(&io)) benchmark::DoNotOptimize(io);
  }
  CountRecords(state);
}
BENCHMARK(Read)->ArgName("frame")->Arg(300)->Arg(32768)->Unit(benchmark::kMillisecond);

constexpr size_t kBatch = 32'768;

void EncodeColumns(benchmark::State& state) {
  const size_t count = std::min(kBatch, Records().size());
  proto::RecordBatch batch;
  for (auto _ : state) EncodeBatch(std::span(Records()).first(count), &batch);
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * count));
}
BENCHMARK(EncodeColumns);

void DecodeColumns(benchmark::State& state) {
  const size_t count = std::min(kBatch, Records().size());
  proto::RecordBatch batch;
  EncodeBatch(std::span(Records()).first(count), &batch);
  std::vector<IoRecord> records;
  for (auto _ : state) BLKTAPE_CHECK(DecodeBatch(batch, &records).ok());
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * count));
}
BENCHMARK(DecodeColumns);

}  // namespace
}  // namespace blktape

BENCHMARK_MAIN();
