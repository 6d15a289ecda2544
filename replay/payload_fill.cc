#include "replay/payload_fill.h"

#include <cstring>

namespace blktape {

// Incompressible and different in every write: splitmix64 (Vigna, public domain) over the place of
// the write in the plan.
PayloadFill MakePayloadFill(const ReplayOptions& /*options*/) {
  return [](const PlannedIo& io) {
    if (io.zero_payload) {
      std::memset(io.buffer, 0, io.bytes);
      return;
    }
    uint64_t state = io.sequence * 0xd1342543de82ef95u;
    for (uint64_t at = 0; at + sizeof(uint64_t) <= io.bytes; at += sizeof(uint64_t)) {
      uint64_t z = (state += 0x9e3779b97f4a7c15u);
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      z ^= z >> 31;
      std::memcpy(io.buffer + at, &z, sizeof(z));
    }
  };
}

}  // namespace blktape
