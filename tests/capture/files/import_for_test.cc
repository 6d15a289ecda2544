#include "tests/capture/files/import_for_test.h"

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>

#include "base/byte_stream.h"
#include "capture/files/file_source.h"
#include "format/trace_reader.h"
#include "format/trace_writer.h"

namespace blktape {
namespace {

class Collector : public TraceObserver {
 public:
  explicit Collector(ImportedTrace* trace) : trace_(trace) {}
  void OnLoss(const proto::Loss& loss) override { trace_->losses.push_back(loss); }
  void OnQueuedSizes(const proto::QueuedSizes& sizes) override {
    trace_->queued_sizes.push_back(sizes);
  }

 private:
  ImportedTrace* trace_;
};

}  // namespace

ImportedTrace ImportForTest(const std::vector<std::string>& paths) {
  ImportedTrace trace;
  const auto source = OpenFileSource(paths, testing::TempDir());
  if (!source.ok()) {
    ADD_FAILURE() << source.status().message();
    return trace;
  }
  const Status started = (*source)->Start();
  EXPECT_TRUE(started.ok()) << started.message();

  proto::Header header;
  header.set_source(std::string((*source)->name()));
  for (const Disk& device : (*source)->devices()) {
    *header.add_devices() = device.description;
  }
  MemorySink sink;
  auto writer = TraceWriter::ToSink(&sink, header);
  EXPECT_TRUE(writer.ok());
  CapturePipeline pipeline(writer->get(), (*source)->devices(), {});
  while (true) {
    const Result<bool> more = (*source)->Poll(0, &pipeline);
    EXPECT_TRUE(more.ok()) << more.status().message();
    if (!more.ok() || !*more) break;
  }
  EXPECT_TRUE(pipeline.Finish().ok());
  trace.counts = pipeline.counts();
  EXPECT_TRUE((*writer)->Finish({}).ok());

  Collector collector(&trace);
  auto reader = TraceReader::FromSource(std::make_unique<MemorySource>(sink.bytes()), &collector);
  EXPECT_TRUE(reader.ok());
  IoRecord record;
  while (true) {
    const Result<bool> more = (*reader)->Next(&record);
    EXPECT_TRUE(more.ok());
    if (!more.ok() || !*more) break;
    trace.records.push_back(record);
    trace.process.emplace_back(record.process ? std::string((*reader)->ProcessName(*record.process))
                                              : std::string());
  }
  trace.header = (*reader)->header();
  if ((*reader)->summary()) trace.summary = *(*reader)->summary();
  return trace;
}

}  // namespace blktape
