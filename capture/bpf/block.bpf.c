// Follows block requests from issue to completion and sends each finished one to user space.
//
// The issue time of a request waits in an array at (hardware queue, tag), which needs neither
// hashing nor allocation. A flush request borrows the tag of the request that it serves, so each
// hardware queue has one more slot for it: there is at most one flush in flight per queue.
/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
#include "vmlinux.h"
// vmlinux.h comes first: the others need its types.
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "block_abi.h"

// The kernel allows bpf_get_current_comm and similar functions only in programs under the GPL.
char LICENSE[] SEC("license") = "GPL";

const volatile __u32 device_count = 0;  // entries of `devices` that are or may be used
const volatile bool want_names = 1;
// The PID namespace of the recorder's thread ids: its device and inode.
const volatile __u64 pid_namespace_dev = 0;
const volatile __u64 pid_namespace_inode = 0;
// Changes while we run, as disks come and go.
volatile struct blktape_device devices[BLKTAPE_MAX_DEVICES];
// The devices on top of these. Likewise.
volatile struct blktape_layer layers[BLKTAPE_MAX_LAYERS];
volatile __u32 layer_count;
// Threads of the recorder: their bios are not counted. 0: no thread; changes while we run.
volatile __u32 own_pids[BLKTAPE_OWN_PIDS];
// Their ids in records, if these differ; 0 until the thread has queued something.
volatile __u32 own_pids_seen[BLKTAPE_OWN_PIDS];
// Programs are attached and detached one by one. Until the last one is attached, and once the first
// one is detached, they ignore events; otherwise they would see issues without completions and the
// reverse.
volatile __u32 recording;
// User space sleeps until something happens: the next record wakes it, whatever its number.
volatile __u32 asleep;
// When the programs began to record; 0 before.
volatile __u64 begun_ns;
// A record whose number on its CPU has none of these bits wakes user space. Changes while we run,
// as rings may grow.
volatile __u32 wake_mask;

// As in io_record.h; static_asserts in finished_record.cc check that they agree.
enum {
  kRead,
  kWrite,
  kDiscard,
  kFlush,
  kWriteZeroes,
  kSecureErase,
  kZoneReset,
  kZoneResetAll,
  kZoneOpen,
  kZoneClose,
  kZoneFinish,
  kZoneAppend,
  kUnknownOp = 255
};
enum {
  kFlagSync = 1,
  kFlagFua = 2,
  kFlagPreflush = 4,
  kFlagMeta = 8,
  kFlagReadahead = 16,
  kFlagDerived = 32,
  kFlagAtomic = 64,
  kFlagMapped = 512
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);  // set at load
  __type(key, __u32);
  __type(value, struct blktape_slot);
} slots SEC(".maps");

struct ring {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20);  // the size of the template; real ones are made at load
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, 1);  // one a CPU, set at load
  __type(key, __u32);
  __array(values, struct ring);
} rings SEC(".maps");

// Of all CPUs: names are rare.
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, BLKTAPE_NAME_RING_BYTES);
} names SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);  // one a CPU
  __type(key, __u32);
  __type(value, struct blktape_counters);
} counters SEC(".maps");

struct size_counts {
  __u64 count[BLKTAPE_SIZE_OPS * BLKTAPE_SIZE_SLOTS];
  __u8 touched[BLKTAPE_SIZE_PARTS];
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);  // one a CPU
  __type(key, __u32);
  __type(value, struct size_counts);
} sizes SEC(".maps");

// Discards, very large bios and similar ones: rare, of any size.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, struct blktape_size_key);
  __type(value, __u64);
} rare_sizes SEC(".maps");

// Why a thread went on: who woke it, or whose I/O did as it completed, if that one does I/O; else
// who woke that one, and so on.
struct wake {
  __u64 ns;
  __u32 waker;  // 0: nobody is known
  __u32 pad;
};

// Threads that do I/O or were woken by such: direct mapped by pid, the latest.
#define THREAD_SLOTS 16384
struct thread {
  __u32 pid;
  __u32 pad;
  __u64 queued_ns;   // its last I/O; 0: none
  struct wake wake;  // the last one
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, THREAD_SLOTS);
  __type(key, __u32);
  __type(value, struct thread);
} threads SEC(".maps");

// In which kinds of interrupts a CPU is, which wake threads for other reasons than the thread that
// they interrupted; and whose I/O completed last, in which thread and interrupts: what is woken
// right after it in the same ones is woken by it.
#define COMPLETION_WAKES_NS 30000ull
#define IN_SOFTIRQ 1u
#define IN_HRTIMER 2u
struct cpu_state {
  __u64 completed_ns;
  __u32 owner;
  __u32 current;
  __u32 interrupts_then;
  __u32 interrupts;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct cpu_state);
} cpu_states SEC(".maps");

// The thread that queued a bio, and when. This is needed because the issue often happens in a
// kernel worker, and the kernel's own timestamp of a request comes after throttling and the wait
// for a tag. Keyed by the bio's address, in sets whose oldest entry is overwritten; then the queue
// time is absent and the pid may be inexact. With 1,024 bios in flight this happens to one in
// 100,000.
#define OWNER_SETS 8192
#define OWNER_WAYS 4
#define LAST_PROGRAM 2  // of an event, from 0; see PROBE
#define MERGED_BIOS_LOOKED_AT 8
#define FIRST_PASSTHROUGH_OP 32  // REQ_OP_SCSI_IN of old, REQ_OP_DRV_IN
#define MAX_DISCARD_RANGES 256   // of a request: what NVMe allows, no driver takes more
struct owner {
  __u64 bio;
  __u64 queue_ns;
  __u64 sector;
  __u32 sectors;  // the range requested; splitting removes its beginning
  __u32 pid;
  __u32 seen;        // by this many programs of one event, 0 after the last; see PROBE
  __u32 flags;       // that the bio itself has lost on its way down
  struct wake wake;  // of pid
};
struct owner_set {
  struct owner way[OWNER_WAYS];
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, OWNER_SETS);
  __type(key, __u32);
  __type(value, struct owner_set);
} owners SEC(".maps");

// Who queued the bios of the layers above the disks. Below, threads of the kernel submit many of
// them: dm-crypt's writes once they are encrypted, what device-mapper writes after a flush. Kept by
// where they lie, from the bio's queueing, and where they are passed on to, from its remapping, to
// its queueing there. An entry that is never taken is overwritten some time.
#define MAX_ORIGINS 16384
struct place {
  __u32 dev;
  __u32 pad;
  __u64 sector;
};
struct origin {
  __u64 bio;       // here
  __u64 queue_ns;  // in the topmost layer
  __u32 pid;
  __u32 passed_on;  // the bio came from above and is not queued here yet
  __u32 flushed;    // of a write with PREFLUSH: it was passed on as a flush, which has been queued
  __u32 seen;       // as in owner
  struct wake wake;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, MAX_ORIGINS);
  __type(key, struct place);
  __type(value, struct origin);
} origins SEC(".maps");

// The threads whose writes with PREFLUSH are passed on in two steps, of which the first, the flush,
// is still to come: direct mapped by pid.
#define PREFLUSH_SLOTS 1024
#define FLUSH_FOLLOWS_NS 10000000ull  // at once, but for what may delay the thread
struct preflush {
  __u32 pid;  // 0: none
  __u32 pad;
  struct place write;
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, PREFLUSH_SLOTS);
  __type(key, __u32);
  __type(value, struct preflush);
} preflushes SEC(".maps");

// The pids whose names user space already knows: direct mapped by pid.
#define NAME_SLOTS 8192
struct named_pid {
  __u32 pid;  // 0: not known any more
  __u32 pad;
  __u64 since_ns;  // when last a task whose pid has this slot got a name
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, NAME_SLOTS);
  __type(key, __u32);
  __type(value, struct named_pid);
} named SEC(".maps");

// Flushes that software asked for and that no flush request of the drive has served yet.
struct asked {
  __u64 count;
  __u64 first_ns;
  __u64 pid;
  struct wake wake;
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, BLKTAPE_MAX_DEVICES);
  __type(key, __u32);
  __type(value, struct asked);
} asked_flushes SEC(".maps");

// Bios of bio-based devices between queue and completion.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 65536);
  __type(key, __u64);
  __type(value, struct blktape_slot);
} bios SEC(".maps");

static __always_inline struct blktape_counters *Counters(void) {
  __u32 cpu = bpf_get_smp_processor_id();
  return bpf_map_lookup_elem(&counters, &cpu);
}

static __always_inline __u32 DevOf(struct gendisk *disk) {
  return (__u32)disk->major << 20 | (__u32)disk->first_minor;
}

// Hides from the verifier which of several numbers it is, as something that it cannot know is added
// and taken away: it reads on once for them all, where it would else do so for every way out of a
// loop.
static __always_inline int AnyOf(int number) {
  __u64 result = (__u32)number;
  __u64 unknown = begun_ns;
  asm volatile("%0 += %1\n%0 -= %1" : "+r"(result) : "r"(unknown));
  return (int)result;
}

// Index of the disk among those to record, or -1.
static __always_inline int Find(struct gendisk *disk) {
  __u32 dev = DevOf(disk);
  for (__u32 i = 0; i < BLKTAPE_MAX_DEVICES; ++i) {
    if (i >= device_count) return -1;
    if (devices[i].dev == dev) return AnyOf((int)i);
  }
  return -1;
}

// Index of the device among the layers above them, or -1.
static __always_inline int FindLayer(__u32 dev) {
  for (__u32 i = 0; i < BLKTAPE_MAX_LAYERS; ++i) {
    if (i >= layer_count) return -1;
    if (layers[i].dev == dev) return AnyOf((int)i);
  }
  return -1;
}

// The enumeration is called req_opf before Linux 6.0.
#define IS_OP(op, name)                                            \
  (bpf_core_enum_value_exists(enum req_op, name)                   \
       ? (op) == bpf_core_enum_value(enum req_op, name)            \
       : bpf_core_enum_value_exists(enum req_opf, name##___opf) && \
             (op) == bpf_core_enum_value(enum req_opf, name##___opf))

static __always_inline __u8 OpOf(__u32 opf) {
  __u32 op = opf & 0xff;
  // 0 to 3 have never changed.
  if (op == REQ_OP_READ) return kRead;
  if (op == REQ_OP_WRITE) return kWrite;
  if (op == REQ_OP_FLUSH) return kFlush;
  if (op == REQ_OP_DISCARD) return kDiscard;
  if (IS_OP(op, REQ_OP_WRITE_ZEROES)) return kWriteZeroes;
  if (IS_OP(op, REQ_OP_SECURE_ERASE)) return kSecureErase;
  if (IS_OP(op, REQ_OP_ZONE_APPEND)) return kZoneAppend;
  if (IS_OP(op, REQ_OP_ZONE_RESET)) return kZoneReset;
  if (IS_OP(op, REQ_OP_ZONE_RESET_ALL)) return kZoneResetAll;
  if (IS_OP(op, REQ_OP_ZONE_OPEN)) return kZoneOpen;
  if (IS_OP(op, REQ_OP_ZONE_CLOSE)) return kZoneClose;
  if (IS_OP(op, REQ_OP_ZONE_FINISH)) return kZoneFinish;
  return kUnknownOp;  // passthrough commands: no file system I/O
}

#define HAS(opf, name) ((opf) & (1u << bpf_core_enum_value(enum req_flag_bits, name)))

static __always_inline __u16 FlagsOf(__u32 opf) {
  __u16 flags = 0;
  if (HAS(opf, __REQ_SYNC)) flags |= kFlagSync;
  if (HAS(opf, __REQ_FUA)) flags |= kFlagFua;
  if (HAS(opf, __REQ_PREFLUSH)) flags |= kFlagPreflush;
  if (HAS(opf, __REQ_META)) flags |= kFlagMeta;
  if (HAS(opf, __REQ_RAHEAD)) flags |= kFlagReadahead;
  if (bpf_core_enum_value_exists(enum req_flag_bits, __REQ_ATOMIC) && HAS(opf, __REQ_ATOMIC)) {
    flags |= kFlagAtomic;
  }
  return flags;
}

// With a scheduler, a request keeps the scheduler's tag from start to end, while the drive's tag is
// released before the requeue event. Without one, the drive's tag is the only one, and is kept.
static __always_inline int TagOf(struct request *rq) {
  int tag = rq->internal_tag;
  return tag >= 0 ? tag : rq->tag;
}

static __always_inline struct blktape_slot *SlotOf(struct request *rq, int device, bool flush,
                                                   struct blktape_counters *counter, bool again) {
  __u32 queue = rq->mq_hctx->queue_num;
  __u32 tag = (__u32)TagOf(rq);
  __u32 tags = devices[device & (BLKTAPE_MAX_DEVICES - 1)].tags;
  __u32 queues = devices[device & (BLKTAPE_MAX_DEVICES - 1)].queues;
  if (queue >= queues || (!flush && tag >= tags)) {
    if (!again) __sync_fetch_and_add(&counter->tag_range, 1);
    return 0;
  }
  __u32 index =
      devices[device & (BLKTAPE_MAX_DEVICES - 1)].base + queue * (tags + 1) + (flush ? tags : tag);
  return bpf_map_lookup_elem(&slots, &index);
}

static __always_inline __u32 OwnerSet(__u64 bio) {
  // Bios are 256-byte aligned slab objects or are inside larger ones. The verifier only allows
  // shifting the lower half of an address.
  __u32 low = (__u32)bio;
  return (low >> 6 ^ low >> 17) & (OWNER_SETS - 1);
}

// The bio's entry in a set; without one the oldest entry, if that is wanted.
static __always_inline struct owner *EntryOf(__u64 bio, bool or_oldest) {
  __u32 index = OwnerSet(bio);
  struct owner_set *set = bpf_map_lookup_elem(&owners, &index);
  if (!set) return 0;
  int found = -1;
#pragma unroll
  for (int i = OWNER_WAYS - 1; i >= 0; --i) {
    if (set->way[i].bio == bio) found = i;
  }
  if (found < 0 && or_oldest) {
    __u64 oldest_ns = ~(__u64)0;
#pragma unroll
    for (int i = 0; i < OWNER_WAYS; ++i) {
      if (set->way[i].queue_ns >= oldest_ns) continue;
      oldest_ns = set->way[i].queue_ns;
      found = i;
    }
  }
  found = AnyOf(found);
  return found < 0 ? 0 : &set->way[found & (OWNER_WAYS - 1)];
}

// The entry of the bio at this address, if its range contains `sector`; otherwise the entry may
// belong to a bio that is gone.
static __always_inline struct owner *KnownBio(__u64 address, __u64 sector) {
  struct owner *owner = EntryOf(address, 0);
  if (!owner) return 0;
  return sector - owner->sector < owner->sectors || sector == owner->sector ? owner : 0;
}

static __always_inline struct owner *OwnerOf(struct bio *bio) {
  __u64 sector = bio->bi_iter.bi_sector;
  struct owner *owner = KnownBio((__u64)bio, sector);
  if (owner) return owner;
  // The part split off a bio was not queued itself; it points to the rest, which was.
  return KnownBio((__u64)bio->bi_private, sector);
}

static __always_inline struct thread *ThreadOf(__u32 pid) {
  __u32 slot = pid & (THREAD_SLOTS - 1);
  return bpf_map_lookup_elem(&threads, &slot);
}

// Why the current thread went on since its I/O before.
static __always_inline struct wake TakeWake(__u32 pid, __u64 queue_ns) {
  struct wake wake = {};
  struct thread *thread = ThreadOf(pid);
  if (!thread) return wake;
  if (thread->pid != pid) {
    thread->pid = pid;
    thread->wake.waker = 0;
  } else if (thread->wake.ns > thread->queued_ns) {
    wake = thread->wake;
  }
  thread->queued_ns = queue_ns;
  return wake;
}

static __always_inline __u16 ShortOf(__u64 ns) {
  __u32 shift = 0;
  for (; shift < 31 && ns >> BLKTAPE_SHORT_BITS; ++shift) ns >>= 1;
  return shift << BLKTAPE_SHORT_BITS | (ns & ((1 << BLKTAPE_SHORT_BITS) - 1));
}

static __always_inline void SetWake(struct blktape_slot *slot, const struct wake *wake) {
  slot->waker = wake->waker;
  slot->since_wake = 0;
  // Most I/Os have none.
  if (wake->waker != 0 && slot->start_ns > wake->ns) {
    slot->since_wake = ShortOf(slot->start_ns - wake->ns);
  }
}

static __always_inline struct cpu_state *ThisCpu(void) {
  __u32 zero = 0;
  return bpf_map_lookup_elem(&cpu_states, &zero);
}

// An I/O of `owner` (0: nobody's) completes here, now.
static __always_inline void CompletesHere(__u32 owner, __u64 ns) {
  struct cpu_state *cpu = ThisCpu();
  if (!cpu) return;
  cpu->owner = owner;
  cpu->completed_ns = ns;
  cpu->current = (__u32)bpf_get_current_pid_tgid();
  cpu->interrupts_then = cpu->interrupts;
}

// A thread is woken, here and now. There are many more wakes than I/Os: most are of and by threads
// that do none.
static __always_inline void Wakes(struct task_struct *task) {
  struct cpu_state *cpu = ThisCpu();
  if (!cpu) return;
  __u32 woken = (__u32)task->pid;
  __u32 pid = (__u32)bpf_get_current_pid_tgid();
  struct wake wake = {};
  if (cpu->owner != 0 && cpu->current == pid && cpu->interrupts_then == cpu->interrupts) {
    wake.ns = bpf_ktime_get_ns();
    if (wake.ns - cpu->completed_ns < COMPLETION_WAKES_NS) {
      wake.waker = cpu->owner;
    } else {
      cpu->owner = 0;
    }
  }
  if (wake.waker == 0) {
    struct thread *waker = ThreadOf(pid);
    if (cpu->interrupts || pid == 0 || !waker || waker->pid != pid) return;
    if (waker->wake.ns > waker->queued_ns) {
      wake = waker->wake;
    } else {
      wake.waker = pid;
      if (wake.ns == 0) wake.ns = bpf_ktime_get_ns();
    }
  }
  struct thread *thread = ThreadOf(woken);
  if (!thread || wake.waker == woken) return;
  if (thread->pid != woken) {
    thread->pid = woken;
    thread->queued_ns = 0;
  } else if (thread->wake.ns > wake.ns) {
    return;
  }
  thread->wake = wake;
}

static __always_inline void TellName(__u32 pid, struct blktape_counters *counter) {
  __u32 slot = pid & (NAME_SLOTS - 1);
  struct named_pid *known = bpf_map_lookup_elem(&named, &slot);
  if (!known || known->pid == pid) return;
  struct blktape_name *name = bpf_ringbuf_reserve(&names, sizeof(*name), 0);
  if (!name) {
    counter->name_ring_full++;
    return;
  }
  known->pid = pid;
  name->pid = pid;
  name->pad = 0;
  name->since_ns = known->since_ns;
  bpf_get_current_comm(name->comm, sizeof(name->comm));
  bpf_ringbuf_submit(name, BPF_RB_NO_WAKEUP);
}

// Counts what finds the ring full.
static __always_inline void Emit(const struct blktape_slot *slot, __s32 status, __u64 complete_ns) {
  __u32 cpu = bpf_get_smp_processor_id();
  struct blktape_counters *counter = Counters();
  void *ring = bpf_map_lookup_elem(&rings, &cpu);
  if (!counter) return;
  struct blktape_finished *out = ring ? bpf_ringbuf_reserve(ring, sizeof(*out), 0) : 0;
  if (!out) {
    __sync_fetch_and_add(&counter->ring_full, 1);
    return;
  }
  out->issue_ns = slot->issue_ns;
  out->start_ns = slot->start_ns;
  out->complete_ns = complete_ns;
  out->sector = slot->sector;
  out->bytes = slot->op == kFlush ? slot->asked : slot->bytes;
  out->pid = slot->pid;
  out->waker = slot->waker;
  out->since_wake = slot->since_wake;
  out->status = status;
  out->flags = slot->flags;
  out->cpu = slot->cpu;
  out->prio = slot->prio;
  out->op = slot->op;
  out->device = slot->device;
  // An interrupt in between may use the same number: then both wake.
  __u64 count = ++counter->finished;
  bool wake = (count & wake_mask) == 0;
  if (asleep) {
    asleep = 0;
    wake = 1;
  }
  bpf_ringbuf_submit(out, wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

// The same where it is rare, or in a loop: not static, the verifier reads it once, apart from its
// callers; then it must return a number, and may be given nothing for all that the verifier knows.
__attribute__((noinline)) int EmitApart(const struct blktape_slot *slot, __s32 status,
                                        __u64 complete_ns) {
  if (slot) Emit(slot, status, complete_ns);
  return 0;
}

// When the earliest of a request's bios was queued. Usually this is the first bio; others are
// rarely merged before it, so checking a few is enough.
static __always_inline __u64 EarliestNs(struct bio *first, __u64 first_ns) {
  __u64 earliest_ns = first_ns;
  struct bio *bio = first;
  for (int i = 0; i < MERGED_BIOS_LOOKED_AT; ++i) {
    bio = bio->bi_next;
    if (!bio) break;
    struct owner *owner = OwnerOf(bio);
    if (owner && owner->queue_ns < earliest_ns) earliest_ns = owner->queue_ns;
  }
  return earliest_ns;
}

static __always_inline void Issue(struct request *rq, bool again) {
  int device = Find(rq->q->disk);
  if (device < 0) return;
  __u32 opf = rq->cmd_flags;
  __u8 op = OpOf(opf);
  struct blktape_counters *counter = Counters();
  if (!counter) return;
  if (op == kUnknownOp) {
    if ((opf & 0xff) < FIRST_PASSTHROUGH_OP && !again) {
      __sync_fetch_and_add(&counter->unknown_op, 1);
    }
    return;
  }
  bool flush = op == kFlush;
  struct blktape_slot *slot = SlotOf(rq, device, flush, counter, again);
  if (!slot) return;
  __u64 address = (__u64)rq;
  __u32 incarnation = (__u32)rq->start_time_ns;
  if (again && slot->rq == address && slot->incarnation == incarnation) return;
  // A requeue empties the slot, so a request still in it is an I/O whose completion was not seen.
  // It is sent without completion and counted.
  if (slot->rq) {
    __sync_fetch_and_add(&counter->tag_reused, 1);
    EmitApart(slot, 0, 0);
  }

  __u32 pid = (__u32)bpf_get_current_pid_tgid();
  __u64 start_ns = 0;
  __u32 asked = 0;
  __u16 flags = FlagsOf(opf);
  struct wake wake = {};
  slot->prio = 0;
  if (flush) {
    __u32 index = (__u32)device;
    struct asked *pending = bpf_map_lookup_elem(&asked_flushes, &index);
    if (pending && pending->count) {
      // The next flush request serves all pending flushes. Read their data before releasing them.
      __u64 first_ns = pending->first_ns;
      __u32 first_pid = (__u32)pending->pid;
      struct wake first_wake = pending->wake;
      asked = (__u32)__sync_lock_test_and_set(&pending->count, 0);
      if (asked) {
        start_ns = first_ns;
        pid = first_pid;
        wake = first_wake;
      }
    }
    slot->sector = 0;
    slot->bytes = 0;
    // The bio asked for is sync; the request itself has PREFLUSH for every flush.
    flags = asked ? kFlagSync : kFlagDerived;
    // A derived flush belongs to a kernel worker, which has queued nothing and so has no known
    // name.
    if (!asked && want_names) TellName(pid, counter);
  } else {
    struct bio *bio = rq->bio;
    slot->sector = rq->__sector;
    slot->bytes = rq->__data_len;
    if (bio) {
      flags |= FlagsOf(bio->bi_opf);
      slot->prio = bio->bi_ioprio;
      // Scattered ranges: told one by one when they complete.
      if (op == kDiscard && bio->bi_next) slot->bytes = bio->bi_iter.bi_size;
      struct owner *owner = OwnerOf(bio);
      if (owner) {
        pid = owner->pid;
        wake = owner->wake;
        flags |= owner->flags;
        start_ns = EarliestNs(bio, owner->queue_ns);
      } else {
        // For bios queued before recording began it cannot be known.
        if (begun_ns && rq->start_time_ns >= begun_ns) {
          __sync_fetch_and_add(&counter->unstamped, 1);
        }
        if (want_names) TellName(pid, counter);  // most likely a kernel worker's
      }
    }
  }
  slot->start_ns = start_ns;
  slot->pid = pid;
  slot->cpu = bpf_get_smp_processor_id();
  slot->flags = flags;
  slot->op = op;
  slot->device = (__u8)device;
  slot->asked = asked;
  SetWake(slot, &wake);
  slot->incarnation = incarnation;
  slot->issue_ns = bpf_ktime_get_ns();
  slot->rq = address;
}

// A discard can combine separate ranges (queue/max_discard_segments): one record for each. Adjacent
// ranges are one.
static __always_inline void EmitRanges(struct blktape_slot *slot, struct bio *bio, int status,
                                       __u64 complete_ns) {
  slot->sector = bio->bi_iter.bi_sector;
  slot->bytes = bio->bi_iter.bi_size;
  for (int i = 1; i < MAX_DISCARD_RANGES; ++i) {
    bio = bio->bi_next;
    if (!bio) break;
    __u64 sector = bio->bi_iter.bi_sector;
    __u32 bytes = bio->bi_iter.bi_size;
    if (sector == slot->sector + (slot->bytes >> 9)) {
      slot->bytes += bytes;
      continue;
    }
    EmitApart(slot, status, complete_ns);
    slot->sector = sector;
    slot->bytes = bytes;
  }
  EmitApart(slot, status, complete_ns);
}

// The driver returned the request: only the next issue counts.
static __always_inline void Requeue(struct request *rq, bool again) {
  int device = Find(rq->q->disk);
  if (device < 0) return;
  __u8 op = OpOf(rq->cmd_flags);
  struct blktape_counters *counter = Counters();
  if (op == kUnknownOp || !counter) return;
  struct blktape_slot *slot = SlotOf(rq, device, op == kFlush, counter, again);
  if (slot && slot->rq == (__u64)rq) slot->rq = 0;
}

static __always_inline void Complete(struct request *rq, int status, unsigned int nr_bytes,
                                     bool again) {
  int device = Find(rq->q->disk);
  if (device < 0) return;
  __u8 op = OpOf(rq->cmd_flags);
  if (op == kUnknownOp) return;
  struct blktape_counters *counter = Counters();
  if (!counter) return;
  bool flush = op == kFlush;
  if (!flush && nr_bytes == 0 && rq->__data_len == 0) {
    // The end of a flush sequence completes the original request again: an fsync that was never
    // issued, or a flagged write whose data is already complete. A write whose slot is still
    // waiting is recognised by the address below.
    struct blktape_slot *waiting = TagOf(rq) >= 0 ? SlotOf(rq, device, flush, counter, again) : 0;
    if (!waiting || waiting->rq != (__u64)rq) return;
  }
  struct blktape_slot *slot = SlotOf(rq, device, flush, counter, again);
  if (!slot) return;
  if (slot->rq != (__u64)rq) {
    if (again) return;
    // Absent (0) if the queue keeps no statistics; a plug's time may be slightly too old, never too
    // new.
    bool since = begun_ns && rq->start_time_ns >= begun_ns;
    __sync_fetch_and_add(since ? &counter->missing_start : &counter->unknown_start, 1);
    return;
  }
  if (nr_bytes < rq->__data_len) return;  // a part; the rest follows
  __u64 complete_ns = bpf_ktime_get_ns();
  // Whose a derived flush is, nobody knows.
  CompletesHere((slot->flags & kFlagDerived) == 0 ? slot->pid : 0, complete_ns);
  if (op == kDiscard && rq->bio && rq->bio->bi_next) {
    EmitRanges(slot, rq->bio, status, complete_ns);
  } else {
    Emit(slot, status, complete_ns);
  }
  slot->rq = 0;
}

static __always_inline void CountSize(__u8 op, __u32 bytes, __u32 cpu) {
  __u32 sectors = bytes >> 9;
  if (op <= kWrite && sectors < BLKTAPE_SIZE_SLOTS) {
    struct size_counts *mine = bpf_map_lookup_elem(&sizes, &cpu);
    __u32 index = (op == kWrite ? BLKTAPE_SIZE_SLOTS : 0) + sectors;
    // The compiler knows that this is in bounds, but the verifier requires the check.
    asm volatile("" : "+r"(index));
    if (mine && index < BLKTAPE_SIZE_OPS * BLKTAPE_SIZE_SLOTS) {
      __sync_fetch_and_add(&mine->count[index], 1);
      mine->touched[index / BLKTAPE_SIZE_PART] = 1;
    }
    return;
  }
  struct blktape_size_key key = {.op = op, .bytes = bytes};
  __u64 *count = bpf_map_lookup_elem(&rare_sizes, &key);
  if (!count) {
    __u64 one = 1;
    if (bpf_map_update_elem(&rare_sizes, &key, &one, BPF_NOEXIST) == 0) return;
    count = bpf_map_lookup_elem(&rare_sizes, &key);  // another CPU may have been first
  }
  if (count) __sync_fetch_and_add(count, 1);
}

static __always_inline bool IsOwn(__u32 pid) {
  __u32 local = pid;
  if (pid_namespace_inode) {
    struct bpf_pidns_info info = {};
    if (bpf_get_ns_current_pid_tgid(pid_namespace_dev, pid_namespace_inode, &info, sizeof(info))) {
      return 0;  // of another namespace
    }
    local = info.pid;
  }
  for (int i = 0; i < BLKTAPE_OWN_PIDS; ++i) {
    if (own_pids[i] != local || local == 0) continue;
    if (pid_namespace_inode) own_pids_seen[i] = pid;
    return 1;
  }
  return 0;
}

// The same of a thread that is not the current one.
static __always_inline bool IsKnownOwn(__u32 pid) {
  for (int i = 0; i < BLKTAPE_OWN_PIDS; ++i) {
    if (pid != 0 && (pid_namespace_inode ? own_pids_seen[i] : own_pids[i]) == pid) return 1;
  }
  return 0;
}

static __always_inline struct preflush *PreflushOf(__u32 pid) {
  __u32 slot = pid & (PREFLUSH_SLOTS - 1);
  return bpf_map_lookup_elem(&preflushes, &slot);
}

// A bio with data is queued on a layer (-1: on a disk) by the current thread, who passes on at once
// what the layer sends ahead. Some layers pass a write with PREFLUSH on as it is.
static __always_inline void ExpectFlush(__u32 opf, int layer, const struct place *place) {
  __u32 pid = (__u32)bpf_get_current_pid_tgid();
  struct preflush *preflush = PreflushOf(pid);
  if (!preflush) return;
  bool comes =
      layer >= 0 && HAS(opf, __REQ_PREFLUSH) && layers[layer & (BLKTAPE_MAX_LAYERS - 1)].one_disk;
  preflush->pid = comes ? pid : 0;
  preflush->write = *place;
}

// Whether the flush that a thread passes on to a disk is the first step of a write with PREFLUSH.
static __always_inline bool IsOfWriteAbove(__u32 pid, __u64 queue_ns) {
  struct preflush *preflush = PreflushOf(pid);
  if (!preflush || preflush->pid != pid || pid == 0) return 0;
  preflush->pid = 0;
  struct origin *write = bpf_map_lookup_elem(&origins, &preflush->write);
  if (!write || write->pid != pid || queue_ns - write->queue_ns > FLUSH_FOLLOWS_NS) return 0;
  write->flushed = 1;
  return 1;
}

// A bio is queued on a layer.
static __always_inline void LayerQueue(struct bio *bio, __u32 again) {
  if (layer_count == 0) return;
  struct place place = {.dev = DevOf(bio->bi_bdev->bd_disk), .sector = bio->bi_iter.bi_sector};
  int layer = FindLayer(place.dev);
  if (layer < 0) return;
  __u32 opf = bio->bi_opf;
  __u32 bytes = bio->bi_iter.bi_size;
  // A flush has no place, and is passed on by who asked for it.
  if (bytes == 0 || OpOf(opf) == kUnknownOp) return;
  struct origin *known = bpf_map_lookup_elem(&origins, &place);
  if (known && known->bio == (__u64)bio) {
    bool seen = known->seen != 0 && known->seen <= again;
    known->seen = again == LAST_PROGRAM ? 0 : again + 1;
    if (seen) return;
    if (known->passed_on) {
      known->passed_on = 0;
      ExpectFlush(opf, layer, &place);
      return;
    }
  }
  __u32 pid = (__u32)bpf_get_current_pid_tgid();
  __u64 queue_ns = bpf_ktime_get_ns();
  struct origin origin = {.bio = (__u64)bio,
                          .queue_ns = queue_ns,
                          .pid = pid,
                          .wake = TakeWake(pid, queue_ns),
                          .seen = again == LAST_PROGRAM ? 0 : again + 1};
  bpf_map_update_elem(&origins, &place, &origin, BPF_ANY);
  ExpectFlush(opf, layer, &place);
  IsOwn(pid);  // notes what the kernel calls it
  struct blktape_counters *counter = Counters();
  if (want_names && counter) TellName(pid, counter);
}

// A bio that was queued at sector `from` of `dev` is passed on, or a part of it.
static __always_inline void Remap(struct bio *bio, __u32 dev, __u64 from, __u32 again) {
  (void)again;  // the same once more
  if (layer_count == 0 || bio->bi_iter.bi_size == 0) return;
  struct place above = {.dev = dev, .sector = from};
  struct origin *known = bpf_map_lookup_elem(&origins, &above);
  if (!known) return;
  struct origin origin = *known;
  origin.bio = (__u64)bio;
  origin.passed_on = 1;
  origin.seen = 0;
  // To a device or its partition; from a partition to its disk the bio keeps its device.
  __u32 to = bio->bi_bdev->bd_dev;
  if (to == dev) to = DevOf(bio->bi_bdev->bd_disk);
  struct place below = {.dev = to, .sector = bio->bi_iter.bi_sector};
  bpf_map_update_elem(&origins, &below, &origin, BPF_ANY);
}

// What begins at a sector, of which only the lower half is told, is passed on by itself.
static __always_inline void Split(struct bio *bio, __u32 low, __u32 again) {
  (void)again;
  if (layer_count == 0) return;
  struct place rest = {.dev = DevOf(bio->bi_bdev->bd_disk)};
  if (FindLayer(rest.dev) < 0) return;
  __u64 sector = bio->bi_iter.bi_sector;
  rest.sector = (sector & ~(__u64)0xffffffff) | low;
  if (rest.sector < sector) rest.sector += (__u64)1 << 32;
  struct origin origin = {.queue_ns = bpf_ktime_get_ns(), .pid = (__u32)bpf_get_current_pid_tgid()};
  bpf_map_update_elem(&origins, &rest, &origin, BPF_ANY);
}

static __always_inline void BioQueue(struct bio *bio, __u32 again) {
  int device = Find(bio->bi_bdev->bd_disk);
  if (device < 0) return LayerQueue(bio, again);
  __u32 opf = bio->bi_opf;
  __u8 op = OpOf(opf);
  if (op == kUnknownOp) return;
  struct blktape_counters *counter = Counters();
  if (!counter) return;
  struct owner *owner = EntryOf((__u64)bio, 1);
  if (!owner) return;
  bool known = owner->seen != 0 && owner->seen <= again && owner->bio == (__u64)bio;
  owner->seen = again == LAST_PROGRAM ? 0 : again + 1;
  if (known) return;
  __u32 cpu = bpf_get_smp_processor_id();
  __u32 pid = (__u32)bpf_get_current_pid_tgid();
  __u32 bytes = bio->bi_iter.bi_size;
  __u64 queue_ns = bpf_ktime_get_ns();
  bool preflush = HAS(opf, __REQ_PREFLUSH);
  bool is_flush = bytes == 0 && preflush;
  bool is_derived = 0;
  bool flushed = 0;
  bool counted = !IsOwn(pid);
  struct wake wake = TakeWake(pid, queue_ns);
  if (want_names) TellName(pid, counter);
  if (layer_count != 0 && is_flush) {
    is_derived = IsOfWriteAbove(pid, queue_ns);
  } else if (layer_count != 0) {
    struct place place = {.dev = DevOf(bio->bi_bdev->bd_disk), .sector = bio->bi_iter.bi_sector};
    struct origin *origin = bpf_map_lookup_elem(&origins, &place);
    if (preflush) ExpectFlush(opf, -1, &place);
    if (origin && origin->passed_on && origin->bio == (__u64)bio) {
      origin->passed_on = 0;
      pid = origin->pid;
      wake = origin->wake;
      counted = !IsKnownOwn(pid);
      flushed = origin->flushed;
      // As if nothing were between: queued before its flush.
      if (flushed) queue_ns = origin->queue_ns;
    }
  }
  owner->bio = (__u64)bio;
  owner->pid = pid;
  owner->wake = wake;
  owner->queue_ns = queue_ns;
  owner->sector = bio->bi_iter.bi_sector;
  owner->sectors = bytes >> 9;
  owner->flags = flushed ? kFlagPreflush | kFlagMapped : 0;
  if (is_flush && !is_derived) {
    __u32 index = (__u32)device;
    struct asked *pending = bpf_map_lookup_elem(&asked_flushes, &index);
    if (pending) {
      if (pending->count == 0) {
        pending->first_ns = queue_ns;
        pending->pid = pid;
        pending->wake = wake;
      }
      __sync_fetch_and_add(&pending->count, 1);
    }
    if (counted) __sync_fetch_and_add(&counter->flushes_asked, 1);
  } else if (counted && !is_flush) {
    CountSize(op, bytes, cpu);
    if (op == kWrite && (preflush || flushed || HAS(opf, __REQ_FUA))) {
      __sync_fetch_and_add(&counter->flagged_writes, 1);
    }
  }
  if (devices[device & (BLKTAPE_MAX_DEVICES - 1)].queues == 0) {
    __u64 key = (__u64)bio;
    // As with tags: a bio that is queued again has completed unseen.
    struct blktape_slot *left = bpf_map_lookup_elem(&bios, &key);
    if (left) {
      __sync_fetch_and_add(&counter->tag_reused, 1);
      EmitApart(left, 0, 0);
    }
    struct blktape_slot entry = {.rq = key,
                                 .start_ns = queue_ns,
                                 .sector = bio->bi_iter.bi_sector,
                                 .bytes = bytes,
                                 .pid = pid,
                                 .cpu = cpu,
                                 .flags = FlagsOf(opf) | owner->flags,
                                 .prio = bio->bi_ioprio,
                                 .op = is_flush ? kFlush : op,
                                 .device = (__u8)device};
    SetWake(&entry, &wake);
    if (is_derived) entry.flags |= kFlagDerived;
    if (bpf_map_update_elem(&bios, &key, &entry, BPF_ANY) != 0) {
      __sync_fetch_and_add(&counter->bio_table_full, 1);
    }
  }
}

static __always_inline void BioComplete(struct bio *bio, bool again) {
  int device = Find(bio->bi_bdev->bd_disk);
  if (device < 0 || devices[device & (BLKTAPE_MAX_DEVICES - 1)].queues != 0) return;
  struct blktape_counters *counter = Counters();
  if (!counter) return;
  __u64 key = (__u64)bio;
  struct blktape_slot *found = bpf_map_lookup_elem(&bios, &key);
  if (!found) {
    if (!again) __sync_fetch_and_add(&counter->unknown_start, 1);
    return;
  }
  __u64 complete_ns = bpf_ktime_get_ns();
  CompletesHere((found->flags & kFlagDerived) == 0 ? found->pid : 0, complete_ns);
  Emit(found, bio->bi_status, complete_ns);
  bpf_map_delete_elem(&bios, &key);
}

// The kernel does not run a program that is already running on the CPU, and only increments a
// counter. Since Linux 7.0 (a46023d5616e) tracepoint programs can be preempted, so this happens
// when tasks preempt each other. There each program has two more, called right after it, which do
// the work if the previous ones were not run. An event is missed only if all three are running.
#define PROBE(tracepoint, name, params, does, ...)                \
  PROGRAM(tracepoint, name, params, does, __VA_ARGS__, 0)         \
  PROGRAM(tracepoint, name##_again, params, does, __VA_ARGS__, 1) \
  PROGRAM(tracepoint, name##_at_last, params, does, __VA_ARGS__, LAST_PROGRAM)
#define PROGRAM(tracepoint, name, params, does, ...)              \
  SEC("?tp_btf/" #tracepoint) int BPF_PROG(name, EXPAND params) { \
    if (recording) does(__VA_ARGS__);                             \
    return 0;                                                     \
  }
#define EXPAND(...) __VA_ARGS__

PROBE(block_rq_issue, on_issue, (struct request * rq), Issue, rq)
PROBE(block_rq_requeue, on_requeue, (struct request * rq), Requeue, rq)
PROBE(block_rq_complete, on_complete, (struct request * rq, int status, unsigned int nr_bytes),
      Complete, rq, status, nr_bytes)
PROBE(block_bio_queue, on_bio_queue, (struct bio * bio), BioQueue, bio)
PROBE(block_bio_remap, on_remap, (struct bio * bio, __u32 dev, __u64 from), Remap, bio, dev, from)
PROBE(block_split, on_split, (struct bio * bio, unsigned int sector), Split, bio, sector)
// Attached only when a bio-based device is recorded.
PROBE(block_bio_complete, on_bio_complete, (struct request_queue * queue, struct bio *bio),
      BioComplete, bio)

#define MARKS(tracepoint, name, param, bit, on)                                     \
  SEC("?tp_btf/" #tracepoint) int BPF_PROG(name, param) {                           \
    struct cpu_state *cpu = ThisCpu();                                              \
    if (cpu) cpu->interrupts = on ? cpu->interrupts | bit : cpu->interrupts & ~bit; \
    return 0;                                                                       \
  }
MARKS(softirq_entry, on_softirq, unsigned int number, IN_SOFTIRQ, 1)
MARKS(softirq_exit, on_softirq_exit, unsigned int number, IN_SOFTIRQ, 0)
MARKS(hrtimer_expire_entry, on_hrtimer, void *timer, IN_HRTIMER, 1)
MARKS(hrtimer_expire_exit, on_hrtimer_exit, void *timer, IN_HRTIMER, 0)

// What completed in it woke whom it woke; what the interrupted thread does now is its own.
SEC("?tp_btf/irq_handler_exit")
int BPF_PROG(on_irq_exit, int irq) {
  struct cpu_state *cpu = ThisCpu();
  if (cpu) cpu->owner = 0;
  return 0;
}

// One that is missed leaves a wake unknown, no more.
SEC("?tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task) {
  if (recording) Wakes(task);
  return 0;
}

// The same of a new thread, by the one that made it. One that is gone may have had its id.
SEC("?tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *task) {
  struct thread *thread = ThreadOf((__u32)task->pid);
  if (thread && thread->pid == (__u32)task->pid) thread->queued_ns = thread->wake.ns = 0;
  if (recording) Wakes(task);
  return 0;
}

static __always_inline void ForgetName(struct task_struct *task) {
  __u32 pid = (__u32)task->pid;
  __u32 slot = pid & (NAME_SLOTS - 1);
  struct named_pid *known = bpf_map_lookup_elem(&named, &slot);
  if (!known) return;
  known->since_ns = bpf_ktime_get_ns();
  if (known->pid == pid) known->pid = 0;
}

// The name of a task that changes it (exec does) is sent again.
SEC("?tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task) {
  ForgetName(task);
  return 0;
}

// Likewise for a task that gets the pid of a task that is gone and keeps its parent's name.
SEC("?tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child) {
  ForgetName(child);
  return 0;
}
