#include "capture/tracefs/ftrace_page_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/decompress.h"
#include "base/file.h"
#include "capture/source/rwbs.h"
#include "tests/capture/source/recording_sink.h"

namespace blktape {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Unpack(const std::string& path) {
  auto file = OpenForReading("tests/capture/tracefs/data/" + path + ".zst");
  if (!file.ok()) {
    ADD_FAILURE() << file.status().message();
    return "";
  }
  auto source = Decompressed(std::move(file).value());
  EXPECT_TRUE(source.ok());
  std::string text;
  std::byte buffer[4096];
  while (true) {
    const auto got = (*source)->Read(buffer);
    EXPECT_TRUE(got.ok());
    if (!got.ok() || *got == 0) return text;
    text.append(reinterpret_cast<const char*>(buffer), *got);
  }
}

FtraceFormats Formats(const std::string& header_page, const std::string& formats) {
  auto result = FtraceFormats::Create(header_page);
  EXPECT_TRUE(result.ok()) << result.status().message();
  // The texts stand one after the other, each beginning with its name.
  for (size_t at = formats.find("name: "); at != std::string::npos;) {
    const size_t next = formats.find("\nname: ", at);
    const Status added = result->AddEvent(std::string_view(formats).substr(at, next - at));
    EXPECT_TRUE(added.ok()) << added.message();
    at = next == std::string::npos ? next : next + 1;
  }
  return std::move(result).value();
}

// The kernel's own text of the same events, line by line in the form
//   "CPU TIME ACTION MAJOR,MINOR RWBS SECTOR SECTORS PID"; time in microseconds,
// rounded.
std::string Line(const BlockEvent& event, const char* rwbs) {
  static const std::map<BlockAction, std::string> kNames = {
      {BlockAction::kQueue, "queue"},       {BlockAction::kIssue, "issue"},
      {BlockAction::kComplete, "complete"}, {BlockAction::kRequeue, "requeue"},
      {BlockAction::kBackMerge, "merge"},   {BlockAction::kFrontMerge, "merge"},
      {BlockAction::kSplit, "split"},
  };
  std::ostringstream line;
  line << event.cpu << " " << (event.time_ns + 500) / 1000 << " " << kNames.at(event.action) << " "
       << (event.device >> 20) << "," << (event.device & 0xfffff) << " " << rwbs << " "
       << event.lba.sectors << " " << event.bytes / 512 << " " << event.pid;
  return line.str();
}

// A fixture: pages of every CPU, the format texts, and the kernel's text of the same events.
class FtraceFixtureTest : public ::testing::TestWithParam<std::string> {};

TEST_P(FtraceFixtureTest, PagesDecodeToWhatTheKernelPrints) {
  const std::string folder = GetParam() + "/";
  const FtraceFormats formats = Formats(Unpack(folder + "header_page"), Unpack(folder + "formats"));
  const size_t page_bytes = formats.page().page_bytes();
  ASSERT_EQ(page_bytes, 4096u);
  RecordingSink sink;
  for (const uint32_t cpu : {0u, 1u}) {
    const std::string pages = Unpack(folder + "cpu" + std::to_string(cpu) + ".pages");
    FtracePageDecoder decoder(&formats, cpu);
    for (size_t at = 0; at < pages.size(); at += page_bytes) {
      decoder.DecodePage(std::as_bytes(std::span(pages)).subspan(at, page_bytes), &sink);
    }
    EXPECT_EQ(decoder.lost(), 0u);
  }
  EXPECT_THAT(sink.losses, IsEmpty());

  std::vector<std::string> expected;
  std::vector<std::string> decoded;
  std::istringstream text(Unpack(folder + "expected.txt"));
  for (std::string line; std::getline(text, line);) expected.push_back(line);
  for (const RecordingSink::Delivered& delivered : sink.events) {
    const BlockEvent& event = delivered.event;
    EXPECT_EQ(delivered.stream, event.cpu);
    // Op and flags as rwbs again; a flush has one form here whatever the kernel prints.
    static const std::map<Op, std::string> kOps = {
        {Op::kRead, "R"},
        {Op::kWrite, "W"},
        {Op::kDiscard, "D"},
        {Op::kFlush, "flush"},
        {Op::kWriteZeroes, "N"}};  // as kernels before 6.19 print it
    std::string rwbs = (event.flags & kFlagPreflush) != 0 ? "F" : "";
    rwbs += kOps.at(event.op);
    if ((event.flags & kFlagFua) != 0) rwbs += "F";
    if ((event.flags & kFlagReadahead) != 0) rwbs += "A";
    if ((event.flags & kFlagSync) != 0) rwbs += "S";
    if ((event.flags & kFlagMeta) != 0) rwbs += "M";
    decoded.push_back(Line(event, rwbs.c_str()));
  }
  std::sort(expected.begin(), expected.end());
  std::sort(decoded.begin(), decoded.end());
  EXPECT_EQ(decoded, expected);
  EXPECT_GT(expected.size(), 500u);
}

INSTANTIATE_TEST_SUITE_P(Kernels, FtraceFixtureTest, ::testing::Values("ftrace-6.1", "ftrace-6.18"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

constexpr char kHeaderPage[] =
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
// Offsets unlike any kernel's: nothing may be assumed.
constexpr char kIssueFormat[] =
    "name: block_rq_issue\nID: 77\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:sector_t sector;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:dev_t dev;\toffset:16;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned int nr_sector;\toffset:20;\tsize:4;\tsigned:0;\n"
    "\tfield:char rwbs[8];\toffset:24;\tsize:8;\tsigned:0;\n\n"
    "print fmt: \"%d\", REC->dev\n";

// Builds one page by hand, of this machine's byte order.
class Page {
 public:
  explicit Page(uint64_t time_ns) {
    Put(time_ns);
    Put(uint64_t{0});
  }
  void Issue(uint32_t delta_ns, uint64_t sector, const char* rwbs = "W", uint16_t id = 77) {
    Put(uint32_t{8} | (delta_ns << 5));  // 8 words of payload
    Payload(sector, rwbs, id);
  }
  void IssueOfExplicitLength(uint32_t delta_ns, uint64_t sector) {
    Put(delta_ns << 5);
    Put(uint32_t{36});
    Payload(sector, "W", 77);
  }
  void TimeExtend(uint64_t ns) {
    Put(static_cast<uint32_t>(30 | ((ns & 0x7ffffff) << 5)));
    Put(static_cast<uint32_t>(ns >> 27));
  }
  void TimeStamp(uint64_t ns) {
    Put(static_cast<uint32_t>(31 | ((ns & 0x7ffffff) << 5)));
    Put(static_cast<uint32_t>(ns >> 27));
  }
  void Discarded(uint32_t delta_ns, uint32_t words) {
    Put(uint32_t{29} | (delta_ns << 5));
    Put(words * 4);
    for (uint32_t i = 1; i < words; ++i) Put(uint32_t{0xdeadbeef});
  }
  void Null() { Put(uint32_t{29}); }
  void Put(auto value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  // `flags` go into the commit field beside the length.
  std::string Finish(uint64_t flags = 0) const {
    std::string page = bytes_;
    const uint64_t commit = (bytes_.size() - 16) | flags;
    std::memcpy(page.data() + 8, &commit, 8);
    return page;
  }

 private:
  void Payload(uint64_t sector, const char* rwbs, uint16_t id) {
    Put(id);
    Put(uint16_t{0});
    Put(int32_t{1234});
    Put(sector);
    Put((uint32_t{7} << 20) | 3);
    Put(uint32_t{8});
    char text[8] = {};
    std::strncpy(text, rwbs, sizeof text - 1);
    bytes_.append(text, sizeof text);
  }
  std::string bytes_;
};

class FtracePageDecoderTest : public ::testing::Test {
 protected:
  FtracePageDecoderTest() : formats_(Formats(kHeaderPage, kIssueFormat)), decoder_(&formats_, 4) {}
  void Decode(const std::string& page) {
    decoder_.DecodePage(std::as_bytes(std::span(page)), &sink_);
  }
  int64_t TimeOf(size_t i) const { return sink_.events.at(i).event.time_ns; }

  FtraceFormats formats_;
  FtracePageDecoder decoder_;
  RecordingSink sink_;
};

TEST_F(FtracePageDecoderTest, FieldsAreReadWhereTheFormatSays) {
  Page page(1000);
  page.Issue(5, 4096, "WSM");
  Decode(page.Finish());
  ASSERT_THAT(sink_.events, SizeIs(1));
  const BlockEvent& event = sink_.events[0].event;
  EXPECT_EQ(event.action, BlockAction::kIssue);
  EXPECT_EQ(event.time_ns, 1005);
  EXPECT_EQ(event.cpu, 4u);
  EXPECT_EQ(event.pid, 1234u);
  EXPECT_EQ(event.lba, Lba(4096));
  EXPECT_EQ(event.bytes, 4096u);
  EXPECT_EQ(event.device, (7u << 20) | 3);
  EXPECT_EQ(event.op, Op::kWrite);
  EXPECT_EQ(event.flags, kFlagSync | kFlagMeta);
}

TEST_F(FtracePageDecoderTest, DeltasExtendsAndStampsAddUp) {
  Page page(1000);
  page.Issue(5, 0);
  page.TimeExtend(1ull << 30);
  page.Issue(0, 8);
  page.IssueOfExplicitLength(7, 16);
  page.Discarded(100, 3);
  page.Issue(1, 24);
  page.TimeStamp(5'000'000'000);
  page.Issue(0, 32);
  page.Null();
  Decode(page.Finish());
  ASSERT_THAT(sink_.events, SizeIs(5));
  EXPECT_EQ(TimeOf(0), 1005);
  EXPECT_EQ(TimeOf(1), 1005 + (1ll << 30));
  EXPECT_EQ(TimeOf(2), 1012 + (1ll << 30));
  EXPECT_EQ(TimeOf(3), 1113 + (1ll << 30));
  EXPECT_EQ(TimeOf(4), 5'000'000'000);
  EXPECT_EQ(sink_.events[2].event.lba, Lba(16));
  EXPECT_THAT(sink_.losses, IsEmpty());
  EXPECT_EQ(decoder_.last_ns(), 5'000'000'000);
}

TEST_F(FtracePageDecoderTest, EventsLostBeforeThePageAreAnOverrunWithTheirCount) {
  Page first(1000);
  first.Issue(5, 0);
  Decode(first.Finish());
  Page page(9000);
  page.Issue(5, 0);
  std::string bytes = page.Finish((1u << 31) | (1u << 30));
  const uint64_t missed = 321;
  bytes.append(reinterpret_cast<const char*>(&missed), 8);
  Decode(bytes);
  EXPECT_THAT(sink_.events, SizeIs(2));
  ASSERT_THAT(sink_.losses, SizeIs(1));
  EXPECT_EQ(sink_.losses[0].reason(), proto::RING_OVERRUN);
  EXPECT_EQ(sink_.losses[0].count(), 321u);
  EXPECT_EQ(sink_.losses[0].cpu(), 4u);
  EXPECT_EQ(sink_.losses[0].from_ns(), 1005);
  EXPECT_EQ(sink_.losses[0].to_ns(), 9000);
  EXPECT_EQ(decoder_.lost(), 321u);
}

TEST_F(FtracePageDecoderTest, OverrunWithoutStoredCountIsOfUnknownSize) {
  Page page(9000);
  page.Issue(5, 0);
  Decode(page.Finish(1u << 31));
  ASSERT_THAT(sink_.losses, SizeIs(1));
  EXPECT_FALSE(sink_.losses[0].has_count());
}

TEST_F(FtracePageDecoderTest, UnknownEventIsCountedAndTheNextOneDecoded) {
  Page page(1000);
  page.Issue(1, 0, "W", 99);
  page.Issue(1, 8);
  Decode(page.Finish());
  EXPECT_THAT(sink_.events, SizeIs(1));
  ASSERT_THAT(sink_.losses, SizeIs(1));
  EXPECT_EQ(sink_.losses[0].reason(), proto::UNDECODABLE_EVENT);
}

TEST_F(FtracePageDecoderTest, CutPageIsDamageAndNeverACrash) {
  Page page(1000);
  page.Issue(5, 0);
  page.IssueOfExplicitLength(7, 16);
  const std::string whole = page.Finish();
  for (size_t length = 0; length < whole.size(); ++length) Decode(whole.substr(0, length));
  EXPECT_FALSE(sink_.losses.empty());
}

TEST(FtraceFormats, EventWithoutTheFieldsNeededIsRefusedByName) {
  auto formats = FtraceFormats::Create(kHeaderPage);
  ASSERT_TRUE(formats.ok());
  const Status status = formats->AddEvent(
      "name: block_rq_issue\nID: 3\nformat:\n"
      "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n");
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), ::testing::HasSubstr("sector"));
  EXPECT_EQ(formats->AddEvent("name: sched_switch\nID: 4\nformat:\n").code(),
            StatusCode::kUnimplemented);
  EXPECT_FALSE(formats->AddEvent("garbage").ok());
  EXPECT_FALSE(FtraceFormats::Create("garbage").ok());
}

TEST(ParseRwbs, ReadsWhatKernelsPrint) {
  const auto op = [](const char* text) { return ParseRwbs(text).op; };
  const auto flags = [](const char* text) { return ParseRwbs(text).flags; };
  EXPECT_EQ(op("R"), Op::kRead);
  EXPECT_EQ(flags("RAM"), kFlagReadahead | kFlagMeta);
  EXPECT_EQ(op("FWFSM"), Op::kWrite);
  EXPECT_EQ(flags("FWFSM"), kFlagPreflush | kFlagFua | kFlagSync | kFlagMeta);
  EXPECT_EQ(flags("WFS"), kFlagFua | kFlagSync);
  EXPECT_EQ(op("FF"), Op::kFlush);
  EXPECT_EQ(flags("FF"), kFlagPreflush);
  EXPECT_EQ(op("F"), Op::kFlush);
  EXPECT_EQ(op("FN"), ParseRwbs("N").op);
  EXPECT_EQ(op("DS"), Op::kDiscard);
  EXPECT_EQ(op("DES"), Op::kSecureErase);
  EXPECT_EQ(op("WZS"), Op::kWriteZeroes);
  EXPECT_EQ(op("ZRA"), Op::kZoneResetAll);
  EXPECT_EQ(op("ZR"), Op::kZoneReset);
  EXPECT_EQ(op("ZA"), Op::kZoneAppend);
  EXPECT_TRUE(ParseRwbs("N").none);
  EXPECT_TRUE(ParseRwbs("").none);
}

}  // namespace
}  // namespace blktape
