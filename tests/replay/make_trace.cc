// Writes a made-up recording for benchmarks: make_trace OUT.tape COUNT RATE [SPAN_MIB [KIND
// [BURST]]]. KIND mixed (the default): two thirds reads; 4 KiB to 128 KiB, mostly 4 KiB; a third of
// the I/Os continue where the one before ended. KIND random-read: reads of 4 KiB at random places.
// Arrivals with exponential gaps, RATE a second; BURST of them 5 us apart, as one thread submits
// them, then a gap for all of them. Completions 20 us to 400 us later. The same arguments give the
// same trace.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>

#include "format/io_record.h"
#include "format/trace_writer.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: make_trace OUT.tape COUNT RATE [SPAN_MIB [KIND [BURST]]]\n");
    return 2;
  }
  const uint64_t count = std::strtoull(argv[2], nullptr, 10);
  const double rate = std::strtod(argv[3], nullptr);
  const uint64_t span_sectors = (argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1024) * 2048;
  const std::string_view kind = argc > 5 ? argv[5] : "mixed";
  const uint64_t burst = argc > 6 ? std::strtoull(argv[6], nullptr, 10) : 1;
  const bool mixed = kind == "mixed";
  if ((!mixed && kind != "random-read") || burst == 0) {
    std::fprintf(stderr, "KIND is mixed or random-read, BURST at least 1\n");
    return 2;
  }
  blktape::proto::Header header;
  header.set_source("generator");
  header.set_generator("tests/replay/make_trace");
  blktape::proto::Device* device = header.add_devices();
  device->set_name("made0");
  device->set_size_bytes(span_sectors * 512);
  auto writer = blktape::TraceWriter::Create(argv[1], header);
  if (!writer.ok()) {
    std::fprintf(stderr, "%s\n", writer.status().message().c_str());
    return 1;
  }
  std::mt19937_64 random(1);
  const auto unit = [&random] { return static_cast<double>(random() >> 11) * 0x1.0p-53; };
  double at_ns = 1e9;
  uint64_t next_sector = 0;
  for (uint64_t i = 0; i < count; ++i) {
    at_ns += i % burst != 0 ? 5e3 : -std::log1p(-unit()) / rate * 1e9 * static_cast<double>(burst);
    const uint64_t blocks = !mixed || random() % 10 < 7 ? 1 : 1 + random() % 32;
    const uint64_t sectors = blocks * 8;
    const bool on = mixed && random() % 3 == 0 && next_sector + sectors <= span_sectors;
    const uint64_t sector = on ? next_sector : random() % ((span_sectors - sectors) / 8 + 1) * 8;
    next_sector = sector + sectors;
    blktape::IoRecord io;
    io.op = mixed && random() % 3 == 0 ? blktape::Op::kWrite : blktape::Op::kRead;
    io.lba = blktape::Lba(sector);
    io.bytes = sectors * 512;
    io.queue_ns = static_cast<int64_t>(at_ns);
    io.issue_ns = *io.queue_ns + 1'500;
    io.complete_ns = *io.issue_ns + 20'000 + static_cast<int64_t>(random() % 380'000);
    if (!(*writer)->Write(io).ok()) return 1;
  }
  return (*writer)->Finish({}).ok() ? 0 : 1;
}
