#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/task_pool.h"
#include "format/record_columns.h"

namespace blktape {

// Columns whose memory is used again: pages that the kernel has to clear anew for each frame cost
// as much as decoding it, and what lies in the cache of another CPU nearly as much. Thread-safe;
// what was taken may be let go of by any thread, also when the shelf is gone.
class ColumnShelf {
 public:
  // Without records; what it has room for is left from before.
  std::shared_ptr<RecordColumns> Take() {
    std::unique_ptr<RecordColumns> columns;
    {
      const std::lock_guard<std::mutex> lock(kept_->mutex);
      for (size_t i = kept_->columns.size(); i-- > 0 && columns == nullptr;) {
        if (kept_->columns[i]->home != TaskPool::Here()) continue;
        columns = std::move(kept_->columns[i]);
        kept_->columns.erase(kept_->columns.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (columns == nullptr) columns = std::make_unique<RecordColumns>();
    columns->count = 0;
    columns->home = TaskPool::Here();
    return {columns.release(), [kept = kept_](RecordColumns* done) { kept->Put(done); }};
  }

 private:
  struct Kept {
    std::mutex mutex;
    std::vector<std::unique_ptr<RecordColumns>> columns;

    void Put(RecordColumns* done) {
      std::unique_ptr<RecordColumns> owned(done);
      const std::lock_guard<std::mutex> lock(mutex);
      columns.push_back(std::move(owned));
    }
  };
  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

}  // namespace blktape
