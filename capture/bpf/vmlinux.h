// The few kernel types that the programs read, reduced by hand from the kernel's BTF.
// preserve_access_index makes libbpf relocate every field to its offset in the running kernel
// (CO-RE), so layout and order here have no meaning.
/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
#ifndef BLKTAPE_CAPTURE_BPF_VMLINUX_H_
#define BLKTAPE_CAPTURE_BPF_VMLINUX_H_

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum bpf_map_type {
  BPF_MAP_TYPE_HASH = 1,
  BPF_MAP_TYPE_ARRAY = 2,
  BPF_MAP_TYPE_PERCPU_ARRAY = 6,
  BPF_MAP_TYPE_LRU_HASH = 9,
  BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
  BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
  BPF_ANY = 0,
  BPF_NOEXIST = 1,
  BPF_F_MMAPABLE = 1024,
};

struct bpf_pidns_info {
  __u32 pid;
  __u32 tgid;
};

enum {
  BPF_RB_NO_WAKEUP = 1,
  BPF_RB_FORCE_WAKEUP = 2,
};

// Values differ between kernels; they are read with bpf_core_enum_value.
enum req_op {
  REQ_OP_READ = 0,
  REQ_OP_WRITE = 1,
  REQ_OP_FLUSH = 2,
  REQ_OP_DISCARD = 3,
  REQ_OP_SECURE_ERASE = 5,
  REQ_OP_ZONE_APPEND = 7,
  REQ_OP_WRITE_ZEROES = 9,
  REQ_OP_ZONE_OPEN = 11,
  REQ_OP_ZONE_CLOSE = 13,
  REQ_OP_ZONE_FINISH = 15,
  REQ_OP_ZONE_RESET = 17,
  REQ_OP_ZONE_RESET_ALL = 19,
  REQ_OP_DRV_IN = 34,
};

// The same before Linux 6.0. libbpf ignores ___ and what follows it in a name.
enum req_opf {
  REQ_OP_SECURE_ERASE___opf = 5,
  REQ_OP_WRITE_ZEROES___opf = 9,
  REQ_OP_ZONE_OPEN___opf = 10,
  REQ_OP_ZONE_CLOSE___opf = 11,
  REQ_OP_ZONE_FINISH___opf = 12,
  REQ_OP_ZONE_APPEND___opf = 13,
  REQ_OP_ZONE_RESET___opf = 15,
  REQ_OP_ZONE_RESET_ALL___opf = 17,
};

enum req_flag_bits {
  __REQ_SYNC = 11,
  __REQ_META = 12,
  __REQ_FUA = 17,
  __REQ_PREFLUSH = 18,
  __REQ_RAHEAD = 19,
  __REQ_ATOMIC = 27,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk {
  int major;
  int first_minor;
};

struct request_queue {
  struct gendisk *disk;
};

struct block_device {
  struct gendisk *bd_disk;
  __u32 bd_dev;  // of a partition its own, not its disk's
};

struct bvec_iter {
  __u64 bi_sector;
  __u32 bi_size;
};

struct bio {
  struct bio *bi_next;
  struct block_device *bi_bdev;
  void *bi_private;
  __u32 bi_opf;
  __u16 bi_ioprio;
  __u8 bi_status;
  struct bvec_iter bi_iter;
};

struct blk_mq_hw_ctx {
  unsigned int queue_num;
};

struct request {
  struct request_queue *q;
  struct blk_mq_hw_ctx *mq_hctx;
  __u32 cmd_flags;
  int tag;
  int internal_tag;
  unsigned int __data_len;
  __u64 __sector;
  struct bio *bio;
  __u64 start_time_ns;
};

struct task_struct {
  int pid;
  char comm[16];
};

#pragma clang attribute pop

#endif  // BLKTAPE_CAPTURE_BPF_VMLINUX_H_
