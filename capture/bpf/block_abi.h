// What the BPF programs and the source in user space share. Included by both: C only, after the
// fixed-width types.
/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
#ifndef BLKTAPE_CAPTURE_BPF_BLOCK_ABI_H_
#define BLKTAPE_CAPTURE_BPF_BLOCK_ABI_H_

#define BLKTAPE_MAX_DEVICES 32
#define BLKTAPE_MAX_CPUS 1024
#define BLKTAPE_OWN_PIDS 8
#define BLKTAPE_NAME_RING_BYTES (1 << 20)

// Reads and writes of 0 to 2 MiB are counted in an array by size in sectors; what else is queued is
// rare and counted by a hash of (op, bytes).
#define BLKTAPE_SIZE_OPS 2
#define BLKTAPE_SIZE_SLOTS 4097
// Which parts of that array have been counted in since user space looked: a byte for each 64
// counts.
#define BLKTAPE_SIZE_PART 64
#define BLKTAPE_SIZE_PARTS 136

struct blktape_device {
  __u32 dev;     // kernel dev_t: major << 20 | minor; ~0: nobody
  __u32 base;    // its first slot
  __u32 tags;    // slots a hardware queue has for tags; one more is for its flush request
  __u32 queues;  // 0: bio-based, there are no requests to see
};

// A request between issue and completion, at (hardware queue, tag). rq is 0 when free.
struct blktape_slot {
  __u64 rq;
  __u64 issue_ns;
  __u64 start_ns;  // when its earliest bio was queued; 0: not known
  __u64 sector;
  __u32 bytes;
  __u32 pid;
  __u16 cpu;
  __u16 flags;  // kFlag... of the first bio, which still has PREFLUSH and FUA
  __u16 prio;
  __u8 op;            // Op of io_record.h
  __u8 device;        // its place in `devices`
  __u32 asked;        // flush: how many software asked for
  __u32 incarnation;  // which of the requests that lie at rq: low bits of when it was begun
};

// One finished request (or bio, on a bio-based device). With the header that the ring puts before
// it a cache line.
struct blktape_finished {
  __u64 issue_ns;     // 0: absent (bio-based)
  __u64 start_ns;     // 0: absent
  __u64 complete_ns;  // 0: its completion was not seen
  __u64 sector;
  __u32 bytes;
  __u32 pid;
  __u32 asked;
  __s32 status;  // blk_status_t, or a negative errno from kernels before 5.16
  __u16 flags;
  __u16 cpu;
  __u16 prio;  // 0: none
  __u8 op;
  __u8 device;
};

// What a process is called, told before the first record that it is the process of. In a ring of
// its own, so that it can be read before them.
struct blktape_name {
  __u32 pid;
  char comm[16];
};

// One a CPU; only ever growing.
struct blktape_counters {
  __u64 finished;
  __u64 ring_full;  // finished requests that found no room
  __u64 name_ring_full;
  __u64 missing_start;   // completions without an issue stamp of what was queued while recording
  __u64 unknown_start;   // the same, queued before or nobody knows when
  __u64 tag_reused;      // a tag issued again without a completion in between
  __u64 tag_range;       // a tag beyond the slots of its queue
  __u64 bio_table_full;  // bio-based devices: no room to remember a bio
  __u64 flagged_writes;
  __u64 flushes_asked;
  __u64 unstamped;   // issued without that anybody kept when it was queued
  __u64 unknown_op;  // issued, of an operation without a number of ours
  __u64 unused[4];   // a line of its own for each CPU
};

struct blktape_size_key {
  __u32 op;
  __u32 bytes;
};

#endif  // BLKTAPE_CAPTURE_BPF_BLOCK_ABI_H_
