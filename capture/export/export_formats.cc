#include <vector>

#include "capture/export/exporter.h"

namespace blktape {

const std::vector<ExportFormat>& ExportFormats() {
  static const std::vector<ExportFormat>* const formats = new std::vector<ExportFormat>{
      FioIologExport(), BlktraceExport(), CsvExport(), JsonLinesExport(), PerfettoExport(),
  };
  return *formats;
}

}  // namespace blktape
