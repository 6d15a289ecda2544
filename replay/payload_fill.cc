#include "replay/payload_fill.h"

#include <cstring>
#include <memory>

#include "base/clock.h"
#include "replay/outcome/payload.h"
#include "replay/outcome/write_ledger.h"

namespace blktape {

PayloadFill MakePayloadFill(const ReplayOptions& options) {
  PayloadOptions payload_options;
  payload_options.compressible_percent = options.compressible_percent;
  payload_options.dedupe_percent = options.dedupe_percent;
  payload_options.repeat = options.repeat_payload;
  payload_options.stamp = options.verify;
  // A different seed in each run, so that the drive never already stores this data.
  payload_options.seed = static_cast<uint64_t>(WallNowNs());
  return [payload = std::make_shared<const Payload>(payload_options)](const PlannedIo& io) {
    if (io.zero_payload) {
      std::memset(io.buffer, 0, io.bytes);
    } else {
      payload->Fill({io.buffer, io.bytes}, io.offset_bytes, WriteLedger::NumberOf(io.sequence));
    }
  };
}

}  // namespace blktape
