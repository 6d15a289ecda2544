#include "capture/bpf/bpf_probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/types.h>

#include <cerrno>
#include <cstdlib>
#include <iterator>

#include "base/file.h"
#include "host/machine.h"

namespace blktape {

std::optional<std::string> WhyBpfMayMissEvents() {
  // Any function of the kernel would do.
  const int function = libbpf_find_vmlinux_btf_id("blk_mq_start_request", BPF_TRACE_FENTRY);
  if (function <= 0) return std::nullopt;
  const bpf_insn return_zero[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
  };
  bpf_prog_load_opts options{};
  options.sz = sizeof options;
  options.expected_attach_type = BPF_TRACE_FENTRY;
  options.attach_btf_id = static_cast<__u32>(function);
  const UniqueFd program(bpf_prog_load(BPF_PROG_TYPE_TRACING, "blktape_probe", "GPL", return_zero,
                                       std::size(return_zero), &options));
  if (program || errno != EPERM) return std::nullopt;
  return "bpf: this kernel restricts BPF, so that it may miss events";
}

bool ProgramsArePreemptible() { return std::atoi(KernelRelease().c_str()) >= 7; }

}  // namespace blktape
