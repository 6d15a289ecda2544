// The interface between the BPF programs and the source in user space. Included by both: plain C,
// after the fixed-width types.
/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
#ifndef BLKTAPE_CAPTURE_BPF_BLOCK_ABI_H_
#define BLKTAPE_CAPTURE_BPF_BLOCK_ABI_H_

#define BLKTAPE_MAX_DEVICES 32
#define BLKTAPE_MAX_LAYERS 64
#define BLKTAPE_MAX_CPUS 1024
#define BLKTAPE_OWN_PIDS 8
#define BLKTAPE_NAME_RING_BYTES (1 << 20)

// Queued reads and writes of 0 to 2 MiB are counted in an array indexed by size in sectors. All
// other queued bios are rare and counted in a hash by (op, bytes).
#define BLKTAPE_SIZE_OPS 2
#define BLKTAPE_SIZE_SLOTS 4097
// Marks the parts of that array that changed since user space last read them: one byte per 64
// counts.
#define BLKTAPE_SIZE_PART 64
#define BLKTAPE_SIZE_PARTS 136

struct blktape_device {
  __u32 dev;     // kernel dev_t: major << 20 | minor; ~0: nobody
  __u32 base;    // its first slot
  __u32 tags;    // slots for tags per hardware queue; one more slot is for its flush request
  __u32 queues;  // 0: bio-based, there are no requests
};

// A device that passes bios on to disks below it: device-mapper, md.
struct blktape_layer {
  __u32 dev;       // as in blktape_device
  __u32 one_disk;  // all of it lies on one disk
};

// A request between issue and completion, at (hardware queue, tag). rq is 0 when free.
struct blktape_slot {
  __u64 rq;
  __u64 issue_ns;
  __u64 start_ns;  // when its earliest bio was queued; 0: unknown
  __u64 sector;
  __u32 bytes;
  __u32 pid;
  __u16 cpu;
  __u16 flags;  // kFlag... of the first bio, which still has PREFLUSH and FUA
  __u16 prio;
  __u8 op;            // Op of io_record.h
  __u8 device;        // its index in `devices`
  __u32 asked;        // flush: number of flushes that software asked for
  __u32 incarnation;  // distinguishes requests that reuse the address rq: low bits of the start
                      // time
  __u32 waker;        // 0: none
  __u16 since_wake;   // as in blktape_finished
};

// One finished request (or bio, on a bio-based device). Together with the ring's header it fills a
// cache line.
struct blktape_finished {
  __u64 issue_ns;     // 0: absent (bio-based)
  __u64 start_ns;     // 0: absent
  __u64 complete_ns;  // 0: the completion was not seen
  __u64 sector;
  __u32 bytes;  // of a flush, which has none: how many software asked for
  __u32 pid;
  __u32 waker;       // the thread that woke pid; 0: none is known
  __u16 since_wake;  // how long before start_ns, as a BLKTAPE_SHORT
  __s16 status;      // blk_status_t, or a negative errno from kernels before 5.16
  __u16 flags;
  __u16 cpu;
  __u16 prio;  // 0: none
  __u8 op;
  __u8 device;
};

// A time in ns in 16 bits, rounded down to 11 of its own: these << the 5 bits above them.
#define BLKTAPE_SHORT_BITS 11

// The name of a process, sent before its first record. Names have a separate ring, so that user
// space can read them before the records.
struct blktape_name {
  __u32 pid;
  __u32 pad;
  __u64 since_ns;  // it may have been called otherwise before
  char comm[16];
};

// One per CPU; the counters only grow.
struct blktape_counters {
  __u64 finished;
  __u64 ring_full;  // finished requests that found the ring full
  __u64 name_ring_full;
  __u64 missing_start;   // completions without an issue time, of requests queued while recording
  __u64 unknown_start;   // the same, of requests queued before that or at an unknown time
  __u64 tag_reused;      // a tag issued again without a completion in between
  __u64 tag_range;       // a tag beyond the slots of its queue
  __u64 bio_table_full;  // bio-based devices: no space to store a bio
  __u64 flagged_writes;
  __u64 flushes_asked;
  __u64 unstamped;   // issued, but the queue time was not kept
  __u64 unknown_op;  // issued, with an operation that has no Op
  __u64 unused[4];   // gives each CPU its own cache line
};

struct blktape_size_key {
  __u32 op;
  __u32 bytes;
};

#endif  // BLKTAPE_CAPTURE_BPF_BLOCK_ABI_H_
