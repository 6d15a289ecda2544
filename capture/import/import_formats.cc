#include <vector>

#include "capture/import/import_format.h"

namespace blktape {

const std::vector<ImportFormat>& ImportFormats() {
  static const std::vector<ImportFormat>* const formats = new std::vector<ImportFormat>{
      FioIologFormat(),   BlkparseFormat(),  EventTextFormat(), BiosnoopFormat(), MsrFormat(),
      SpcFormat(),        XperfFormat(),     WpaFormat(),       OctfFormat(),     BlkreplayFormat(),
      VscsiFormat(),      FiuFormat(),       SystorFormat(),    AlibabaFormat(),  TencentFormat(),
      K5cloudFormat(),    MqsimFormat(),     DiskSimFormat(),   Nexus5Format(),   Pixel6aFormat(),
      BlktapeCsvFormat(), JsonLinesFormat(),
  };
  return *formats;
}

}  // namespace blktape
