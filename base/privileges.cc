#include "base/privileges.h"

#include <linux/capability.h>
#include <seccomp.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

namespace blktape {

Status DropCapabilities(const std::vector<int>& kept) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return ErrnoStatus(errno, "no_new_privs");
  const std::unique_ptr<std::remove_pointer_t<cap_t>, int (*)(void*)> now(cap_get_proc(), cap_free);
  const std::unique_ptr<std::remove_pointer_t<cap_t>, int (*)(void*)> next(cap_init(), cap_free);
  if (now == nullptr || next == nullptr) return ErrnoStatus(errno, "capabilities");
  for (const cap_value_t one : kept) {
    for (const cap_flag_t flag : {CAP_PERMITTED, CAP_EFFECTIVE}) {
      cap_flag_value_t has = CAP_CLEAR;
      // What is not there cannot be kept.
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

Status ForbidUnusedSystemCalls() {
  const std::unique_ptr<void, void (*)(void*)> filter(seccomp_init(SCMP_ACT_ALLOW),
                                                      seccomp_release);
  if (filter == nullptr) return Status(StatusCode::kUnavailable, "no seccomp");
  // All threads, not this one alone.
  seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1);
  constexpr int kRefused[] = {
      SCMP_SYS(execve),
      SCMP_SYS(execveat),
      SCMP_SYS(ptrace),
      SCMP_SYS(mount),
      SCMP_SYS(umount2),
      SCMP_SYS(pivot_root),
      SCMP_SYS(move_mount),
      SCMP_SYS(open_tree),
      SCMP_SYS(fsopen),
      SCMP_SYS(fsmount),
      SCMP_SYS(chroot),
      SCMP_SYS(setns),
      SCMP_SYS(unshare),
      SCMP_SYS(init_module),
      SCMP_SYS(finit_module),
      SCMP_SYS(delete_module),
      SCMP_SYS(kexec_load),
      SCMP_SYS(kexec_file_load),
      SCMP_SYS(reboot),
      SCMP_SYS(swapon),
      SCMP_SYS(swapoff),
      SCMP_SYS(setuid),
      SCMP_SYS(setgid),
      SCMP_SYS(setresuid),
      SCMP_SYS(setresgid),
      SCMP_SYS(setgroups),
      SCMP_SYS(keyctl),
      SCMP_SYS(add_key),
      SCMP_SYS(request_key),
      SCMP_SYS(process_vm_readv),
      SCMP_SYS(userfaultfd),
      SCMP_SYS(process_vm_writev),
      SCMP_SYS(settimeofday),
      SCMP_SYS(clock_settime),
      SCMP_SYS(open_by_handle_at),
      SCMP_SYS(acct),
  };
  for (const int call : kRefused) {
    seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), call, 0);
  }
  const scmp_arg_cmp not_local{0, SCMP_CMP_NE, AF_UNIX, 0};
  seccomp_rule_add_array(filter.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1, &not_local);
  const int loaded = seccomp_load(filter.get());
  if (loaded != 0) return ErrnoStatus(-loaded, "seccomp");
  return OkStatus();
}

}  // namespace blktape
