// A disk of known speed: a FUSE file system of one file, "disk", held in memory, whose requests
// take as long as the command line says. A loop device with direct I/O over it is a disk.
//
//   known_disk_program FOLDER SIZE_MIB READ_US WRITE_US FLUSH_US NS_PER_BYTE UNITS LINK_NS_PER_BYTE
//
// A request waits for a free unit, first come first served, and takes its base time plus the time
// of its bytes there. Unless LINK_NS_PER_BYTE is 0, all bytes cross one link, one request at a
// time, those of reads first: of a write before it asks for a unit, of a read once its unit is
// done. It serves until FOLDER is unmounted. One thread takes requests, one answers them.
#define FUSE_USE_VERSION 34

#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr fuse_ino_t kDisk = 2;
constexpr char kName[] = "disk";

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

struct Speed {
  int64_t read_ns = 0;
  int64_t write_ns = 0;
  int64_t flush_ns = 0;
  double ns_per_byte = 0;
  double link_ns_per_byte = 0;
};

int64_t NsOf(uint64_t bytes, double ns_per_byte) {
  return static_cast<int64_t>(static_cast<double>(bytes) * ns_per_byte);
}

// What happens next: told the time for which it was asked.
using Step = std::function<void(int64_t at_ns)>;

// Does things at their time, in a thread of its own. Any thread may add one.
class Clock {
 public:
  void Add(int64_t at_ns, Step step) {
    const std::lock_guard lock(mutex_);
    waiting_.push({at_ns, next_++, std::move(step)});
    changed_.notify_one();
  }

  void Serve() {
    // The default slack of a timer is 50 us.
    prctl(PR_SET_TIMERSLACK, 1);
    std::unique_lock lock(mutex_);
    while (!ended_) {
      if (waiting_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const int64_t left_ns = waiting_.top().at_ns - NowNs();
      if (left_ns > 0) {
        changed_.wait_for(lock, std::chrono::nanoseconds(left_ns));
        continue;
      }
      const Waiting next = waiting_.top();
      waiting_.pop();
      lock.unlock();
      next.step(next.at_ns);
      lock.lock();
    }
  }

  void End() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_one();
  }

 private:
  struct Waiting {
    int64_t at_ns;
    uint64_t number;
    Step step;
    bool operator<(const Waiting& other) const {
      return std::pair(at_ns, number) > std::pair(other.at_ns, other.number);
    }
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Waiting> waiting_;
  uint64_t next_ = 0;
  bool ended_ = false;
};

// Serves as many at a time as it is wide, the urgent ones first, else in order. Any thread may use
// it.
class Stage {
 public:
  Stage(Clock* clock, int width) : clock_(clock), free_(width) {}

  // Asks at `at_ns` to be served for `for_ns`; `then` follows.
  void Enter(int64_t at_ns, int64_t for_ns, bool urgent, Step then) {
    const std::lock_guard lock(mutex_);
    (urgent ? urgent_ : others_).push_back({at_ns, for_ns, std::move(then)});
    Start(at_ns);
  }

 private:
  struct Job {
    int64_t at_ns;
    int64_t for_ns;
    Step then;
  };

  void Start(int64_t at_ns) {
    std::deque<Job>& jobs = urgent_.empty() ? others_ : urgent_;
    if (free_ == 0 || jobs.empty()) return;
    --free_;
    const Job job = std::move(jobs.front());
    jobs.pop_front();
    clock_->Add(std::max(job.at_ns, at_ns) + job.for_ns, [this, then = job.then](int64_t end_ns) {
      {
        const std::lock_guard lock(mutex_);
        ++free_;
        Start(end_ns);
      }
      then(end_ns);
    });
  }

  Clock* const clock_;
  std::mutex mutex_;
  int free_;
  std::deque<Job> urgent_;
  std::deque<Job> others_;
};

struct Disk {
  int fd = -1;
  char* data = nullptr;
  uint64_t size_bytes = 0;
  Speed speed;
  Clock clock;
  std::optional<Stage> units;
  std::optional<Stage> link;

  void Unit(int64_t at_ns, int64_t base_ns, uint64_t bytes, Step then) {
    units->Enter(at_ns, base_ns + NsOf(bytes, speed.ns_per_byte), false, std::move(then));
  }
  void Cross(int64_t at_ns, uint64_t bytes, bool urgent, Step then) {
    if (speed.link_ns_per_byte == 0) return then(at_ns);
    link->Enter(at_ns, NsOf(bytes, speed.link_ns_per_byte), urgent, std::move(then));
  }
};

Disk disk;

struct stat Attributes(fuse_ino_t inode) {
  struct stat attributes = {};
  attributes.st_ino = inode;
  attributes.st_nlink = 1;
  attributes.st_mode = inode == FUSE_ROOT_ID ? S_IFDIR | 0700 : S_IFREG | 0600;
  attributes.st_blksize = 4096;
  if (inode == kDisk) attributes.st_size = static_cast<off_t>(disk.size_bytes);
  return attributes;
}

void Init(void*, fuse_conn_info* connection) {
  connection->max_background = 512;
  connection->congestion_threshold = 384;
  connection->max_write = 1 << 20;
}

void Lookup(fuse_req_t request, fuse_ino_t, const char* name) {
  if (strcmp(name, kName) != 0) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_entry_param entry = {};
  entry.ino = kDisk;
  entry.attr = Attributes(kDisk);
  entry.attr_timeout = entry.entry_timeout = 3600;
  fuse_reply_entry(request, &entry);
}

void GetAttributes(fuse_req_t request, fuse_ino_t inode, fuse_file_info*) {
  const struct stat attributes = Attributes(inode);
  fuse_reply_attr(request, &attributes, 3600);
}

void Open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) {
  if (inode != kDisk) {
    fuse_reply_err(request, EISDIR);
    return;
  }
  fuse_reply_open(request, file);
}

void Read(fuse_req_t request, fuse_ino_t, size_t size, off_t offset, fuse_file_info*) {
  const auto from = std::min<uint64_t>(offset, disk.size_bytes);
  const size_t bytes = std::min<uint64_t>(size, disk.size_bytes - from);
  disk.Unit(NowNs(), disk.speed.read_ns, bytes, [=](int64_t at_ns) {
    disk.Cross(at_ns, bytes, true,
               [=](int64_t) { fuse_reply_buf(request, disk.data + from, bytes); });
  });
}

void Write(fuse_req_t request, fuse_ino_t, const char* data, size_t size, off_t offset,
           fuse_file_info*) {
  if (static_cast<uint64_t>(offset) + size > disk.size_bytes) {
    fuse_reply_err(request, ENOSPC);
    return;
  }
  memcpy(disk.data + offset, data, size);
  disk.Cross(NowNs(), size, false, [=](int64_t at_ns) {
    disk.Unit(at_ns, disk.speed.write_ns, size, [=](int64_t) { fuse_reply_write(request, size); });
  });
}

void Sync(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) {
  disk.Unit(NowNs(), disk.speed.flush_ns, 0, [=](int64_t) { fuse_reply_err(request, 0); });
}

// Discards and write zeroes of the loop device.
void Allocate(fuse_req_t request, fuse_ino_t, int mode, off_t offset, off_t length,
              fuse_file_info*) {
  const int error = fallocate(disk.fd, mode, offset, length) == 0 ? 0 : errno;
  disk.Unit(NowNs(), disk.speed.write_ns, 0, [=](int64_t) { fuse_reply_err(request, error); });
}

[[noreturn]] void Fail(const char* what) {
  fprintf(stderr, "known_disk: %s: %s\n", what, strerror(errno));
  exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) {
    fprintf(stderr,
            "usage: known_disk_program FOLDER SIZE_MIB READ_US WRITE_US FLUSH_US NS_PER_BYTE UNITS "
            "LINK_NS_PER_BYTE\n");
    return 2;
  }
  disk.size_bytes = strtoull(argv[2], nullptr, 10) << 20;
  disk.speed = {.read_ns = atoll(argv[3]) * 1000,
                .write_ns = atoll(argv[4]) * 1000,
                .flush_ns = atoll(argv[5]) * 1000,
                .ns_per_byte = atof(argv[6]),
                .link_ns_per_byte = atof(argv[8])};
  disk.units.emplace(&disk.clock, std::max(1, atoi(argv[7])));
  disk.link.emplace(&disk.clock, 1);
  disk.fd = memfd_create("known_disk", MFD_CLOEXEC);
  if (disk.fd < 0 || ftruncate(disk.fd, static_cast<off_t>(disk.size_bytes)) != 0) {
    Fail("memory");
  }
  void* data = mmap(nullptr, disk.size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, disk.fd, 0);
  if (data == MAP_FAILED) Fail("memory");
  disk.data = static_cast<char*>(data);

  fuse_lowlevel_ops operations = {};
  operations.init = Init;
  operations.lookup = Lookup;
  operations.getattr = GetAttributes;
  operations.open = Open;
  operations.read = Read;
  operations.write = Write;
  operations.fsync = Sync;
  operations.fallocate = Allocate;
  char* words[] = {argv[0], nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(1, words);
  fuse_session* session = fuse_session_new(&arguments, &operations, sizeof operations, nullptr);
  if (session == nullptr || fuse_session_mount(session, argv[1]) != 0) return 1;
  std::thread answering([] { disk.clock.Serve(); });
  const int status = fuse_session_loop(session);
  disk.clock.End();
  answering.join();
  fuse_session_unmount(session);
  fuse_session_destroy(session);
  return status == 0 ? 0 : 1;
}
