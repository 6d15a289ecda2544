#include "replay/plan/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/quantity.h"
#include "base/units.h"
#include "base/version.h"

namespace blktape {
namespace {

// splitmix64 (Vigna, public domain): one multiply-xor chain a number, equal on every machine, which
// <random>'s distributions are not.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Uniform below `bound` (Lemire's multiply; the bias is below bound / 2^64).
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }
  // In [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

class Generator : public RecordStream {
 public:
  explicit Generator(const WorkloadSpec& spec) : spec_(spec), random_(spec.seed) {
    header_.set_tool_version(kVersion);
    header_.set_source("generator");
    header_.set_generator(DescribeWorkload(spec));
    header_.add_devices()->set_name("generated");
    for (const WorkloadSpec::Size& size : spec.sizes) total_weight_ += size.weight;
  }

  const proto::Header& header() const override { return header_; }
  std::optional<uint64_t> records() const override { return spec_.count; }
  std::optional<int64_t> span_ns() const override {
    if (!spec_.count || !spec_.rate) return std::nullopt;
    return static_cast<int64_t>(static_cast<double>(*spec_.count) / *spec_.rate * 1e9);
  }

  std::optional<uint64_t> mean_data_bytes() const override {
    double bytes = 0;
    for (const WorkloadSpec::Size& size : spec_.sizes) {
      bytes += static_cast<double>(size.bytes) * size.weight / total_weight_;
    }
    return static_cast<uint64_t>(bytes);
  }

  Result<bool> Next(IoRecord* record, uint64_t* ordinal) override {
    if (spec_.count && made_ >= *spec_.count) return false;
    *ordinal = made_;
    const uint64_t bytes = PickSize();
    *record = IoRecord{};
    record->op = random_.Unit() < spec_.read_share ? Op::kRead : Op::kWrite;
    record->lba = Lba((spec_.begin_bytes + PickStart(bytes)) / kSectorBytes);
    record->bytes = bytes;
    record->queue_ns = PickArrivalNs();
    ++made_;
    return true;
  }

 private:
  uint64_t PickSize() {
    if (spec_.sizes.size() == 1) return spec_.sizes.front().bytes;
    double at = random_.Unit() * total_weight_;
    for (const WorkloadSpec::Size& size : spec_.sizes) {
      if (at < size.weight) return size.bytes;
      at -= size.weight;
    }
    return spec_.sizes.back().bytes;
  }

  uint64_t PickStart(uint64_t bytes) {
    const uint64_t places = (spec_.span_bytes - bytes) / spec_.align_bytes + 1;
    if (spec_.pattern == WorkloadSpec::Pattern::kRandom) {
      return random_.Below(places) * spec_.align_bytes;
    }
    if (next_start_ > spec_.span_bytes - bytes) next_start_ = 0;
    const uint64_t start = next_start_;
    next_start_ += (bytes + spec_.align_bytes - 1) / spec_.align_bytes * spec_.align_bytes;
    return start;
  }

  int64_t PickArrivalNs() {
    if (!spec_.rate) return 0;
    if (!spec_.exponential_gaps) {
      return std::llround(static_cast<double>(made_) / *spec_.rate * 1e9);
    }
    if (made_ > 0) arrival_s_ += -std::log1p(-random_.Unit()) / *spec_.rate;
    return std::llround(arrival_s_ * 1e9);
  }

  const WorkloadSpec spec_;
  proto::Header header_;
  Random random_;
  double total_weight_ = 0;
  uint64_t made_ = 0;
  uint64_t next_start_ = 0;
  double arrival_s_ = 0;
};

Status Check(const WorkloadSpec& spec) {
  const auto wrong = [](const std::string& what) {
    return Status(StatusCode::kInvalidArgument, "workload: " + what);
  };
  if (spec.sizes.empty()) return wrong("no block size");
  if (spec.align_bytes == 0 || spec.align_bytes % kSectorBytes != 0) {
    return wrong("the alignment is no multiple of 512 bytes");
  }
  if (spec.begin_bytes % kSectorBytes != 0) return wrong("the span begins inside a sector");
  for (const WorkloadSpec::Size& size : spec.sizes) {
    if (size.bytes == 0 || size.bytes % kSectorBytes != 0) {
      return wrong("a block of " + std::to_string(size.bytes) + " bytes is no whole sectors");
    }
    if (size.bytes > spec.span_bytes) {
      return wrong("a block of " + FormatBytes(size.bytes) + " does not fit the span of " +
                   FormatBytes(spec.span_bytes));
    }
    if (!(size.weight > 0)) return wrong("a block size has no weight");
  }
  if (!(spec.read_share >= 0 && spec.read_share <= 1)) return wrong("reads are not 0 to 100 %");
  if (spec.rate && !(*spec.rate > 0)) return wrong("the rate is not above zero");
  return OkStatus();
}

}  // namespace

std::string DescribeWorkload(const WorkloadSpec& spec) {
  std::string sizes;
  for (const WorkloadSpec::Size& size : spec.sizes) {
    sizes += (sizes.empty() ? "" : "+") + FormatBytes(size.bytes);
    if (spec.sizes.size() > 1) sizes += fmt::format(":{:g}", size.weight);
  }
  std::string text =
      fmt::format("{} {}, {:g} % read, span {} at {}, align {}", sizes,
                  spec.pattern == WorkloadSpec::Pattern::kRandom ? "random" : "sequential",
                  spec.read_share * 100, FormatBytes(spec.span_bytes),
                  FormatBytes(spec.begin_bytes), FormatBytes(spec.align_bytes));
  if (spec.count) text += fmt::format(", {} I/O{}", *spec.count, *spec.count == 1 ? "" : "s");
  if (spec.rate) {
    text += fmt::format(", {:g} a second{}", *spec.rate,
                        spec.exponential_gaps ? " with exponential gaps" : "");
  }
  return text + fmt::format(", seed {}", spec.seed);
}

Result<std::unique_ptr<RecordStream>> MakeGenerator(const WorkloadSpec& spec) {
  RETURN_IF_ERROR(Check(spec));
  return std::unique_ptr<RecordStream>(std::make_unique<Generator>(spec));
}

}  // namespace blktape
