#include "format/column_codec.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <limits>
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
  uint64_t& operator[](const IoRecord& io) {
    const size_t op = static_cast<size_t>(io.op);
    if (io.device < kNear) return near_[io.device * kOpCount + op];
    return far_[uint64_t{io.device} * kOpCount + op];
  }

 private:
  static constexpr uint32_t kNear = 16;
  uint64_t near_[kNear * kOpCount] = {};
  std::unordered_map<uint64_t, uint64_t> far_;
};

uint64_t EndSectors(const IoRecord& io) { return io.lba->sectors + io.bytes / kSectorBytes; }

// What `complete` of a record is counted from, given the arrival of the record before.
int64_t CompletionBase(const IoRecord& io, int64_t previous_arrival_ns) {
  return io.issue_ns ? *io.issue_ns : io.queue_ns.value_or(previous_arrival_ns);
}

uint64_t Difference(int64_t a, int64_t b) {
  return static_cast<uint64_t>(a) - static_cast<uint64_t>(b);
}

int64_t Sum(int64_t a, uint64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + b); }

Status Bad(const char* column, const char* what) {
  return Status(StatusCode::kDataLoss, std::string("column ") + column + ": " + what);
}

class Decoder {
 public:
  Decoder(const proto::RecordBatch& batch, std::vector<IoRecord>* records)
      : batch_(batch), records_(*records) {}

  Status Run() {
    if (batch_.count() > kMaxBatchRecords) {
      return Status(StatusCode::kDataLoss, "a batch of " + std::to_string(batch_.count()) +
                                               " records: more than the format allows");
    }
    records_.assign(batch_.count(), IoRecord());
    RETURN_IF_ERROR(GetAll("device", batch_.has_device(), batch_.device(), 4,
                           [](IoRecord& io, uint64_t v) { io.device = static_cast<uint32_t>(v); }));
    RETURN_IF_ERROR(GetOp());
    RETURN_IF_ERROR(GetAll("flags", batch_.has_flags(), batch_.flags(), 4,
                           [](IoRecord& io, uint64_t v) { io.flags = static_cast<uint32_t>(v); }));
    RETURN_IF_ERROR(GetAll("bytes", batch_.has_bytes(), batch_.bytes(), 8,
                           [](IoRecord& io, uint64_t v) { io.bytes = v; }));
    RETURN_IF_ERROR(GetLba());
    RETURN_IF_ERROR(GetTimes());
    RETURN_IF_ERROR(GetPlain("error", batch_.has_error(), batch_.error(), &IoRecord::error));
    RETURN_IF_ERROR(GetPlain("pid", batch_.has_pid(), batch_.pid(), &IoRecord::pid));
    RETURN_IF_ERROR(
        GetPlain("process", batch_.has_process(), batch_.process(), &IoRecord::process));
    RETURN_IF_ERROR(GetPlain("cpu", batch_.has_cpu(), batch_.cpu(), &IoRecord::cpu));
    RETURN_IF_ERROR(GetPlain("merged_bios", batch_.has_merged_bios(), batch_.merged_bios(),
                             &IoRecord::merged_bios));
    RETURN_IF_ERROR(GetPlain("prio", batch_.has_prio(), batch_.prio(), &IoRecord::prio));
    return GetOrdinal();
  }

 private:
  // Reads a column that every record has; `set` takes record and value.
  template <typename Set>
  Status GetAll(const char* name, bool there, const proto::Column& column, int width_bytes,
                Set set) {
    if (!there || !column.present().empty()) {
      return records_.empty() ? OkStatus() : Bad(name, "not there for every record");
    }
    if (!GetPlanes(column, records_.size(), width_bytes, &values_)) {
      return Bad(name, "its planes do not fit the count");
    }
    for (size_t i = 0; i < records_.size(); ++i) set(records_[i], values_[i]);
    return OkStatus();
  }

  // Reads a column that some records have: `set` takes record and value of those.
  template <typename Set>
  Status GetSome(const char* name, bool there, const proto::Column& column, int width_bytes,
                 Set set) {
    if (!there) return OkStatus();
    if (column.present().empty()) return GetAll(name, there, column, width_bytes, set);
    const std::string& present = column.present();
    if (present.size() != (records_.size() + 7) / 8) return Bad(name, "bitmap of a wrong size");
    size_t count = 0;
    for (const char byte : present) count += std::popcount(static_cast<uint8_t>(byte));
    const size_t tail_bits = records_.size() % 8;
    if (tail_bits != 0 && (static_cast<uint8_t>(present.back()) >> tail_bits) != 0) {
      return Bad(name, "bitmap names records that are not there");
    }
    if (!GetPlanes(column, count, width_bytes, &values_)) {
      return Bad(name, "its planes do not fit the bitmap");
    }
    size_t next = 0;
    for (size_t i = 0; i < records_.size(); ++i) {
      if ((present[i / 8] >> (i % 8)) & 1) set(records_[i], values_[next++]);
    }
    return OkStatus();
  }

  Status GetPlain(const char* name, bool there, const proto::Column& column,
                  std::optional<uint32_t> IoRecord::* field) {
    return GetSome(name, there, column, 4,
                   [field](IoRecord& io, uint64_t v) { io.*field = static_cast<uint32_t>(v); });
  }

  Status GetOp() {
    uint64_t largest = 0;
    RETURN_IF_ERROR(
        GetAll("op", batch_.has_op(), batch_.op(), 1, [&largest](IoRecord& io, uint64_t v) {
          largest = v > largest ? v : largest;
          io.op = static_cast<Op>(v);
        }));
    if (largest >= kOpCount) return Bad("op", "an operation this format version does not have");
    return OkStatus();
  }

  Status GetLba() {
    StreamEnds ends;
    return GetSome("lba", batch_.has_lba(), batch_.lba(), 8, [&ends](IoRecord& io, uint64_t v) {
      uint64_t& end = ends[io];
      io.lba = Lba(end + UnZigZag(v));
      end = EndSectors(io);
    });
  }

  // Coded values go into the fields first: each needs the others' presence to be understood.
  Status GetTimes() {
    const auto store = [](std::optional<int64_t> IoRecord::* field) {
      return [field](IoRecord& io, uint64_t v) { io.*field = static_cast<int64_t>(UnZigZag(v)); };
    };
    RETURN_IF_ERROR(
        GetSome("queue", batch_.has_queue(), batch_.queue(), 8, store(&IoRecord::queue_ns)));
    RETURN_IF_ERROR(
        GetSome("issue", batch_.has_issue(), batch_.issue(), 8, store(&IoRecord::issue_ns)));
    RETURN_IF_ERROR(GetSome("complete", batch_.has_complete(), batch_.complete(), 8,
                            store(&IoRecord::complete_ns)));
    int64_t previous = batch_.base_ns();
    for (IoRecord& io : records_) {
      if (io.queue_ns) io.queue_ns = Sum(previous, static_cast<uint64_t>(*io.queue_ns));
      if (io.issue_ns) {
        io.issue_ns = Sum(io.queue_ns.value_or(previous), static_cast<uint64_t>(*io.issue_ns));
      }
      if (io.complete_ns) {
        io.complete_ns = Sum(CompletionBase(io, previous), static_cast<uint64_t>(*io.complete_ns));
      }
      previous = io.arrival_ns().value_or(previous);
    }
    return OkStatus();
  }

  Status GetOrdinal() {
    uint64_t expected = batch_.base_ordinal();
    return GetSome("ordinal", batch_.has_ordinal(), batch_.ordinal(), 8,
                   [&expected](IoRecord& io, uint64_t v) {
                     io.ordinal = expected + UnZigZag(v);
                     expected = *io.ordinal + 1;
                   });
  }

  const proto::RecordBatch& batch_;
  std::vector<IoRecord>& records_;
  std::vector<uint64_t> values_;
};

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
  kColumns
};

constexpr std::array<proto::Column* (proto::RecordBatch::*)(), kColumns> kMakeColumn = {
    &proto::RecordBatch::mutable_device,      &proto::RecordBatch::mutable_op,
    &proto::RecordBatch::mutable_flags,       &proto::RecordBatch::mutable_bytes,
    &proto::RecordBatch::mutable_lba,         &proto::RecordBatch::mutable_queue,
    &proto::RecordBatch::mutable_issue,       &proto::RecordBatch::mutable_complete,
    &proto::RecordBatch::mutable_error,       &proto::RecordBatch::mutable_pid,
    &proto::RecordBatch::mutable_process,     &proto::RecordBatch::mutable_cpu,
    &proto::RecordBatch::mutable_merged_bios, &proto::RecordBatch::mutable_prio,
    &proto::RecordBatch::mutable_ordinal,
};

}  // namespace

class BatchEncoder::Impl {
 public:
  void Add(const IoRecord& io) {
    BLKTAPE_CHECK(count_ < kMaxBatchRecords);
    row_ = count_ % kRows;
    if (row_ == 0) BeginBlock();
    ++count_;
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
  }

  size_t count() const { return count_; }

  void Finish(proto::RecordBatch* batch) {
    batch->Clear();
    batch->set_count(static_cast<uint32_t>(count_));
    if (base_ns_) batch->set_base_ns(*base_ns_);
    if (base_ordinal_) batch->set_base_ordinal(*base_ordinal_);
    values_.resize(count_);
    for (int column = 0; column < kColumns; ++column) {
      const size_t there = Gather(column);
      if (there == 0) continue;
      proto::Column* const to = (batch->*kMakeColumn[column])();
      if (there < count_) PutPresent(column, to->mutable_present());
      PutPlanes(std::span(values_).first(there), to);
    }
    count_ = 0;
    ends_ = StreamEnds();
    base_ns_.reset();
    base_ordinal_.reset();
  }

 private:
  // The values of a block's records lie together, a bit each says which are there. So a record
  // touches few places, and what is read back is read from one end to the other.
  static constexpr size_t kRows = 64;
  struct Block {
    uint64_t present[kColumns];
    uint64_t values[kColumns][kRows];
  };

  void BeginBlock() {
    const size_t index = count_ / kRows;
    if (index == blocks_.size()) blocks_.emplace_back();
    block_ = &blocks_[index];
    std::fill_n(block_->present, kColumns, 0);
  }

  void Put(ColumnId column, uint64_t value) {
    block_->present[column] |= uint64_t{1} << row_;
    block_->values[column][row_] = value;
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

  // Puts the values of `column` into values_; how many there are.
  size_t Gather(int column) {
    size_t there = 0;
    for (size_t begin = 0; begin < count_; begin += kRows) {
      const Block& block = blocks_[begin / kRows];
      const uint64_t* const values = block.values[column];
      uint64_t present = block.present[column];
      if (present == ~uint64_t{0}) {
        std::copy_n(values, kRows, &values_[there]);
        there += kRows;
        continue;
      }
      for (; present != 0; present &= present - 1)
        values_[there++] = values[std::countr_zero(present)];
    }
    return there;
  }

  // A bit a record, first record lowest; what fills the last byte is 0.
  void PutPresent(int column, std::string* present) const {
    present->resize((count_ + 7) / 8);
    for (size_t i = 0; i < present->size(); ++i) {
      const uint64_t bits = blocks_[i * 8 / kRows].present[column];
      (*present)[i] = static_cast<char>(bits >> (i * 8 % kRows));
    }
  }

  std::deque<Block> blocks_;  // never moves; those beyond count_ are of a batch before
  Block* block_ = nullptr;    // of the record being added
  size_t row_ = 0;            // its place there
  size_t count_ = 0;
  StreamEnds ends_;
  std::optional<int64_t> base_ns_;
  int64_t previous_ns_ = 0;  // arrival of the record before that has one
  std::optional<uint64_t> base_ordinal_;
  uint64_t next_ordinal_ = 0;
  std::vector<uint64_t> values_;  // scratch, one a record
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

Status DecodeBatch(const proto::RecordBatch& batch, std::vector<IoRecord>* records) {
  return Decoder(batch, records).Run();
}

std::vector<size_t> PlaneEnds(const proto::RecordBatch& batch) {
  using google::protobuf::io::CodedOutputStream;
  const std::pair<bool, const proto::Column*> columns[] = {
      {batch.has_device(), &batch.device()},
      {batch.has_op(), &batch.op()},
      {batch.has_flags(), &batch.flags()},
      {batch.has_bytes(), &batch.bytes()},
      {batch.has_lba(), &batch.lba()},
      {batch.has_queue(), &batch.queue()},
      {batch.has_issue(), &batch.issue()},
      {batch.has_complete(), &batch.complete()},
      {batch.has_error(), &batch.error()},
      {batch.has_pid(), &batch.pid()},
      {batch.has_process(), &batch.process()},
      {batch.has_cpu(), &batch.cpu()},
      {batch.has_merged_bios(), &batch.merged_bios()},
      {batch.has_prio(), &batch.prio()},
      {batch.has_ordinal(), &batch.ordinal()},
  };
  std::vector<size_t> ends;
  size_t at = 1 + CodedOutputStream::VarintSize32(batch.count());
  int field = proto::RecordBatch::kDeviceFieldNumber;
  for (const auto& [there, column] : columns) {
    const int tag_bytes = field++ < 16 ? 1 : 2;
    if (!there) continue;
    const size_t bytes = column->ByteSizeLong();
    at += tag_bytes + CodedOutputStream::VarintSize64(bytes) + bytes;
    const size_t planes = std::popcount(column->plane_mask());
    const size_t plane_bytes = planes == 0 ? 0 : column->planes().size() / planes;
    for (size_t left = planes; left > 0; --left) ends.push_back(at - (left - 1) * plane_bytes);
  }
  return ends;
}

}  // namespace blktape
