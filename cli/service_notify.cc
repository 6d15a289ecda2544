#include "cli/service_notify.h"

#include <systemd/sd-daemon.h>

#include "base/units.h"

namespace blktape {

ServiceNotify::ServiceNotify() {
  uint64_t usec = 0;
  // Half the time that is allowed, as sd_watchdog_enabled(3) recommends.
  if (sd_watchdog_enabled(/*unset_environment=*/0, &usec) > 0) {
    watchdog_interval_ns_ = static_cast<int64_t>(usec) * kNanosPerMicro / 2;
  }
}

void ServiceNotify::Ready(const std::string& status) {
  sd_notify(0, ("READY=1\nSTATUS=" + status).c_str());
}

void ServiceNotify::Alive(int64_t now_ns) {
  if (watchdog_interval_ns_ == 0 || now_ns < next_watchdog_ns_) return;
  next_watchdog_ns_ = now_ns + watchdog_interval_ns_;
  sd_notify(0, "WATCHDOG=1");
}

int64_t ServiceNotify::longest_silence_ns() const {
  return watchdog_interval_ns_ == 0 ? INT64_MAX : watchdog_interval_ns_ / 2;
}

void ServiceNotify::Say(const std::string& status) { sd_notify(0, ("STATUS=" + status).c_str()); }

void ServiceNotify::Stopping() { sd_notify(0, "STOPPING=1"); }

}  // namespace blktape
