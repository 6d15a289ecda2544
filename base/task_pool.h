#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace blktape {

// Threads that execute tasks; the thread that submits the tasks helps. A task may have a home: the
// thread that has the task's data in its cache. A thread takes urgent tasks first, then its own
// tasks, then those of other threads, otherwise in the order submitted. A task may submit other
// tasks, but must never wait for one. Thread-safe, except for construction and destruction.
class TaskPool {
 public:
  // `helpers` threads in addition to the caller's; 0: everything runs within HelpUntil.
  explicit TaskPool(int helpers);
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;
  // Drops tasks that have not begun, and waits for those that have.
  ~TaskPool();

  // The useful number of threads on this machine: one per CPU that the caller may use, including
  // the caller's.
  static int HelpersOfMachine();
  // The number of this thread in its pool; 0 for a thread of no pool.
  static int Here();

  struct How {
    bool urgent = false;
    std::optional<int> home = {};  // Here() of the thread
  };
  void Run(std::function<void()> task, const How& how);
  void Run(std::function<void()> task) { Run(std::move(task), How()); }

  // Executes tasks until `done()` is true. `done()` is called after each task of any thread; a
  // running or submitted task must make it true. It is called with the pool's lock held: it must be
  // short, and must neither call the pool nor wait for a lock.
  void HelpUntil(const std::function<bool()>& done);

  int helpers() const { return static_cast<int>(threads_.size()); }

 private:
  using Tasks = std::deque<std::function<void()>>;
  // Of a thread, or of all: urgent ones, others.
  struct Queue {
    Tasks urgent, tasks;
  };

  void Work(int number);
  // Takes the first task for thread `number` and runs it, with the lock released meanwhile. False
  // if there is none.
  bool RunFirst(int number, std::unique_lock<std::mutex>* lock);
  Tasks* FirstFor(int number);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Queue> queues_;  // by thread; the last one has the tasks without a home
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace blktape
