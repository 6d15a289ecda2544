#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/spsc_ring.h"
#include "base/status.h"
#include "replay/issue/issued_io.h"

namespace blktape {

// Takes completions off the issuing threads.
class RecorderThread {
 public:
  // `done` is called on this object's thread for each completion, after which its buffer may be
  // reused; `halt` is set when it fails. `gives_way`: see GiveWay().
  RecorderThread(std::function<Status(uint32_t lane, const IssuedIo&)> done, uint32_t lanes,
                 std::atomic<bool>* halt, bool gives_way);
  ~RecorderThread();

  // For each lane one thread. Waits where the recorder is 16,384 completions behind.
  void Done(uint32_t lane, const IssuedIo& io);

  // Ends once everything was taken; the first failure.
  Status Join();

 private:
  void Work();
  size_t TakeAll(uint32_t lane);

  const std::function<Status(uint32_t lane, const IssuedIo&)> done_;
  std::atomic<bool>* const halt_;
  std::vector<std::unique_ptr<SpscRing<IssuedIo>>> rings_;
  std::atomic<bool> ending_ = false;
  Status status_;
  std::thread thread_;
};

}  // namespace blktape
