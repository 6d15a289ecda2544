#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace blktape {

// Whose turn it is, of two threads that share their work: the first, which has it whenever it wants
// it, and one in reserve, which has it when the first waits for something overdue. Whoever has the
// turn gives it back within one round of work.
class Turn {
 public:
  static constexpr int64_t kNothing = INT64_MAX;

  // First thread. Waits where the other has it: awake for as long as a round of work takes, then
  // sleeping, as a real-time thread that never sleeps would keep the other from its CPU for good.
  void Take() {
    awaited_ns_.store(kNothing, std::memory_order_relaxed);
    for (int tries = 0; taken_.exchange(true, std::memory_order_acquire); ++tries) {
      if (tries < kTriesAwake) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
    Beat();
  }
  // Either thread: the first one waits for something at that time, or for kNothing in particular.
  void GiveBack(int64_t awaited_ns) {
    awaited_ns_.store(awaited_ns, std::memory_order_relaxed);
    taken_.store(false, std::memory_order_release);
  }
  // Either thread: what the first one waits for is as it was.
  void GiveBack() { taken_.store(false, std::memory_order_release); }
  // First thread, now and then while it waits and is awake.
  void Beat() { beat_.store(beat_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  // Thread in reserve. What the first one waits for; kNothing also while it has the turn.
  int64_t awaited_ns() const { return awaited_ns_.load(std::memory_order_relaxed); }
  // Changes whenever the first thread is seen to be awake.
  uint64_t beat() const { return beat_.load(std::memory_order_relaxed); }
  bool TryTake() { return !taken_.exchange(true, std::memory_order_acquire); }

 private:
  static constexpr int kTriesAwake = 500;

  alignas(64) std::atomic<bool> taken_ = false;
  std::atomic<int64_t> awaited_ns_ = kNothing;
  std::atomic<uint64_t> beat_ = 0;
};

}  // namespace blktape
