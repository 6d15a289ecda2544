#include "analysis/corners_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/json.h"

namespace blktape {
namespace {

std::optional<double> NumberAt(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (value.is_null()) return std::nullopt;
  const auto number = value.get<double>();
  return std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

void ReadSeries(const Json& json, MeasuredCorners::Test* test) {
  test->series_step_ns = NumberAt(json, "step_ns").value_or(0);
  if (test->series_step_ns <= 0) return;
  for (const Json& bytes : json.at("bytes")) test->series_bytes.push_back(bytes.get<double>());
}

MeasuredCorners Read(const Json& json) {
  MeasuredCorners corners;
  corners.quick = json.at("quick").get<bool>();
  // Not there in reports of before.
  if (json.contains("repeated_over_random")) {
    corners.repeated_over_random = NumberAt(json, "repeated_over_random");
  }
  for (const Json& target : json.at("targets")) {
    corners.drive = target.at("model").get<std::string>();
    if (corners.drive.empty()) corners.drive = target.at("name").get<std::string>();
  }
  if (json.at("targets").empty()) corners.drive = "the reference drive";
  for (const Json& test : json.at("tests")) {
    corners.tests.push_back({.group = test.at("group").get<std::string>(),
                             .name = test.at("name").get<std::string>(),
                             .condition = test.at("condition").get<std::string>(),
                             .bytes_per_second = NumberAt(test, "bytes_per_second"),
                             .iops = NumberAt(test, "iops"),
                             .p99_ns = NumberAt(test.at("d2c_ns"), "p99")});
    MeasuredCorners::Test& one = corners.tests.back();
    if (test.contains("op")) one.read = test.at("op") == "read";
    if (test.contains("queue_depth")) one.queue_depth = test.at("queue_depth").get<uint64_t>();
    if (test.contains("series")) ReadSeries(test.at("series"), &one);
  }
  return corners;
}

void TellApart(std::vector<ComparedCorners>* drives) {
  std::vector<std::string> labels;
  for (const ComparedCorners& drive : *drives) labels.push_back(drive.label);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (std::count(labels.begin(), labels.end(), labels[i]) > 1) {
      (*drives)[i].label += " #" + std::to_string(i + 1);
    }
  }
}

}  // namespace

Result<MeasuredCorners> ParseMeasuredCorners(const std::string& text) {
  const Json json = ParseJson(text);
  try {
    if (const auto version = json.at("corners").get<int64_t>(); version != 1) {
      return Status(StatusCode::kUnimplemented, "corners of version " + std::to_string(version) +
                                                    "; this blktape knows version 1");
    }
    return Read(json);
  } catch (const Json::exception&) {
    return Status(StatusCode::kDataLoss, "no report of corners, or a damaged one");
  }
}

bool CornersComparison::mixed_lengths() const {
  return std::any_of(drives.begin(), drives.end(), [this](const ComparedCorners& drive) {
    return drive.corners.quick != drives.front().corners.quick;
  });
}

CornersComparison CompareCorners(std::vector<ComparedCorners> drives) {
  BLKTAPE_CHECK(!drives.empty());
  TellApart(&drives);
  CornersComparison all;
  for (size_t i = 0; i < drives.size(); ++i) {
    for (const MeasuredCorners::Test& test : drives[i].corners.tests) {
      auto row = std::find_if(all.rows.begin(), all.rows.end(), [&test, i](const auto& one) {
        // A test that was done twice takes two rows.
        return one.group == test.group && one.condition == test.condition &&
               one.name == test.name && !one.tests[i];
      });
      if (row == all.rows.end()) {
        all.rows.push_back(
            {.group = test.group,
             .condition = test.condition,
             .name = test.name,
             .tests = std::vector<std::optional<MeasuredCorners::Test>>(drives.size()),
             .ratios = std::vector<std::optional<double>>(drives.size())});
        row = all.rows.end() - 1;
      }
      row->tests[i] = test;
    }
  }
  for (CornersComparison::Row& row : all.rows) {
    const auto rate = [&row](size_t i) {
      return row.tests[i] ? row.tests[i]->bytes_per_second : std::nullopt;
    };
    for (size_t i = 0; i < drives.size(); ++i) {
      if (rate(0) && rate(i) && *rate(0) > 0) row.ratios[i] = *rate(i) / *rate(0);
    }
  }
  all.drives = std::move(drives);
  return all;
}

}  // namespace blktape
