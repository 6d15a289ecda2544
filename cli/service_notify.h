#pragma once

#include <cstdint>
#include <string>

namespace blktape {

// Tells systemd how a service does (sd_notify(3)); where none listens, does nothing. One thread.
class ServiceNotify {
 public:
  ServiceNotify();
  // Begun; `status` is what `systemctl status` shows.
  void Ready(const std::string& status);
  // Still well: feeds the watchdog as often as it wants to be fed. Call often.
  void Alive(int64_t now_ns);
  // How long may pass between two calls of Alive() at most; INT64_MAX without a watchdog.
  int64_t longest_silence_ns() const;
  void Say(const std::string& status);
  void Stopping();

 private:
  int64_t watchdog_interval_ns_ = 0;  // 0: none
  int64_t next_watchdog_ns_ = 0;
};

}  // namespace blktape
