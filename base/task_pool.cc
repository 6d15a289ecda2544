#include "base/task_pool.h"

#include <sched.h>

#include <algorithm>
#include <utility>

namespace blktape {

namespace {

thread_local int number_of_thread = 0;

}  // namespace

TaskPool::TaskPool(int helpers) : queues_(static_cast<size_t>(helpers) + 2) {
  threads_.reserve(static_cast<size_t>(helpers));
  for (int i = 1; i <= helpers; ++i) threads_.emplace_back([this, i] { Work(i); });
}

TaskPool::~TaskPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    for (Queue& queue : queues_) queue = {};
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

int TaskPool::Here() { return number_of_thread; }

int TaskPool::HelpersOfMachine() {
  constexpr int kMost = 15;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 0;
  return std::clamp(CPU_COUNT(&allowed) - 1, 0, kMost);
}

void TaskPool::Run(std::function<void()> task, const How& how) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t last = queues_.size() - 1;
    const size_t home = how.home ? static_cast<size_t>(*how.home) : last;
    Queue& queue = queues_[std::min(home, last)];
    (how.urgent ? queue.urgent : queue.tasks).push_back(std::move(task));
  }
  changed_.notify_one();
}

TaskPool::Tasks* TaskPool::FirstFor(int number) {
  const size_t count = queues_.size();
  const size_t last = count - 1;
  const auto own = static_cast<size_t>(number);
  for (const size_t at : {own, last}) {
    if (!queues_[at].urgent.empty()) return &queues_[at].urgent;
  }
  for (const size_t at : {own, last}) {
    if (!queues_[at].tasks.empty()) return &queues_[at].tasks;
  }
  for (Tasks Queue::* of : {&Queue::urgent, &Queue::tasks}) {
    for (Queue& queue : queues_) {
      if (!(queue.*of).empty()) return &(queue.*of);
    }
  }
  return nullptr;
}

bool TaskPool::RunFirst(int number, std::unique_lock<std::mutex>* lock) {
  Tasks* const from = FirstFor(number);
  if (from == nullptr) return false;
  std::function<void()> task = std::move(from->front());
  from->pop_front();
  lock->unlock();
  task();
  task = nullptr;  // what it holds goes before others hear that it is done
  lock->lock();
  changed_.notify_all();
  return true;
}

void TaskPool::HelpUntil(const std::function<bool()>& done) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!done()) {
    if (!RunFirst(0, &lock)) changed_.wait(lock);
  }
}

void TaskPool::Work(int number) {
  number_of_thread = number;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    if (!RunFirst(number, &lock)) changed_.wait(lock);
  }
}

}  // namespace blktape
