// The least that a program can do to keep a queue full by io_uring: the rate benchmark's measure.
//   uring_loop TARGET DEPTH SECONDS
// Reads of 4 KiB at random places, registered file and buffers, a single issuer; TARGET "nop" asks
// the kernel for nothing but the round trip. Prints I/Os, wall time and CPU time, in ns.

#include <fcntl.h>
#include <liburing.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

namespace {

constexpr unsigned kBytes = 4096;
constexpr int64_t kSecond = 1'000'000'000;

int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

int64_t CpuNs() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) { return time.tv_sec * kSecond + time.tv_usec * 1000; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

int Fail(const char* what, int error) {
  std::fprintf(stderr, "uring_loop: %s: %s\n", what, std::strerror(error));
  return 1;
}

class Loop {
 public:
  Loop(int fd, uint64_t blocks, unsigned depth) : fd_(fd), blocks_(blocks), depth_(depth) {}
  ~Loop() {
    if (open_) io_uring_queue_exit(&ring_);
    std::free(buffers_);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  int Open() {
    io_uring_params params{};
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    int outcome = io_uring_queue_init_params(depth_, &ring_, &params);
    if (outcome == -EINVAL) {
      params = {};
      outcome = io_uring_queue_init_params(depth_, &ring_, &params);
    }
    if (outcome != 0) return -outcome;
    open_ = true;
    (void)io_uring_register_ring_fd(&ring_);
    if (fd_ < 0) return 0;
    buffers_ = std::aligned_alloc(kBytes, size_t{kBytes} * depth_);
    if (buffers_ == nullptr) return ENOMEM;
    const iovec all = {buffers_, size_t{kBytes} * depth_};
    outcome = io_uring_register_files(&ring_, &fd_, 1);
    if (outcome == 0) outcome = io_uring_register_buffers(&ring_, &all, 1);
    return -outcome;
  }

  // Reads until `end_ns` and adds up in `*ios`; 0, or errno.
  int Run(int64_t end_ns, uint64_t* ios) {
    for (unsigned slot = 0; slot < depth_; ++slot) Prepare(slot);
    unsigned in_flight = depth_;
    bool more = true;
    while (in_flight > 0) {
      const int outcome = io_uring_submit_and_wait(&ring_, 1);
      if (outcome < 0 && outcome != -EINTR) return -outcome;
      more = more && NowNs() < end_ns;
      unsigned head = 0;
      unsigned count = 0;
      io_uring_cqe* done = nullptr;
      io_uring_for_each_cqe(&ring_, head, done) {
        if (done->res < 0) return -done->res;
        ++count;
        if (more) Prepare(static_cast<unsigned>(done->user_data));
      }
      io_uring_cq_advance(&ring_, count);
      *ios += count;
      if (!more) in_flight -= count;
    }
    return 0;
  }

 private:
  void Prepare(unsigned slot) {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    if (fd_ < 0) {
      io_uring_prep_nop(entry);
    } else {
      // xorshift: cheap, and no place twice in a row.
      random_ ^= random_ << 13;
      random_ ^= random_ >> 7;
      random_ ^= random_ << 17;
      io_uring_prep_read_fixed(entry, 0, static_cast<char*>(buffers_) + size_t{kBytes} * slot,
                               kBytes, random_ % blocks_ * kBytes, 0);
      io_uring_sqe_set_flags(entry, IOSQE_FIXED_FILE);
    }
    io_uring_sqe_set_data64(entry, slot);
  }

  const int fd_;
  const uint64_t blocks_;
  const unsigned depth_;
  io_uring ring_{};
  bool open_ = false;
  void* buffers_ = nullptr;
  uint64_t random_ = 88172645463325252u;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || std::atoi(argv[2]) < 1 || std::atoi(argv[2]) > 4096) {
    std::fprintf(stderr, "usage: uring_loop TARGET|nop DEPTH SECONDS\n");
    return argc == 2 && std::string(argv[1]) == "--help" ? 0 : 2;
  }
  const std::string target = argv[1];
  const auto depth = static_cast<unsigned>(std::atoi(argv[2]));
  int fd = -1;
  uint64_t blocks = 1;
  if (target != "nop") {
    fd = open(target.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    uint64_t bytes = 0;
    struct stat info{};
    if (fd < 0 || fstat(fd, &info) != 0) return Fail(argv[1], errno);
    bytes = static_cast<uint64_t>(info.st_size);
    if (S_ISBLK(info.st_mode) && ioctl(fd, BLKGETSIZE64, &bytes) != 0) return Fail(argv[1], errno);
    blocks = bytes / kBytes;
    if (blocks == 0) return Fail(argv[1], EINVAL);
  }
  Loop loop(fd, blocks, depth);
  if (const int error = loop.Open(); error != 0) return Fail("io_uring", error);
  const int64_t start_ns = NowNs();
  const int64_t cpu_ns = CpuNs();
  uint64_t ios = 0;
  const auto length_ns = static_cast<int64_t>(std::atof(argv[3]) * 1e9);
  if (const int error = loop.Run(start_ns + length_ns, &ios); error != 0) {
    return Fail(argv[1], error);
  }
  std::printf("{\"ios\": %llu, \"wall_ns\": %lld, \"cpu_ns\": %lld}\n",
              static_cast<unsigned long long>(ios), static_cast<long long>(NowNs() - start_ns),
              static_cast<long long>(CpuNs() - cpu_ns));
  return 0;
}
