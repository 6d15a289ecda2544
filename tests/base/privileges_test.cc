// What a recorder may still do once it has given up what it does not need. Each case runs in a
// process of its own, since nothing gives anything back.
#include "base/privileges.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <string>
#include <thread>

#include "base/file.h"

namespace blktape {
namespace {

constexpr int kNoFilter = 77;

// What `run` returns, under the filter, in a child: its exit status, or 256 + the signal.
int UnderFilter(const std::function<int()>& run) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !ForbidUnusedSystemCalls().ok()) {
      _exit(kNoFilter);
    }
    _exit(run());
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

struct Refused {
  const char* name;
  std::function<long()> call;
};

void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.name; }

class RefusedCallTest : public testing::TestWithParam<Refused> {};

TEST_P(RefusedCallTest, FailsAsNotPermitted) {
  // Arguments are such that the kernel itself would say something else than EPERM, or do it.
  EXPECT_EQ(UnderFilter([] { return GetParam().call() == -1 ? errno : 0; }), EPERM);
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedCallTest,
    testing::Values(
        Refused{"io_uring_setup", [] { return syscall(SYS_io_uring_setup, 0, nullptr); }},
        Refused{"io_uring_enter", [] { return syscall(SYS_io_uring_enter, -1, 0, 0, 0, nullptr); }},
        Refused{"setreuid", [] { return syscall(SYS_setreuid, -1, -1); }},
        Refused{"setuid", [] { return syscall(SYS_setuid, getuid()); }},
        Refused{"setfsuid", [] { return syscall(SYS_setfsuid, -1); }},
        Refused{"mount_setattr",
                [] { return syscall(442 /* mount_setattr */, -1, "", 0, nullptr, 0); }},
        Refused{"fsconfig", [] { return syscall(SYS_fsconfig, -1, 0, nullptr, nullptr, 0); }},
        Refused{"fspick", [] { return syscall(SYS_fspick, -1, "", 0); }},
        Refused{"mount", [] { return syscall(SYS_mount, "", "", "", 0, nullptr); }},
        Refused{"pidfd_open", [] { return syscall(SYS_pidfd_open, getpid(), 0); }},
        Refused{"pidfd_getfd", [] { return syscall(438 /* pidfd_getfd */, -1, 0, 0); }},
        Refused{"process_vm_readv",
                [] { return syscall(SYS_process_vm_readv, -1, nullptr, 0, nullptr, 0, 0); }},
        Refused{"ptrace", [] { return syscall(SYS_ptrace, 0xFFFF, 0, nullptr, nullptr); }},
        Refused{"execve", [] { return syscall(SYS_execve, "/nowhere", nullptr, nullptr); }},
        Refused{"fork", [] { return syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0); }},
        Refused{"a user name space",
                [] {
                  return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, 0);
                }},
        Refused{"unshare", [] { return syscall(SYS_unshare, 0); }},
        Refused{"setns", [] { return syscall(SYS_setns, -1, 0); }},
        Refused{"perf_event_open",
                [] { return syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0UL); }},
        Refused{"keyctl", [] { return syscall(SYS_keyctl, 0xFFFF); }},
        Refused{"userfaultfd", [] { return syscall(SYS_userfaultfd, 0xFFFF); }},
        Refused{"open_by_handle_at", [] { return syscall(SYS_open_by_handle_at, -1, nullptr, 0); }},
        Refused{"a socket of the Internet",
                [] { return static_cast<long>(socket(AF_INET, SOCK_STREAM, 0)); }},
        Refused{"a socket of the kernel's",
                [] { return static_cast<long>(socket(AF_NETLINK, SOCK_RAW, 0)); }},
        Refused{"a BPF program", [] { return syscall(SYS_bpf, BPF_PROG_LOAD, nullptr, 0); }},
        Refused{"pinning a BPF object", [] { return syscall(SYS_bpf, BPF_OBJ_PIN, nullptr, 0); }},
        Refused{"input for a terminal", [] { return static_cast<long>(ioctl(-1, TIOCSTI, "x")); }},
        Refused{"being traced by anybody",
                [] { return static_cast<long>(prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY)); }},
        Refused{"a larger limit",
                [] {
                  const rlimit limit{1, 1};
                  return static_cast<long>(prlimit(0, RLIMIT_CORE, &limit, nullptr));
                }},
        Refused{"the priority of others",
                [] { return static_cast<long>(setpriority(PRIO_USER, getuid(), 19)); }},
        Refused{"chroot", [] { return syscall(SYS_chroot, "/nowhere"); }},
        Refused{"chmod", [] { return syscall(SYS_chmod, "/nowhere", 0777); }},
        Refused{"chown", [] { return syscall(SYS_chown, "/nowhere", 0, 0); }},
        Refused{"mknod", [] { return syscall(SYS_mknod, "/nowhere", 0, 0); }},
        Refused{"reboot", [] { return syscall(SYS_reboot, 0, 0, 0, nullptr); }},
        Refused{"another filter", [] { return syscall(SYS_seccomp, 0xFFFF, 0, nullptr); }}),
    [](const testing::TestParamInfo<Refused>& info) {
      std::string name = info.param.name;
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      return name;
    });

TEST(PrivilegesTest, WhatARecordingDoesIsStillDone) {
  const std::string folder = std::getenv("TEST_TMPDIR");
  EXPECT_EQ(UnderFilter([&folder] {
              // Files, as a rotation makes, finishes and removes them.
              const std::string path = folder + "/trace";
              auto file = CreateFile(path + ".partial");
              if (!file.ok()) return 1;
              const std::string text = "text";
              if (!(*file)->Write(std::as_bytes(std::span(text))).ok()) return 2;
              if (!(*file)->Sync().ok()) return 3;
              if (!RenameDurably(path + ".partial", path).ok()) return 4;
              if (!ReplaceFile(folder + "/status", "status").ok()) return 5;
              if (ReadFile("/proc/self/status").status().code() != StatusCode::kOk) return 6;
              if (link(path.c_str(), (path + "_2").c_str()) != 0) return 7;
              if (unlink(path.c_str()) != 0 || unlink((path + "_2").c_str()) != 0) return 7;
              // A thread that gives up its rights.
              bool dropped = false;
              std::thread([&dropped] { dropped = DropCapabilities().ok(); }).join();
              if (!dropped) return 8;
              // The service manager's socket, a terminal's size, limits, signals.
              const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
              if (fd < 0) return 9;
              winsize size{};
              if (ioctl(fd, TIOCGWINSZ, &size) == 0 || errno == EPERM) return 10;
              rlimit limit{};
              if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 11;
              if (kill(getpid(), 0) != 0) return 12;
              // Its own priority, as a thread that rewrites finished traces lowers it.
              if (setpriority(PRIO_PROCESS, 0, 19) != 0) return 13;
              if (syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 7) != 0) return 14;
              return 0;
            }),
            0);
}

TEST(PrivilegesTest, AnAbortStillEndsTheProcess) {
  EXPECT_EQ(UnderFilter([]() -> int { std::abort(); }), 256 + SIGABRT);
}

}  // namespace
}  // namespace blktape
