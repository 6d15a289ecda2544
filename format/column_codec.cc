#include "format/column_codec.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "format/byte_planes.h"

namespace blktape {
namespace {

// Where the previous record of each stream (device, op) ended, in sectors.
class StreamEnds {
 public:
  uint64_t& operator[](const IoRecord& io) { return At(io.device, static_cast<size_t>(io.op)); }
  uint64_t& At(uint32_t device, size_t op) {
    if (device < kNear && op < kOpCount) return near_[device * kOpCount + op];
    return far_[uint64_t{device} << 8 | op];
  }

 private:
  static constexpr uint32_t kNear = 16;
  uint64_t near_[kNear * kOpCount] = {};
  std::unordered_map<uint64_t, uint64_t> far_;
};

uint64_t EndSectors(const IoRecord& io) { return io.lba->sectors + io.bytes / kSectorBytes; }

// The base of a record's `complete`, given the arrival of the previous record.
int64_t CompletionBase(const IoRecord& io, int64_t previous_arrival_ns) {
  return io.issue_ns ? *io.issue_ns : io.queue_ns.value_or(previous_arrival_ns);
}

uint64_t Difference(int64_t a, int64_t b) {
  return static_cast<uint64_t>(a) - static_cast<uint64_t>(b);
}

int64_t Sum(int64_t a, uint64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + b); }

// The columns of a batch, in the order of their field numbers.
enum ColumnId {
  kDevice,
  kOp,
  kFlags,
  kBytes,
  kLba,
  kQueue,
  kIssue,
  kComplete,
  kError,
  kPid,
  kProcess,
  kCpu,
  kMergedBios,
  kPrio,
  kOrdinal,
  kBacklog,
  kWaker,
  kSinceWake,
  kColumns
};

struct ColumnKind {
  const char* name;
  int width_bytes;
  bool of_all;  // every record has one
  bool (proto::RecordBatch::*has)() const;
  const proto::Column& (proto::RecordBatch::*get)() const;
  proto::Column* (proto::RecordBatch::*make)();
};

#define COLUMN(name, width_bytes, of_all) \
  {#name,                                 \
   width_bytes,                           \
   of_all,                                \
   &proto::RecordBatch::has_##name,       \
   &proto::RecordBatch::name,             \
   &proto::RecordBatch::mutable_##name}
constexpr std::array<ColumnKind, kColumns> kColumnKinds = {{
    COLUMN(device, 4, true),
    COLUMN(op, 1, true),
    COLUMN(flags, 4, true),
    COLUMN(bytes, 8, true),
    COLUMN(lba, 8, false),
    COLUMN(queue, 8, false),
    COLUMN(issue, 8, false),
    COLUMN(complete, 8, false),
    COLUMN(error, 4, false),
    COLUMN(pid, 4, false),
    COLUMN(process, 4, false),
    COLUMN(cpu, 4, false),
    COLUMN(merged_bios, 4, false),
    COLUMN(prio, 4, false),
    COLUMN(ordinal, 8, false),
    COLUMN(backlog, 8, false),
    COLUMN(waker, 4, false),
    COLUMN(since_wake, 8, false),
}};
#undef COLUMN

}  // namespace

class BatchEncoder::Impl {
 public:
  void Add(const IoRecord& io) {
    BLKTAPE_CHECK(count_ < kMaxBatchRecords);
    Put(kDevice, io.device);
    Put(kOp, static_cast<uint64_t>(io.op));
    Put(kFlags, io.flags);
    Put(kBytes, io.bytes);
    if (io.lba) {
      uint64_t& end = ends_[io];
      Put(kLba, ZigZag(io.lba->sectors - end));
      end = EndSectors(io);
    }
    PutTimes(io);
    if (io.error) Put(kError, *io.error);
    if (io.pid) Put(kPid, *io.pid);
    if (io.process) Put(kProcess, *io.process);
    if (io.cpu) Put(kCpu, *io.cpu);
    if (io.merged_bios) Put(kMergedBios, *io.merged_bios);
    if (io.prio) Put(kPrio, *io.prio);
    if (io.ordinal) {
      if (!base_ordinal_) base_ordinal_ = next_ordinal_ = *io.ordinal;
      Put(kOrdinal, ZigZag(*io.ordinal - next_ordinal_));
      next_ordinal_ = *io.ordinal + 1;
    }
    if (io.backlog_ns) Put(kBacklog, *io.backlog_ns);
    if (io.waker) Put(kWaker, *io.waker);
    if (io.since_wake_ns) Put(kSinceWake, *io.since_wake_ns);
    ++count_;
    if (++row_ == kRows) EndBlock();
  }

  size_t count() const { return count_; }

  void Finish(proto::RecordBatch* batch) {
    if (row_ != 0) EndBlock();
    batch->Clear();
    batch->set_count(static_cast<uint32_t>(count_));
    if (base_ns_) batch->set_base_ns(*base_ns_);
    if (base_ordinal_) batch->set_base_ordinal(*base_ordinal_);
    for (int column = 0; column < kColumns; ++column) {
      ColumnSoFar& from = columns_[column];
      const size_t there = from.values.count();
      if (there != 0) {
        proto::Column* const to = (batch->*kColumnKinds[column].make)();
        if (there < count_) PutPresent(from.present, to->mutable_present());
        from.values.Finish(to);
      }
      from.present.clear();
    }
    count_ = 0;
    ends_ = StreamEnds();
    base_ns_.reset();
    base_ordinal_.reset();
  }

 private:
  // The values of this many records are collected, with a bit each for presence, and then split
  // into planes while they are in the cache.
  static constexpr size_t kRows = 64;
  struct Block {
    uint64_t present[kColumns] = {};
    uint64_t values[kColumns][kRows];
  };
  struct ColumnSoFar {
    std::vector<uint64_t> present;  // a word a block
    PlaneWriter values;
  };

  void EndBlock() {
    const uint64_t all = ~uint64_t{0} >> (kRows - row_);
    for (int column = 0; column < kColumns; ++column) {
      uint64_t& present = block_.present[column];
      uint64_t* const values = block_.values[column];
      columns_[column].present.push_back(present);
      size_t there = row_;
      if (present != all) {
        there = 0;
        for (; present != 0; present &= present - 1) {
          values[there++] = values[std::countr_zero(present)];
        }
      }
      if (there != 0) columns_[column].values.Add(std::span(values, there));
      present = 0;
    }
    row_ = 0;
  }

  void Put(ColumnId column, uint64_t value) {
    block_.present[column] |= uint64_t{1} << row_;
    block_.values[column][row_] = value;
  }

  void PutTimes(const IoRecord& io) {
    // The first time of the batch, so that its number is small too.
    const std::optional<int64_t> arrival_ns = io.arrival_ns();
    if (!base_ns_) {
      base_ns_ = arrival_ns ? arrival_ns : io.complete_ns;
      previous_ns_ = base_ns_.value_or(0);
    }
    if (io.queue_ns) Put(kQueue, ZigZag(Difference(*io.queue_ns, previous_ns_)));
    if (io.issue_ns) {
      Put(kIssue, ZigZag(Difference(*io.issue_ns, io.queue_ns.value_or(previous_ns_))));
    }
    if (io.complete_ns) {
      Put(kComplete, ZigZag(Difference(*io.complete_ns, CompletionBase(io, previous_ns_))));
    }
    previous_ns_ = arrival_ns.value_or(previous_ns_);
  }

  // A bit a record, first record lowest; what fills the last byte is 0.
  void PutPresent(const std::vector<uint64_t>& words, std::string* present) const {
    present->resize((count_ + 7) / 8);
    for (size_t i = 0; i < present->size(); ++i) {
      (*present)[i] = static_cast<char>(words[i * 8 / kRows] >> (i * 8 % kRows));
    }
  }

  Block block_;
  size_t row_ = 0;  // of block_: the next record's
  std::array<ColumnSoFar, kColumns> columns_;
  size_t count_ = 0;
  StreamEnds ends_;
  std::optional<int64_t> base_ns_;
  int64_t previous_ns_ = 0;  // arrival of the record before that has one
  std::optional<uint64_t> base_ordinal_;
  uint64_t next_ordinal_ = 0;
};

class BatchDecoder::Impl {
 public:
  Status Begin(const proto::RecordBatch& batch) {
    const Status status = BeginColumns(batch);
    if (!status.ok()) Drop();
    return status;
  }

  uint64_t devices() const { return devices_; }
  void Drop() { left_ = 0; }

  uint64_t unknown_ops() const { return unknown_ops_; }

  void Take(std::vector<IoRecord>* records) {
    do {
      TakeRows(records);
      if (unknown_ops_ == 0) return;
      std::erase_if(*records,
                    [](const IoRecord& io) { return static_cast<int>(io.op) >= kOpCount; });
    } while (records->empty() && left_ > 0);
  }

  void TakeAll(uint16_t fields, RecordColumns* to) {
    to->count = 0;
    if (unknown_ops_ > 0) {
      std::vector<IoRecord> records;
      for (Take(&records); !records.empty(); Take(&records)) {
        for (const IoRecord& io : records) to->Append(io);
      }
      return;
    }
    fields |= RecordColumns::kLba | RecordColumns::kQueue | RecordColumns::kIssue |
              RecordColumns::kComplete;
    to->Reserve(left_, fields);
    const uint16_t of_every = OfEvery(fields);
    while (left_ > 0) {
      const size_t count = std::min(left_, kBlockRows);
      TakeBlock(to->count, count, fields, of_every, to);
      to->count += count;
      row_ += count;
      left_ -= count;
    }
  }

 private:
  // So many that what is worked on stays in the nearest cache. They begin at a byte of `present`.
  static constexpr size_t kBlockRows = 512;
  static_assert(kBlockRows % 8 == 0);

  // The values of the next `count` records to where these are in `to`. Of a column that only some
  // records have, their bits of `field` are set.
  template <typename Value>
  void TakeColumn(ColumnId id, uint16_t field, size_t count, uint16_t* present, Value* to) {
    ColumnLeft& column = columns_[id];
    if (!column.there) return;
    if (column.present == nullptr) {
      column.values.TakeAs(std::span(to, count));
      return;
    }
    std::array<uint16_t, kBlockRows> of;
    size_t there = 0;
    for (size_t i = 0; i < count; i += 8) {
      auto bits = static_cast<uint8_t>((*column.present)[(row_ + i) / 8]);
      for (; bits != 0; bits &= bits - 1) {
        of[there++] = static_cast<uint16_t>(i + static_cast<size_t>(std::countr_zero(bits)));
      }
    }
    column.values.Take(std::span(block_).first(there));
    for (size_t i = 0; i < there; ++i) {
      to[of[i]] = static_cast<Value>(block_[i]);
      present[of[i]] |= field;
    }
  }

  struct OptionalColumn {
    ColumnId id;
    RecordColumns::Field field;
  };
  static constexpr std::array<OptionalColumn, 14> kOptional = {{
      {kLba, RecordColumns::kLba},
      {kQueue, RecordColumns::kQueue},
      {kIssue, RecordColumns::kIssue},
      {kComplete, RecordColumns::kComplete},
      {kError, RecordColumns::kError},
      {kPid, RecordColumns::kPid},
      {kProcess, RecordColumns::kProcess},
      {kCpu, RecordColumns::kCpu},
      {kMergedBios, RecordColumns::kMergedBios},
      {kPrio, RecordColumns::kPrio},
      {kOrdinal, RecordColumns::kOrdinal},
      {kBacklog, RecordColumns::kBacklog},
      {kWaker, RecordColumns::kWaker},
      {kSinceWake, RecordColumns::kSinceWake},
  }};

  // Bits of the fields, of those wanted, that every record of the batch has.
  uint16_t OfEvery(uint16_t fields) const {
    uint16_t every = 0;
    for (const OptionalColumn& one : kOptional) {
      const ColumnLeft& column = columns_[one.id];
      if ((fields & one.field) != 0 && column.OfEvery()) every |= one.field;
    }
    return every;
  }

  void TakeBlock(size_t at, size_t count, uint16_t fields, uint16_t of_every, RecordColumns* to) {
    uint16_t* const present = &to->present[at];
    std::fill_n(present, count, of_every);
    const auto take = [&](ColumnId id, uint16_t field, auto* column) {
      TakeColumn(id, field, count, present, column->data() + at);
    };
    take(kDevice, 0, &to->device);
    take(kOp, 0, &to->op);
    take(kFlags, 0, &to->flags);
    take(kBytes, 0, &to->bytes);
    take(kLba, RecordColumns::kLba, &to->lba_sectors);
    for (size_t i = at; i < at + count; ++i) {
      if (!to->Has(i, RecordColumns::kLba)) continue;
      uint64_t& end = ends_.At(to->device[i], to->op[i]);
      to->lba_sectors[i] = end + UnZigZag(to->lba_sectors[i]);
      end = to->lba_sectors[i] + to->bytes[i] / kSectorBytes;
    }
    take(kQueue, RecordColumns::kQueue, &to->queue_ns);
    take(kIssue, RecordColumns::kIssue, &to->issue_ns);
    take(kComplete, RecordColumns::kComplete, &to->complete_ns);
    DecodeTimes(at, count, to);
    const auto plain = [&](ColumnId id, RecordColumns::Field field, auto* column) {
      if ((fields & field) != 0) take(id, field, column);
    };
    plain(kError, RecordColumns::kError, &to->error);
    plain(kPid, RecordColumns::kPid, &to->pid);
    plain(kProcess, RecordColumns::kProcess, &to->process);
    plain(kCpu, RecordColumns::kCpu, &to->cpu);
    plain(kMergedBios, RecordColumns::kMergedBios, &to->merged_bios);
    plain(kPrio, RecordColumns::kPrio, &to->prio);
    plain(kOrdinal, RecordColumns::kOrdinal, &to->ordinal);
    if ((fields & RecordColumns::kOrdinal) != 0 && columns_[kOrdinal].there) {
      for (size_t i = at; i < at + count; ++i) {
        if (!to->Has(i, RecordColumns::kOrdinal)) continue;
        to->ordinal[i] = next_ordinal_ + UnZigZag(to->ordinal[i]);
        next_ordinal_ = to->ordinal[i] + 1;
      }
    }
    plain(kBacklog, RecordColumns::kBacklog, &to->backlog_ns);
    plain(kWaker, RecordColumns::kWaker, &to->waker);
    plain(kSinceWake, RecordColumns::kSinceWake, &to->since_wake_ns);
  }

  // As PutTimes.
  void DecodeTimes(size_t at, size_t count, RecordColumns* to) {
    int64_t* const queue_ns = &to->queue_ns[at];
    int64_t* const issue_ns = &to->issue_ns[at];
    int64_t* const complete_ns = &to->complete_ns[at];
    const auto coded = [](int64_t value) { return UnZigZag(static_cast<uint64_t>(value)); };
    int64_t previous_ns = previous_ns_;
    if (columns_[kQueue].OfEvery() && columns_[kIssue].OfEvery() && columns_[kComplete].OfEvery()) {
      for (size_t i = 0; i < count; ++i) {
        previous_ns = queue_ns[i] = Sum(previous_ns, coded(queue_ns[i]));
        issue_ns[i] = Sum(previous_ns, coded(issue_ns[i]));
        complete_ns[i] = Sum(issue_ns[i], coded(complete_ns[i]));
      }
      previous_ns_ = previous_ns;
      return;
    }
    for (size_t i = 0; i < count; ++i) {
      const uint16_t has = to->present[at + i];
      int64_t base_ns = previous_ns;
      if ((has & RecordColumns::kQueue) != 0) {
        previous_ns = base_ns = queue_ns[i] = Sum(base_ns, coded(queue_ns[i]));
      }
      if ((has & RecordColumns::kIssue) != 0) {
        base_ns = issue_ns[i] = Sum(base_ns, coded(issue_ns[i]));
        if ((has & RecordColumns::kQueue) == 0) previous_ns = base_ns;
      }
      if ((has & RecordColumns::kComplete) != 0) {
        complete_ns[i] = Sum(base_ns, coded(complete_ns[i]));
      }
    }
    previous_ns_ = previous_ns;
  }

  void TakeRows(std::vector<IoRecord>* records) {
    const size_t count = std::min(left_, kRows);
    left_ -= count;
    records->assign(blank_.begin(), blank_.begin() + static_cast<ptrdiff_t>(count));
    if (count == 0) return;
    const std::span<IoRecord> to(*records);
    Put(kDevice, to, [](IoRecord& io, uint64_t v) { io.device = static_cast<uint32_t>(v); });
    Put(kOp, to, [](IoRecord& io, uint64_t v) { io.op = static_cast<Op>(v); });
    Put(kFlags, to, [](IoRecord& io, uint64_t v) { io.flags = static_cast<uint32_t>(v); });
    Put(kBytes, to, [](IoRecord& io, uint64_t v) { io.bytes = v; });
    Put(kLba, to, [this](IoRecord& io, uint64_t v) {
      uint64_t& end = ends_[io];
      io.lba = Lba(end + UnZigZag(v));
      end = EndSectors(io);
    });
    PutTimes(to);
    PutPlain(kError, to, &IoRecord::error);
    PutPlain(kPid, to, &IoRecord::pid);
    PutPlain(kProcess, to, &IoRecord::process);
    PutPlain(kCpu, to, &IoRecord::cpu);
    PutPlain(kMergedBios, to, &IoRecord::merged_bios);
    PutPlain(kPrio, to, &IoRecord::prio);
    Put(kOrdinal, to, [this](IoRecord& io, uint64_t v) {
      io.ordinal = next_ordinal_ + UnZigZag(v);
      next_ordinal_ = *io.ordinal + 1;
    });
    Put(kBacklog, to, [](IoRecord& io, uint64_t v) { io.backlog_ns = v; });
    PutPlain(kWaker, to, &IoRecord::waker);
    Put(kSinceWake, to, [](IoRecord& io, uint64_t v) { io.since_wake_ns = v; });
    row_ += count;
  }

  static constexpr size_t kRows = 128;
  static_assert(kRows % 8 == 0);  // they begin at a byte of `present`
  struct ColumnLeft {
    bool there = false;
    const std::string* present = nullptr;  // null: of every record
    PlaneReader values;
    bool OfEvery() const { return there && present == nullptr; }
  };

  Status BeginColumns(const proto::RecordBatch& batch) {
    if (batch.count() > kMaxBatchRecords) {
      return Status(StatusCode::kDataLoss, "a batch of " + std::to_string(batch.count()) +
                                               " records: more than the format allows");
    }
    left_ = batch.count();
    row_ = 0;
    ends_ = StreamEnds();
    previous_ns_ = batch.base_ns();
    next_ordinal_ = batch.base_ordinal();
    for (int id = 0; id < kColumns; ++id) {
      const ColumnKind& kind = kColumnKinds[id];
      ColumnLeft& column = columns_[id];
      column = {};
      if (const char* const what = BeginColumn(kind, batch, &column)) {
        return Status(StatusCode::kDataLoss, std::string("column ") + kind.name + ": " + what);
      }
    }
    devices_ = left_ == 0 ? 0 : Largest(columns_[kDevice].values) + 1;
    const auto is_unknown = [](uint64_t op) { return op >= kOpCount; };
    unknown_ops_ = Count(columns_[kOp].values, is_unknown);
    return OkStatus();
  }

  // Null, or what is wrong with it.
  const char* BeginColumn(const ColumnKind& kind, const proto::RecordBatch& batch,
                          ColumnLeft* column) const {
    column->there = (batch.*kind.has)();
    const proto::Column& from = (batch.*kind.get)();
    if (kind.of_all && (!column->there || !from.present().empty())) {
      column->there = false;
      return left_ == 0 ? nullptr : "not there for every record";
    }
    if (!column->there) return nullptr;
    if (from.present().empty()) {
      return column->values.Begin(from, left_, kind.width_bytes)
                 ? nullptr
                 : "its planes do not fit the count";
    }
    column->present = &from.present();
    const std::string& present = from.present();
    if (present.size() != (left_ + 7) / 8) return "bitmap of a wrong size";
    const size_t tail_bits = left_ % 8;
    if (tail_bits != 0 && (static_cast<uint8_t>(present.back()) >> tail_bits) != 0) {
      return "bitmap names records that are not there";
    }
    size_t count = 0;
    for (const char byte : present) count += std::popcount(static_cast<uint8_t>(byte));
    return column->values.Begin(from, count, kind.width_bytes) ? nullptr
                                                               : "its planes do not fit the bitmap";
  }

  // Of what is left in a copy of `values`.
  template <typename Is>
  uint64_t Count(PlaneReader values, Is is) {
    uint64_t count = 0;
    while (values.left() != 0) {
      const std::span<uint64_t> some = std::span(values_).first(std::min(values.left(), kRows));
      values.Take(some);
      count += static_cast<uint64_t>(std::ranges::count_if(some, is));
    }
    return count;
  }
  uint64_t Largest(PlaneReader values) {
    uint64_t largest = 0;
    while (values.left() != 0) {
      const std::span<uint64_t> some = std::span(values_).first(std::min(values.left(), kRows));
      values.Take(some);
      largest = std::max(largest, *std::ranges::max_element(some));
    }
    return largest;
  }

  // Hands the values of a column to `set`, with the record each is of.
  template <typename Set>
  void Put(ColumnId id, std::span<IoRecord> records, Set set) {
    ColumnLeft& column = columns_[id];
    if (!column.there) return;
    if (column.present == nullptr) {
      column.values.Take(std::span(values_).first(records.size()));
      for (size_t i = 0; i < records.size(); ++i) set(records[i], values_[i]);
      return;
    }
    size_t there = 0;
    std::array<IoRecord*, kRows> of;
    for (size_t i = 0; i < records.size(); i += 8) {
      auto bits = static_cast<uint8_t>((*column.present)[(row_ + i) / 8]);
      for (; bits != 0; bits &= bits - 1) of[there++] = &records[i + std::countr_zero(bits)];
    }
    column.values.Take(std::span(values_).first(there));
    for (size_t i = 0; i < there; ++i) set(*of[i], values_[i]);
  }

  void PutPlain(ColumnId id, std::span<IoRecord> records,
                std::optional<uint32_t> IoRecord::* field) {
    Put(id, records, [field](IoRecord& io, uint64_t v) { io.*field = static_cast<uint32_t>(v); });
  }

  // Coded values go into the fields first: each needs the others' presence to be understood.
  void PutTimes(std::span<IoRecord> records) {
    const auto store = [](std::optional<int64_t> IoRecord::* field) {
      return [field](IoRecord& io, uint64_t v) { io.*field = static_cast<int64_t>(UnZigZag(v)); };
    };
    Put(kQueue, records, store(&IoRecord::queue_ns));
    Put(kIssue, records, store(&IoRecord::issue_ns));
    Put(kComplete, records, store(&IoRecord::complete_ns));
    for (IoRecord& io : records) {
      if (io.queue_ns) io.queue_ns = Sum(previous_ns_, static_cast<uint64_t>(*io.queue_ns));
      if (io.issue_ns) {
        io.issue_ns = Sum(io.queue_ns.value_or(previous_ns_), static_cast<uint64_t>(*io.issue_ns));
      }
      if (io.complete_ns) {
        io.complete_ns =
            Sum(CompletionBase(io, previous_ns_), static_cast<uint64_t>(*io.complete_ns));
      }
      previous_ns_ = io.arrival_ns().value_or(previous_ns_);
    }
  }

  // Copied from memory as a whole: constructing an empty record field by field costs as much as
  // filling it.
  const std::vector<IoRecord> blank_ = std::vector<IoRecord>(kRows);
  std::array<ColumnLeft, kColumns> columns_;
  size_t left_ = 0;  // records not yet taken
  size_t row_ = 0;   // the next one's
  uint64_t devices_ = 0;
  uint64_t unknown_ops_ = 0;
  StreamEnds ends_;
  int64_t previous_ns_ = 0;  // arrival of the record before that has one
  uint64_t next_ordinal_ = 0;
  std::array<uint64_t, kRows> values_;      // scratch
  std::array<uint64_t, kBlockRows> block_;  // likewise
};

BatchEncoder::BatchEncoder() : impl_(std::make_unique<Impl>()) {}
BatchEncoder::~BatchEncoder() = default;
void BatchEncoder::Add(const IoRecord& io) { impl_->Add(io); }
size_t BatchEncoder::count() const { return impl_->count(); }
void BatchEncoder::Finish(proto::RecordBatch* batch) { impl_->Finish(batch); }

void EncodeBatch(std::span<const IoRecord> records, proto::RecordBatch* batch) {
  BatchEncoder encoder;
  for (const IoRecord& io : records) encoder.Add(io);
  encoder.Finish(batch);
}

BatchDecoder::BatchDecoder() : impl_(std::make_unique<Impl>()) {}
BatchDecoder::~BatchDecoder() = default;
Status BatchDecoder::Begin(const proto::RecordBatch& batch) { return impl_->Begin(batch); }
uint64_t BatchDecoder::devices() const { return impl_->devices(); }
uint64_t BatchDecoder::unknown_ops() const { return impl_->unknown_ops(); }
void BatchDecoder::Take(std::vector<IoRecord>* records) { impl_->Take(records); }
void BatchDecoder::TakeAll(uint16_t fields, RecordColumns* columns) {
  impl_->TakeAll(fields, columns);
}
void BatchDecoder::Drop() { impl_->Drop(); }

Status DecodeBatch(const proto::RecordBatch& batch, std::vector<IoRecord>* records) {
  BatchDecoder decoder;
  records->clear();
  RETURN_IF_ERROR(decoder.Begin(batch));
  std::vector<IoRecord> some;
  for (decoder.Take(&some); !some.empty(); decoder.Take(&some)) {
    records->insert(records->end(), some.begin(), some.end());
  }
  return OkStatus();
}

std::vector<size_t> PlaneEnds(const proto::RecordBatch& batch) {
  using google::protobuf::io::CodedOutputStream;
  std::vector<size_t> ends;
  size_t at = 1 + CodedOutputStream::VarintSize32(batch.count());
  int field = proto::RecordBatch::kDeviceFieldNumber;
  for (const ColumnKind& kind : kColumnKinds) {
    const int tag_bytes = field < 16 ? 1 : 2;
    // Between the column before and this one lie the bases, in the order of field numbers.
    if (++field == proto::RecordBatch::kBaseNsFieldNumber + 1) {
      if (batch.base_ns() != 0) at += 2 + sizeof(uint64_t);
      if (batch.base_ordinal() != 0) {
        at += 2 + CodedOutputStream::VarintSize64(batch.base_ordinal());
      }
    }
    if (!(batch.*kind.has)()) continue;
    const proto::Column& column = (batch.*kind.get)();
    const size_t bytes = column.ByteSizeLong();
    at += tag_bytes + CodedOutputStream::VarintSize64(bytes) + bytes;
    const size_t planes = std::popcount(column.plane_mask());
    const size_t plane_bytes = planes == 0 ? 0 : column.planes().size() / planes;
    for (size_t left = planes; left > 0; --left) ends.push_back(at - (left - 1) * plane_bytes);
  }
  return ends;
}

}  // namespace blktape
