#include "analysis/trace_diff.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <utility>

#include "format/io_record.h"

namespace blktape {
namespace {

using Unit = TraceDiff::Unit;

constexpr uint32_t kQuantiles = 1000;

std::optional<double> Share(uint64_t part, uint64_t whole) {
  if (whole == 0) return std::nullopt;
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::optional<double> PerSecond(uint64_t count, int64_t ns) {
  if (ns <= 0) return std::nullopt;
  return static_cast<double>(count) * 1e9 / static_cast<double>(ns);
}

std::optional<double> Percentile(const LatencyHistogram& histogram, uint32_t ppm) {
  const std::optional<int64_t> ns = histogram.MeaningfulPercentileNs(ppm);
  if (!ns) return std::nullopt;
  return static_cast<double>(*ns);
}

uint64_t CountOf(const Profile& profile, uint64_t bytes) {
  return profile.read_sizes.CountOf(bytes) + profile.write_sizes.CountOf(bytes);
}

std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), share < 10 ? "%.1f %%" : "%.0f %%", share);
  return text;
}

// What of an operation's times two traces are compared by: from issue, or, where one of them tells
// no issues, from the queue on.
struct Times {
  const char* name;
  LatencyHistogram Profile::Latencies::* of;
};
Times ComparedBy(const Profile::Latencies& a, const Profile::Latencies& b) {
  const auto lacks_issues = [](const Profile::Latencies& latencies) {
    return latencies.d2c.count() == 0 && latencies.q2c.count() > 0;
  };
  if (lacks_issues(a) || lacks_issues(b)) return {"response of ", &Profile::Latencies::q2c};
  return {"service of ", &Profile::Latencies::d2c};
}

}  // namespace

std::optional<double> TraceDiff::Figure::ratio() const {
  if (!a || !b || *a == 0 || *b == 0) return std::nullopt;
  return *b / *a;
}

const char* TraceDiff::Effect::size() const {
  const double d = std::fabs(delta());
  return d < 0.147 ? "none" : d < 0.33 ? "small" : d < 0.474 ? "medium" : "large";
}

std::optional<double> ProbabilityOfLarger(const LatencyHistogram& a, const LatencyHistogram& b) {
  if (a.count() == 0 || b.count() == 0) return std::nullopt;
  // Middles of equal shares: (i + 1/2) / kQuantiles.
  const auto quantiles = [](const LatencyHistogram& histogram) {
    std::vector<int64_t> values;
    for (uint32_t i = 0; i < kQuantiles; ++i) {
      values.push_back(*histogram.PercentileNs((2 * i + 1) * (1'000'000 / (2 * kQuantiles))));
    }
    return values;
  };
  const std::vector<int64_t> of_a = quantiles(a);
  const std::vector<int64_t> of_b = quantiles(b);
  double larger = 0;
  for (const int64_t value : of_b) {
    const auto [low, high] = std::equal_range(of_a.begin(), of_a.end(), value);
    larger += static_cast<double>(low - of_a.begin()) + static_cast<double>(high - low) / 2;
  }
  return larger / kQuantiles / kQuantiles;
}

std::optional<double> SizesApart(const SizeHistogram& a, const SizeHistogram& b) {
  if (a.count() == 0 || b.count() == 0) return std::nullopt;
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> sizes;
  for (const SizeHistogram::Row& row : a.Exact()) sizes[row.bytes].first = row.count;
  for (const SizeHistogram::Row& row : b.Exact()) sizes[row.bytes].second = row.count;
  const auto all_a = static_cast<double>(a.count());
  const auto all_b = static_cast<double>(b.count());
  double apart =
      std::fabs(static_cast<double>(a.other()) / all_a - static_cast<double>(b.other()) / all_b);
  for (const auto& [bytes, counts] : sizes) {
    apart += std::fabs(static_cast<double>(counts.first) / all_a -
                       static_cast<double>(counts.second) / all_b);
  }
  return apart / 2;
}

TraceDiff CompareTraces(const Profile& a, const Profile& b) {
  TraceDiff diff;
  const auto add = [&diff](std::string name, Unit unit, std::optional<double> of_a,
                           std::optional<double> of_b) {
    diff.figures.push_back({std::move(name), unit, of_a, of_b});
  };
  const auto both = [&](std::string name, Unit unit, auto figure) {
    add(std::move(name), unit, figure(a), figure(b));
  };
  using Value = std::optional<double>;
  const auto number = [](auto value) { return Value(static_cast<double>(value)); };

  both("I/Os", Unit::kCount, [&](const Profile& p) { return number(p.ios); });
  both("length", Unit::kNanos, [&](const Profile& p) { return number(p.duration_ns); });
  both("I/Os a second", Unit::kRate,
       [](const Profile& p) { return PerSecond(p.ios, p.duration_ns); });
  both("read", Unit::kBytes, [&](const Profile& p) { return number(p.of(Op::kRead).bytes); });
  both("written", Unit::kBytes, [&](const Profile& p) { return number(p.of(Op::kWrite).bytes); });
  both("discarded", Unit::kBytes,
       [&](const Profile& p) { return number(p.of(Op::kDiscard).bytes); });
  both("flushes", Unit::kCount, [&](const Profile& p) { return number(p.of(Op::kFlush).ios); });
  both("reads of data requests", Unit::kPercent,
       [](const Profile& p) { return Share(p.read_sizes.count(), p.data_requests); });
  both("exactly 4 KiB", Unit::kPercent,
       [](const Profile& p) { return Share(CountOf(p, 4096), p.data_requests); });
  both("sequential", Unit::kPercent,
       [](const Profile& p) { return Share(p.sequential_device, p.data_requests); });
  both("foreground", Unit::kPercent,
       [](const Profile& p) { return Share(p.foreground.ios, p.ios); });
  both("busy", Unit::kPercent, [](const Profile& p) -> Value {
    if (p.observed_ns <= 0 || p.without_issue == p.ios) return std::nullopt;
    return 100.0 * static_cast<double>(p.busy_ns) / static_cast<double>(p.observed_ns);
  });
  both("depth while busy", Unit::kNumber, [](const Profile& p) -> Value {
    if (p.busy_ns == 0) return std::nullopt;
    return p.depth.mean_busy;
  });
  for (const auto& [op, name] : {std::pair(Op::kRead, "reads"), std::pair(Op::kWrite, "writes"),
                                 std::pair(Op::kFlush, "flushes")}) {
    const Times times = ComparedBy(a.latency_of(op), b.latency_of(op));
    const std::string what = std::string(times.name) + name;
    for (const auto& [ppm, rank] : {std::pair(kP50, ", p50"), std::pair(kP99, ", p99")}) {
      both(what + rank, Unit::kNanos, [op = op, ppm = ppm, &times](const Profile& p) {
        return Percentile(p.latency_of(op).*times.of, ppm);
      });
    }
    const auto larger = ProbabilityOfLarger(a.latency_of(op).*times.of, b.latency_of(op).*times.of);
    if (larger) diff.effects.push_back({what, *larger});
  }
  diff.read_sizes_apart = SizesApart(a.read_sizes, b.read_sizes);
  diff.write_sizes_apart = SizesApart(a.write_sizes, b.write_sizes);

  // Words, each with how much it weighs.
  std::vector<std::pair<double, std::string>> said;
  for (const TraceDiff::Figure& figure : diff.figures) {
    if (figure.unit == Unit::kPercent && figure.a && figure.b) {
      const double apart = std::fabs(*figure.b - *figure.a);
      // Below that two halves of one day differ too.
      if (apart < 5) continue;
      said.emplace_back(apart / 100, "B has " +
                                         std::string(*figure.b > *figure.a ? "more" : "less") +
                                         " that is " + figure.name + ": " + Percent(*figure.b) +
                                         " instead of " + Percent(*figure.a));
    } else if (figure.unit == Unit::kRate && figure.ratio()) {
      const double ratio = *figure.ratio();
      if (ratio > 0.8 && ratio < 1.25) continue;
      char text[96];
      std::snprintf(text, sizeof(text), "B does %.2f times as many I/Os a second", ratio);
      said.emplace_back(std::fabs(std::log2(ratio)) / 4, text);
    }
  }
  for (const TraceDiff::Effect& effect : diff.effects) {
    if (std::fabs(effect.delta()) < 0.147) continue;
    char text[128];
    std::snprintf(text, sizeof(text), "%s takes %s in B: with probability %.2f (%s effect)",
                  effect.name.c_str(), effect.delta() > 0 ? "longer" : "less long",
                  effect.delta() > 0 ? effect.b_larger : 1 - effect.b_larger, effect.size());
    said.emplace_back(std::fabs(effect.delta()), text);
  }
  for (const auto& [apart, name] :
       {std::pair(diff.read_sizes_apart, "reads"), std::pair(diff.write_sizes_apart, "writes")}) {
    if (!apart || *apart < 0.1) continue;
    said.emplace_back(*apart, "the sizes of " + std::string(name) + " are others: " +
                                  Percent(100 * *apart) + " would have to change");
  }
  std::stable_sort(said.begin(), said.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  for (auto& [weight, words] : said) diff.words.push_back(std::move(words));
  return diff;
}

}  // namespace blktape
