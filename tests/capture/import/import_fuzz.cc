// Any bytes as the file of every format that they look like, of one more that their length chooses,
// and, where the first line describes columns, as a table of those.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_stream.h"
#include "capture/assemble/capture_pipeline.h"
#include "capture/files/import_report.h"
#include "capture/files/row_file_source.h"
#include "capture/import/columns.h"
#include "capture/import/import_format.h"
#include "format/trace.pb.h"
#include "format/trace_writer.h"

namespace blktape {
namespace {

// As `blktape import` does it. A small window, so that rows leave it.
void Import(const ImportFormat& format, std::string_view bytes) {
  std::vector<std::unique_ptr<ByteSource>> inputs;
  inputs.push_back(std::make_unique<MemorySource>(bytes));
  RowFileSource source(format, std::move(inputs), /*window=*/16);
  if (!source.Start().ok()) return;
  proto::Header header;
  for (const Disk& device : source.devices()) *header.add_devices() = device.description;
  if (header.devices_size() == 0) std::abort();
  MemorySink sink;
  auto writer = TraceWriter::ToSink(&sink, header);
  if (!writer.ok()) std::abort();
  CapturePipeline pipeline(writer->get(), source.devices(), {});
  while (true) {
    const Result<bool> more = source.Poll(0, &pipeline);
    // What passed the first time passes the second.
    if (!more.ok() || !pipeline.status().ok()) std::abort();
    if (!*more) break;
  }
  if (!pipeline.Finish().ok() || !(*writer)->Finish({}).ok()) std::abort();
  if (source.report()->rows == 0) std::abort();  // Start() would have failed
}

}  // namespace
}  // namespace blktape

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace blktape;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string head(bytes.substr(0, 65536));
  if (!head.empty() && head.back() != '\n') head.push_back('\n');
  const std::vector<ImportFormat>& formats = ImportFormats();
  for (size_t i = 0; i < formats.size(); ++i) {
    if (size % formats.size() == i || formats[i].looks_like(head)) Import(formats[i], bytes);
  }
  const size_t end = bytes.find('\n');
  if (end != std::string_view::npos) {
    const Result<ColumnLayout> layout = ParseColumns(bytes.substr(0, end));
    if (layout.ok()) {
      ImportFormat table;
      table.name = table.title = "table";
      table.make = [&layout] { return MakeColumnImporter(*layout); };
      Import(table, bytes.substr(end + 1));
    }
  }
  return 0;
}
