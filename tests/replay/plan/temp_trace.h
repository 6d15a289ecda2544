#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "format/io_record.h"
#include "format/trace.pb.h"
#include "format/trace_reader.h"
#include "format/trace_writer.h"

namespace blktape {

// A path below the test's own folder at which nothing exists.
inline std::string FreshPath(const std::string& name) {
  const char* folder = std::getenv("TEST_TMPDIR");
  std::string path = std::string(folder == nullptr ? "/tmp" : folder) + "/" + name;
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".partial");
  return path;
}

// A finished trace of `records`, of devices called sda, sdb ...
inline std::string TempTrace(const std::string& name, const std::vector<IoRecord>& records,
                             int devices = 1, uint32_t records_per_frame = 100) {
  proto::Header header;
  header.set_source("test");
  for (int i = 0; i < devices; ++i) {
    header.add_devices()->set_name(std::string("sd") + static_cast<char>('a' + i));
  }
  const std::string path = FreshPath(name);
  auto writer = TraceWriter::Create(path, header, {.records_per_frame = records_per_frame});
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  for (const IoRecord& io : records) EXPECT_TRUE((*writer)->Write(io).ok());
  EXPECT_TRUE((*writer)->Finish({}).ok());
  return path;
}

struct TraceContent {
  proto::Header header;
  std::vector<IoRecord> records;
  std::optional<proto::Summary> summary;
};
inline TraceContent ReadTrace(const std::string& path) {
  TraceContent content;
  auto reader = TraceReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  if (!reader.ok()) return content;
  content.header = (*reader)->header();
  IoRecord io;
  while (true) {
    const Result<bool> more = (*reader)->Next(&io);
    EXPECT_TRUE(more.ok());
    if (!more.ok() || !*more) break;
    content.records.push_back(io);
  }
  content.summary = (*reader)->summary();
  return content;
}

}  // namespace blktape
