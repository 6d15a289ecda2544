#include "cli/info_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "base/byte_stream.h"
#include "cli/trace_info.h"
#include "format/trace_writer.h"
#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(InfoTextTest, AMarkAtTheEarliestTimeIsTheLongestBeforeTheBeginning) {
  TraceInfo info;
  info.header = TestHeader();
  info.header.mutable_start()->set_monotonic_ns(INT64_MAX);
  proto::Mark mark;
  mark.set_at_ns(INT64_MIN);
  mark.set_value_ns(INT64_MIN);
  info.marks.push_back(mark);
  // 2^63 ns are 9,223,372,036.9 s.
  EXPECT_THAT(InfoText(info, 200), HasSubstr(", -2562047 h 47 min after the beginning"));
}

// Of 2^63 bytes each: their sum fits no number.
TEST(InfoTextTest, BytesBeyondWhatANumberHoldsAreAsManyAsItHolds) {
  IoRecord io = Write4k(1000, 0);
  io.bytes = uint64_t{1} << 63;
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/large.tape";
  std::ofstream(path, std::ios::binary) << TraceOf({io, io}, 100);
  const auto info = ReadTraceInfo(path);
  ASSERT_TRUE(info.ok()) << info.status().message();
  EXPECT_EQ((*info)->bytes_by_op[static_cast<int>(Op::kWrite)], UINT64_MAX);
  EXPECT_THAT(InfoText(**info, 200), HasSubstr("EiB"));
}

TEST(InfoTextTest, NothingOfATraceReachesTheTerminalAsAnEscape) {
  const std::string bad = "\x1b[31mred\x07\xc2\x9b";
  TraceInfo info;
  info.name = bad;
  proto::Header& header = info.header;
  for (std::string* const text :
       {header.mutable_source(), header.mutable_tool_version(), header.mutable_generator(),
        header.mutable_host(), header.mutable_kernel(), header.mutable_command(),
        header.mutable_timezone(), header.add_filters(), header.add_imported_from()}) {
    *text = bad;
  }
  header.mutable_start()->set_wall_ns(1'000'000'000);
  proto::Device* const device = header.add_devices();
  for (std::string* const text :
       {device->mutable_name(), device->mutable_path(), device->mutable_model(),
        device->mutable_firmware(), device->mutable_serial(), device->mutable_transport(),
        device->mutable_scheduler(), device->mutable_write_cache(), device->mutable_zoned()}) {
    *text = bad;
  }
  proto::ReplayPlan* const plan = header.mutable_replay();
  for (std::string* const text :
       {plan->mutable_trace_name(), plan->mutable_trace_sha256(), plan->mutable_rule(),
        plan->mutable_engine(), plan->mutable_engine_mode(), plan->mutable_state(),
        plan->add_filters(), plan->add_shared(), plan->add_settings_changed()}) {
    *text = bad;
  }
  *plan->add_targets() = *device;
  info.summary.emplace();
  proto::ReplayOutcome* const outcome = info.summary->mutable_replay();
  (*outcome->mutable_skipped())[bad] = 1;
  (*outcome->mutable_emulated())[bad] = 1;
  outcome->add_settings_not_restored(bad);
  outcome->set_stopped_early(true);
  outcome->set_stop_reason(bad);
  proto::Mark mark;
  mark.set_detail(bad);
  info.marks.push_back(mark);
  proto::Loss loss;
  loss.set_detail(bad);
  loss.set_from_bytes(1);
  info.losses.OnLoss(loss);
  const std::string text = InfoText(info, 80);
  EXPECT_THAT(text, HasSubstr("[31mred"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\x07")));
  EXPECT_THAT(text, Not(HasSubstr("\xc2\x9b")));
}

}  // namespace
}  // namespace blktape
