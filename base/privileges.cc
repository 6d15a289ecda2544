#include "base/privileges.h"

#include <linux/blktrace_api.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <linux/prctl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>

namespace blktape {

Status DropCapabilities(const std::vector<int>& kept) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return ErrnoStatus(errno, "no_new_privs");
  const std::unique_ptr<std::remove_pointer_t<cap_t>, int (*)(void*)> now(cap_get_proc(), cap_free);
  const std::unique_ptr<std::remove_pointer_t<cap_t>, int (*)(void*)> next(cap_init(), cap_free);
  if (now == nullptr || next == nullptr) return ErrnoStatus(errno, "capabilities");
  for (const cap_value_t one : kept) {
    for (const cap_flag_t flag : {CAP_PERMITTED, CAP_EFFECTIVE}) {
      cap_flag_value_t has = CAP_CLEAR;
      // Keep only what the thread has.
      if (cap_get_flag(now.get(), one, flag, &has) == 0 && has == CAP_SET) {
        cap_set_flag(next.get(), flag, 1, &one, CAP_SET);
      }
    }
  }
  if (cap_set_proc(next.get()) != 0) return ErrnoStatus(errno, "dropping capabilities");
  return OkStatus();
}

bool HasCapability(int capability) {
  const std::unique_ptr<std::remove_pointer_t<cap_t>, int (*)(void*)> now(cap_get_proc(), cap_free);
  cap_flag_value_t has = CAP_CLEAR;
  return now != nullptr && cap_get_flag(now.get(), capability, CAP_EFFECTIVE, &has) == 0 &&
         has == CAP_SET;
}

namespace {

// The system calls of a running recording with any source: reading the kernel's rings, sysfs and
// procfs; writing, finishing, rewriting and removing traces; the status file; the service manager's
// socket; waiting for the child command; and what the C library does for threads, memory, time and
// signals. Found with strace for each source with rotation, a child command and a service manager.
// The list also has the calls that other versions of the C library make instead.
constexpr int kAllowed[] = {
    // Files.
    SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv), SCMP_SYS(preadv2),
    SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(pwrite64), SCMP_SYS(pwritev), SCMP_SYS(pwritev2),
    SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(close), SCMP_SYS(close_range), SCMP_SYS(lseek),
    SCMP_SYS(stat), SCMP_SYS(fstat), SCMP_SYS(lstat), SCMP_SYS(newfstatat), SCMP_SYS(statx),
    SCMP_SYS(statfs), SCMP_SYS(fstatfs), SCMP_SYS(access), SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getdents64),
    SCMP_SYS(getcwd), SCMP_SYS(fcntl), SCMP_SYS(flock), SCMP_SYS(fsync), SCMP_SYS(fdatasync),
    SCMP_SYS(fallocate), SCMP_SYS(ftruncate), SCMP_SYS(fadvise64), SCMP_SYS(rename),
    SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(link), SCMP_SYS(linkat), SCMP_SYS(unlink),
    SCMP_SYS(unlinkat), SCMP_SYS(rmdir), SCMP_SYS(mkdir), SCMP_SYS(mkdirat), SCMP_SYS(umask),
    SCMP_SYS(dup), SCMP_SYS(dup2), SCMP_SYS(dup3), SCMP_SYS(pipe2),
    // Waiting.
    SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(select), SCMP_SYS(pselect6), SCMP_SYS(epoll_create1),
    SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_pwait2),
    SCMP_SYS(eventfd2), SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime),
    SCMP_SYS(timerfd_gettime), SCMP_SYS(signalfd4), SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep),
    SCMP_SYS(restart_syscall),
    // Memory and threads.
    SCMP_SYS(brk), SCMP_SYS(mmap), SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(munmap),
    SCMP_SYS(madvise), SCMP_SYS(mincore), SCMP_SYS(futex), SCMP_SYS(futex_waitv),
    SCMP_SYS(set_robust_list), SCMP_SYS(get_robust_list), SCMP_SYS(set_tid_address), SCMP_SYS(rseq),
    SCMP_SYS(membarrier), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sched_setaffinity), SCMP_SYS(getcpu), SCMP_SYS(exit), SCMP_SYS(exit_group),
    // Signals and the child command.
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigpending), SCMP_SYS(rt_sigtimedwait), SCMP_SYS(sigaltstack), SCMP_SYS(kill),
    SCMP_SYS(tgkill), SCMP_SYS(wait4), SCMP_SYS(waitid),
    // Its ids, the machine and the time.
    SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getppid), SCMP_SYS(getpgrp), SCMP_SYS(getuid),
    SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid), SCMP_SYS(getgroups), SCMP_SYS(uname),
    SCMP_SYS(sysinfo), SCMP_SYS(getrlimit), SCMP_SYS(getrusage), SCMP_SYS(times),
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    SCMP_SYS(getrandom),
    // Writer threads drop their remaining capabilities.
    SCMP_SYS(capget), SCMP_SYS(capset),
    // Datagrams to the service manager; kSockets below allows local sockets only.
    SCMP_SYS(connect), SCMP_SYS(sendto), SCMP_SYS(sendmsg), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg),
    SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(getsockname), SCMP_SYS(shutdown)};

// Calls that do many things are allowed with these first or second arguments only.
constexpr uint64_t kSockets[] = {AF_UNIX};
constexpr uint64_t kPrctls[] = {PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_SET_NAME, PR_GET_NAME,
                                PR_CAPBSET_READ,     PR_GET_SECCOMP,      PR_SET_VMA};
// Reading maps, and creating a larger ring for a CPU. No programs, and nothing that outlives the
// process.
constexpr uint64_t kBpfs[] = {BPF_MAP_CREATE,        BPF_MAP_LOOKUP_ELEM,
                              BPF_MAP_UPDATE_ELEM,   BPF_MAP_DELETE_ELEM,
                              BPF_MAP_GET_NEXT_KEY,  BPF_MAP_LOOKUP_AND_DELETE_ELEM,
                              BPF_MAP_LOOKUP_BATCH,  BPF_MAP_LOOKUP_AND_DELETE_BATCH,
                              BPF_OBJ_GET_INFO_BY_FD};
// A terminal's kind and size (never pushing input into it), and the ioctls of blktrace.
constexpr uint64_t kIoctls[] = {TCGETS,        TIOCGWINSZ,       FIONREAD,
                                BLKGETSIZE64,  BLKTRACESTART,    BLKTRACESTOP,
                                BLKTRACESETUP, BLKTRACETEARDOWN, LOOP_GET_STATUS64};
constexpr unsigned kIoctlArgument = 1;
// IOPRIO_WHO_PROCESS of linux/ioprio.h, a header that C++ cannot include.
constexpr uint64_t kIoPriorityOfProcess = 1;

// Adds rules one by one and keeps the first failure.
class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM)), seccomp_release) {
    // All threads, not only this one.
    if (context_ != nullptr) Keep(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_TSYNC, 1));
  }
  void Allow(int call) { Keep(seccomp_rule_add(context_.get(), SCMP_ACT_ALLOW, call, 0)); }
  // Allows `call` if `argument` is one of `values`. For these calls the kernel uses the lower 32
  // bits.
  void AllowWith(int call, unsigned argument, std::span<const uint64_t> values) {
    for (const uint64_t value : values) {
      const scmp_arg_cmp is{argument, SCMP_CMP_MASKED_EQ, UINT32_MAX, value};
      Keep(seccomp_rule_add_array(context_.get(), SCMP_ACT_ALLOW, call, 1, &is));
    }
  }
  // Allows threads, but no processes or name spaces. A filter can check the flags of clone but not
  // of clone3; the C library falls back to clone if clone3 does not exist.
  void AllowThreads() {
    const scmp_arg_cmp is_thread{0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD};
    Keep(seccomp_rule_add_array(context_.get(), SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, &is_thread));
    Keep(seccomp_rule_add(context_.get(), SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0));
  }
  // Allows reading limits, but not setting them: the argument with new limits must be null.
  void AllowReadingLimits() {
    const scmp_arg_cmp sets_none{2, SCMP_CMP_EQ, 0, 0};
    Keep(
        seccomp_rule_add_array(context_.get(), SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, &sets_none));
  }
  // Allows a thread to set its own CPU and I/O priority, as the thread that rewrites finished
  // traces does.
  void AllowOwnPriority() {
    const scmp_arg_cmp of_processes{0, SCMP_CMP_EQ, PRIO_PROCESS, 0};
    const scmp_arg_cmp of_process{0, SCMP_CMP_EQ, kIoPriorityOfProcess, 0};
    const scmp_arg_cmp of_itself{1, SCMP_CMP_EQ, 0, 0};
    const scmp_arg_cmp cpu[] = {of_processes, of_itself};
    const scmp_arg_cmp io[] = {of_process, of_itself};
    Keep(seccomp_rule_add_array(context_.get(), SCMP_ACT_ALLOW, SCMP_SYS(setpriority), 2, cpu));
    Keep(seccomp_rule_add_array(context_.get(), SCMP_ACT_ALLOW, SCMP_SYS(ioprio_set), 2, io));
  }
  // Puts the filter in force for all threads.
  Status Load() {
    if (context_ == nullptr) return Status(StatusCode::kUnavailable, "no seccomp");
    if (failure_ == 0) failure_ = seccomp_load(context_.get());
    return failure_ == 0 ? OkStatus() : ErrnoStatus(-failure_, "seccomp");
  }

 private:
  void Keep(int result) {
    if (failure_ == 0) failure_ = result;
  }

  const std::unique_ptr<void, void (*)(void*)> context_;
  int failure_ = 0;
};

}  // namespace

Status ForbidUnusedSystemCalls() {
  Filter filter;
  for (const int call : kAllowed) filter.Allow(call);
  filter.AllowWith(SCMP_SYS(socket), 0, kSockets);
  filter.AllowWith(SCMP_SYS(prctl), 0, kPrctls);
  filter.AllowWith(SCMP_SYS(bpf), 0, kBpfs);
  filter.AllowWith(SCMP_SYS(ioctl), kIoctlArgument, kIoctls);
  filter.AllowThreads();
  filter.AllowReadingLimits();
  filter.AllowOwnPriority();
  return filter.Load();
}

}  // namespace blktape
