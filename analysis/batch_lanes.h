#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/task_pool.h"

namespace blktape {

// What BatchLanes keeps of a batch.
struct LaneBatch {
  size_t weight = 0;  // what it counts for the limit of what is under way; not 0 when it passes
  int home = 0;       // TaskPool::Here() of the thread that has its data in its cache
  int lanes_left = 0;
  bool ready = false;
};

// Passes batches through lanes. A lane takes one batch after the other, in the order in which they
// came, on any thread of a pool, so that what it computes does not depend on the number of threads.
// Before the lanes each batch is prepared, in any order. Without a pool all happens in Pass().
//
// Batch derives from LaneBatch. Pass(), Wait() and the setting up are for one thread. Batches that
// have passed are used again, with the memory they own.
template <typename Batch>
class BatchLanes {
 public:
  struct Lane {
    std::function<void(Batch*)> take;
    Lane* after = nullptr;         // a lane that must have finished a batch first
    std::optional<int> home = {};  // where its own data is; absent: where the batch is
    bool used = true;

   private:
    friend class BatchLanes;
    std::deque<std::shared_ptr<Batch>> waiting = {};
    uint64_t taken = 0;
    bool runs = false;
  };

  // `prepare` runs before the lanes, on several threads at a time. `recycle` gives back what a
  // batch that has passed should not keep. Weights of more than `most` are not under way at once,
  // but for one batch.
  BatchLanes(size_t most, std::function<void(Batch*)> prepare, std::function<void(Batch*)> recycle)
      : most_(most), prepare_(std::move(prepare)), recycle_(std::move(recycle)) {}

  // Before the first batch. The lane lives as long as this.
  Lane* Add(std::function<void(Batch*)> take) {
    lanes_.emplace_back().take = std::move(take);
    return &lanes_.back();
  }
  // Before the first batch. `pool` must outlive this.
  void WorkOn(TaskPool* pool) { pool_ = pool; }
  bool threaded() const { return pool_ != nullptr; }

  // A batch to fill, for data that lies in the cache of `home`.
  std::shared_ptr<Batch> NewBatch(int home) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (spare_.empty()) return std::make_shared<Batch>();
    // Rather another home's than a new one: else each home keeps as many as it ever had under way.
    auto found = std::find_if(spare_.rbegin(), spare_.rend(),
                              [home](const auto& batch) { return batch->home == home; });
    if (found == spare_.rend()) found = spare_.rbegin();
    std::shared_ptr<Batch> batch = std::move(*found);
    spare_.erase(std::next(found).base());
    return batch;
  }

  // Waits while too much is under way.
  void Pass(const std::shared_ptr<Batch>& batch) {
    if (pool_ == nullptr) {
      prepare_(batch.get());
      for (Lane& lane : lanes_) {
        if (lane.used) lane.take(batch.get());
      }
      Recycle(batch);
      return;
    }
    batch->lanes_left = 0;
    for (const Lane& lane : lanes_) batch->lanes_left += lane.used;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      under_way_ += batch->weight;
      for (Lane& lane : lanes_) {
        if (lane.used) lane.waiting.push_back(batch);
      }
    }
    pool_->Run(
        [this, batch] {
          prepare_(batch.get());
          const std::lock_guard<std::mutex> lock(mutex_);
          batch->ready = true;
          StartLanes();
        },
        {.home = batch->home});
    WaitUntil(most_);
  }

  // Until all batches have passed.
  void Wait() { WaitUntil(0); }

 private:
  void WaitUntil(size_t most) {
    if (pool_ != nullptr) pool_->HelpUntil([this, most] { return under_way_ <= most; });
  }

  void Recycle(const std::shared_ptr<Batch>& batch) {
    recycle_(batch.get());
    batch->ready = false;
    spare_.push_back(batch);
  }

  // mutex_ is held in these two.
  bool CanGoOn(const Lane& lane) const {
    return !lane.waiting.empty() && lane.waiting.front()->ready &&
           (lane.after == nullptr || lane.after->taken > lane.taken);
  }
  void StartLanes() {
    for (Lane& lane : lanes_) {
      if (lane.runs || !CanGoOn(lane)) continue;
      lane.runs = true;
      pool_->Run([this, &lane] { RunLane(&lane); },
                 {.urgent = true, .home = lane.home ? lane.home : lane.waiting.front()->home});
    }
  }

  void RunLane(Lane* lane) {
    std::unique_lock<std::mutex> lock(mutex_);
    std::shared_ptr<Batch> batch = std::move(lane->waiting.front());
    lane->waiting.pop_front();
    lock.unlock();
    lane->take(batch.get());
    lock.lock();
    ++lane->taken;
    lane->runs = false;
    size_t passed = 0;
    if (--batch->lanes_left == 0) {
      passed = batch->weight;
      Recycle(batch);
    }
    StartLanes();
    lock.unlock();
    // Nothing after this: with the last weight gone, whoever waits may destroy the lanes.
    if (passed > 0) under_way_ -= passed;
  }

  const size_t most_;
  const std::function<void(Batch*)> prepare_;
  const std::function<void(Batch*)> recycle_;
  TaskPool* pool_ = nullptr;
  std::atomic<size_t> under_way_ = 0;  // weights
  std::mutex mutex_;                   // of what follows; never taken while the pool's is held
  std::deque<Lane> lanes_;
  std::vector<std::shared_ptr<Batch>> spare_;
};

}  // namespace blktape
