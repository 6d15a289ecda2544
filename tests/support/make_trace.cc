// Makes the trace of a load that never was, for tests and benchmarks that need a file:
//   make_trace PATH COUNT RATE [NAME=VALUE ...]   COUNT I/Os, RATE a second on average
// The same words give the same I/Os. What NAME may be, and what it is if it is not given:
//   kind=mixed        two thirds reads; 4 KiB to 128 KiB, mostly 4 KiB; a third of the I/Os go on
//                     where the one before ended; exponential gaps
//   kind=random-read  reads of 4 KiB at random places; exponential gaps
//   kind=desktop      what DesktopLoad is
//   span_mib=1024     all is within so much of the device, which is as large; a desktop's: 1048576
//   burst=1           so many 5 us apart, as one thread submits them, then a gap for all of them;
//                     a desktop has bursts of its own
//   frame=0           a frame is ended every so many I/Os, as in a recording; 0: once it is full

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "format/trace_writer.h"
#include "tests/support/desktop_load.h"

namespace blktape {
namespace {

struct Wish {
  std::string path;
  uint64_t count = 0;
  double rate = 0;
  std::string kind = "mixed";
  uint64_t span_mib = 0;
  uint64_t burst = 1;
  uint64_t frame = 0;

  uint64_t span_sectors() const { return span_mib << 11; }
};

template <typename Number>
bool Parse(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseWish(const std::vector<std::string>& words, Wish* wish) {
  if (words.size() < 3 || !Parse(words[1], &wish->count) || !Parse(words[2], &wish->rate) ||
      wish->rate <= 0) {
    return false;
  }
  wish->path = words[0];
  for (size_t i = 3; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos) return false;
    const std::string name = words[i].substr(0, equals), value = words[i].substr(equals + 1);
    if (name == "kind") {
      wish->kind = value;
    } else if (name == "span_mib") {
      if (!Parse(value, &wish->span_mib) || wish->span_mib == 0) return false;
    } else if (name == "burst") {
      if (!Parse(value, &wish->burst) || wish->burst == 0) return false;
    } else if (name == "frame") {
      if (!Parse(value, &wish->frame)) return false;
    } else {
      return false;
    }
  }
  const bool desktop = wish->kind == "desktop";
  if (wish->span_mib == 0) wish->span_mib = desktop ? DesktopLoad::kSpanSectors >> 11 : 1024;
  if (desktop) return wish->burst == 1;
  return wish->kind == "mixed" || wish->kind == "random-read";
}

// The kinds mixed and random-read. Endless. Completions 20 us to 400 us after the issue.
class SteadyLoad {
 public:
  explicit SteadyLoad(const Wish& wish) : wish_(wish), mixed_(wish.kind == "mixed"), random_(1) {}

  IoRecord Next() {
    at_ns_ += made_++ % wish_.burst != 0
                  ? 5e3
                  : -std::log1p(-Unit()) / wish_.rate * 1e9 * static_cast<double>(wish_.burst);
    const uint64_t blocks = !mixed_ || random_() % 10 < 7 ? 1 : 1 + random_() % 32;
    const uint64_t sectors = blocks * 8;
    const uint64_t span_sectors = wish_.span_sectors();
    const bool on = mixed_ && random_() % 3 == 0 && next_sector_ + sectors <= span_sectors;
    const uint64_t sector = on ? next_sector_ : random_() % ((span_sectors - sectors) / 8 + 1) * 8;
    next_sector_ = sector + sectors;
    IoRecord io;
    io.op = mixed_ && random_() % 3 == 0 ? Op::kWrite : Op::kRead;
    io.lba = Lba(sector);
    io.bytes = sectors * kSectorBytes;
    io.queue_ns = static_cast<int64_t>(at_ns_);
    io.issue_ns = *io.queue_ns + 1'500;
    io.complete_ns = *io.issue_ns + 20'000 + static_cast<int64_t>(random_() % 380'000);
    return io;
  }

 private:
  double Unit() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }

  const Wish wish_;
  const bool mixed_;
  std::mt19937_64 random_;
  uint64_t made_ = 0;
  double at_ns_ = 1e9;
  uint64_t next_sector_ = 0;
};

template <typename Load>
Status Write(Load load, const Wish& wish, TraceWriter* writer) {
  for (uint64_t i = 1; i <= wish.count; ++i) {
    RETURN_IF_ERROR(writer->Write(load.Next()));
    if (wish.frame != 0 && i % wish.frame == 0) RETURN_IF_ERROR(writer->FlushFrame(false));
  }
  return writer->Finish({});
}

Status Make(const Wish& wish) {
  proto::Header header;
  header.set_source("generator");
  header.set_generator("make_trace kind=" + wish.kind);
  proto::Device* device = header.add_devices();
  device->set_name("disk0");
  device->set_size_bytes(wish.span_sectors() * kSectorBytes);
  ASSIGN_OR_RETURN(const auto writer, TraceWriter::Create(wish.path, header));
  if (wish.kind != "desktop") return Write(SteadyLoad(wish), wish, writer.get());
  for (uint32_t i = 0; i < DesktopLoad::kProcesses; ++i) {
    writer->ProcessId("program" + std::to_string(i));
  }
  return Write(DesktopLoad(/*seed=*/1, wish.rate, wish.span_sectors()), wish, writer.get());
}

int Run(const std::vector<std::string>& words) {
  Wish wish;
  if (!ParseWish(words, &wish)) {
    std::fprintf(stderr, "make_trace: see the top of make_trace.cc\n");
    return 2;
  }
  const Status status = Make(wish);
  if (status.ok()) return 0;
  std::fprintf(stderr, "make_trace: %s\n", status.message().c_str());
  return 1;
}

}  // namespace
}  // namespace blktape

int main(int argc, char** argv) { return blktape::Run({argv + 1, argv + argc}); }
