#include "format/column_codec.h"

#include <google/protobuf/io/coded_stream.h>

#include <bit>
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

class Encoder {
 public:
  Encoder(std::span<const IoRecord> records, proto::RecordBatch* batch)
      : records_(records), batch_(batch), values_(records.size()) {}

  void Run() {
    batch_->Clear();
    batch_->set_count(static_cast<uint32_t>(records_.size()));
    if (records_.empty()) return;
    PutAll(batch_->mutable_device(), [](const IoRecord& io) { return io.device; });
    PutAll(batch_->mutable_op(), [](const IoRecord& io) { return static_cast<uint64_t>(io.op); });
    PutAll(batch_->mutable_flags(), [](const IoRecord& io) { return io.flags; });
    PutAll(batch_->mutable_bytes(), [](const IoRecord& io) { return io.bytes; });
    PutLba();
    PutTimes();
    PutPlain(&IoRecord::error, [this] { return batch_->mutable_error(); });
    PutPlain(&IoRecord::pid, [this] { return batch_->mutable_pid(); });
    PutPlain(&IoRecord::process, [this] { return batch_->mutable_process(); });
    PutPlain(&IoRecord::cpu, [this] { return batch_->mutable_cpu(); });
    PutPlain(&IoRecord::merged_bios, [this] { return batch_->mutable_merged_bios(); });
    PutPlain(&IoRecord::prio, [this] { return batch_->mutable_prio(); });
    PutOrdinal();
  }

 private:
  template <typename Value>
  void PutAll(proto::Column* column, Value value) {
    for (size_t i = 0; i < records_.size(); ++i) values_[i] = value(records_[i]);
    PutPlanes(values_, column);
  }

  // `value` yields the coded value of a record, or nothing; `column` makes the column.
  template <typename Value, typename MakeColumn>
  void PutSome(Value value, MakeColumn column) {
    size_t count = 0;
    absent_.clear();
    for (size_t i = 0; i < records_.size(); ++i) {
      const std::optional<uint64_t> coded = value(records_[i]);
      if (coded) {
        values_[count++] = *coded;
      } else {
        absent_.push_back(i);
      }
    }
    if (count == 0) return;
    proto::Column* const to = column();
    if (!absent_.empty()) PutPresent(to->mutable_present());
    PutPlanes(std::span(values_).first(count), to);
  }

  // A bit a record, first record lowest; those in absent_ are 0, as is what fills the last byte.
  void PutPresent(std::string* present) const {
    present->assign((records_.size() + 7) / 8, '\xff');
    if (const size_t tail_bits = records_.size() % 8; tail_bits != 0) {
      present->back() = static_cast<char>((1 << tail_bits) - 1);
    }
    for (const size_t i : absent_) {
      (*present)[i / 8] = static_cast<char>((*present)[i / 8] & ~(1 << (i % 8)));
    }
  }

  template <typename MakeColumn>
  void PutPlain(std::optional<uint32_t> IoRecord::* field, MakeColumn column) {
    PutSome([field](const IoRecord& io) { return std::optional<uint64_t>(io.*field); }, column);
  }

  void PutLba() {
    StreamEnds ends;
    PutSome(
        [&ends](const IoRecord& io) -> std::optional<uint64_t> {
          if (!io.lba) return std::nullopt;
          uint64_t& end = ends[io];
          const uint64_t coded = ZigZag(io.lba->sectors - end);
          end = EndSectors(io);
          return coded;
        },
        [this] { return batch_->mutable_lba(); });
  }

  void PutTimes() {
    for (const IoRecord& io : records_) {
      if (io.arrival_ns()) {
        batch_->set_base_ns(*io.arrival_ns());
        break;
      }
    }
    int64_t previous = batch_->base_ns();
    const auto advance = [&previous](const IoRecord& io) {
      previous = io.arrival_ns().value_or(previous);
    };
    PutSome(
        [&](const IoRecord& io) -> std::optional<uint64_t> {
          const int64_t base = previous;
          advance(io);
          if (!io.queue_ns) return std::nullopt;
          return ZigZag(Difference(*io.queue_ns, base));
        },
        [this] { return batch_->mutable_queue(); });
    previous = batch_->base_ns();
    PutSome(
        [&](const IoRecord& io) -> std::optional<uint64_t> {
          const int64_t base = previous;
          advance(io);
          if (!io.issue_ns) return std::nullopt;
          return ZigZag(Difference(*io.issue_ns, io.queue_ns.value_or(base)));
        },
        [this] { return batch_->mutable_issue(); });
    previous = batch_->base_ns();
    PutSome(
        [&](const IoRecord& io) -> std::optional<uint64_t> {
          const int64_t base = CompletionBase(io, previous);
          advance(io);
          if (!io.complete_ns) return std::nullopt;
          return ZigZag(Difference(*io.complete_ns, base));
        },
        [this] { return batch_->mutable_complete(); });
  }

  void PutOrdinal() {
    std::optional<uint64_t> expected;
    PutSome(
        [&](const IoRecord& io) -> std::optional<uint64_t> {
          if (!io.ordinal) return std::nullopt;
          if (!expected) {
            batch_->set_base_ordinal(*io.ordinal);
            expected = io.ordinal;
          }
          const uint64_t coded = ZigZag(*io.ordinal - *expected);
          expected = *io.ordinal + 1;
          return coded;
        },
        [this] { return batch_->mutable_ordinal(); });
  }

  std::span<const IoRecord> records_;
  proto::RecordBatch* batch_;
  std::vector<uint64_t> values_;  // scratch, one a record
  std::vector<size_t> absent_;    // scratch: records without a value
};

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

}  // namespace

void EncodeBatch(std::span<const IoRecord> records, proto::RecordBatch* batch) {
  BLKTAPE_CHECK(records.size() <= kMaxBatchRecords);
  Encoder(records, batch).Run();
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
