#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "base/utf8.h"
#include "capture/import/fields.h"
#include "capture/import/import_format.h"
#include "capture/import/octf.pb.h"
#include "capture/import/row_importer.h"

namespace blktape {
namespace {

// A varint and how many bytes it takes; 0 bytes: cut, or longer than 5.
size_t Varint(std::string_view bytes, uint64_t* value) {
  *value = 0;
  for (size_t i = 0; i < bytes.size() && i < 5; ++i) {
    *value |= static_cast<uint64_t>(bytes[i] & 0x7f) << (7 * i);
    if ((bytes[i] & 0x80) == 0) return i + 1;
  }
  return 0;
}

// One octf.trace.N, a queue's: messages preceded by their length. Every queue describes the devices
// first. An I/O ends by an event of its own, in whatever queue the CPU had that saw it end; ids
// look like addresses of the kernel and are used again.
class Octf : public RowImporter {
 public:
  size_t Decode(std::string_view bytes, bool at_end, RowSink* sink) override {
    size_t done = 0;
    while (done < bytes.size()) {
      sink->At(offset_ + done);
      uint64_t length = 0;
      const size_t prefix = Varint(bytes.substr(done), &length);
      const bool damaged = (prefix == 0 && bytes.size() - done >= 5) || length > kLongestRow / 2;
      if (damaged) {
        // Lengths lead from one message to the next: without one nothing more can be read.
        sink->Dropped("no message begins here; the rest of the file is lost");
        lost_ = true;
      }
      if (lost_) {
        done = bytes.size();
        break;
      }
      if (prefix == 0 || bytes.size() - done - prefix < length) {
        if (!at_end) break;
        sink->Dropped("the file ends inside a message");
        done = bytes.size();
        break;
      }
      One(bytes.substr(done + prefix, length), sink);
      done += prefix + length;
    }
    offset_ += done;
    return done;
  }

 private:
  void One(std::string_view bytes, RowSink* sink) {
    event_.Clear();
    if (!event_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      sink->Dropped("a message that cannot be decoded");
      return;
    }
    const auto ns = static_cast<int64_t>(event_.header().timestamp());
    switch (event_.kind_case()) {
      case octf::Event::kDeviceDescription: {
        const octf::DeviceDescription& device = event_.device_description();
        const uint32_t number = sink->Device(ToUtf8(device.name()));
        proto::Device* described = sink->Describe(number);
        if (device.size() > 0 && device.size() <= UINT64_MAX / kSectorBytes) {
          described->set_size_bytes(device.size() * kSectorBytes);
        }
        described->set_model(std::string(Trim(ToUtf8(device.model()))));
        if (devices_.size() < kMostDevices) devices_[device.id()] = number;
        break;
      }
      case octf::Event::kIo: {
        const octf::Io& event = event_.io();
        IoRecord io;
        switch (event.operation()) {
          case 1:
            io.op = Op::kRead;
            break;
          case 2:
            io.op = Op::kWrite;
            break;
          case 3:
            io.op = Op::kDiscard;
            break;
          default:
            if (!event.flush()) {
              sink->Dropped("an operation of no known number");
              return;
            }
            io.op = Op::kFlush;
        }
        io.queue_ns = ns;  // of the bio
        io.lba = Lba(event.lba());
        io.bytes = uint64_t{event.len()} * kSectorBytes;
        if (event.flush()) io.flags |= kFlagPreflush;
        if (event.fua()) io.flags |= kFlagFua;
        if (event.metadata()) io.flags |= kFlagMeta;
        if (event.readahead()) io.flags |= kFlagReadahead;
        NormalizeFlushRecord(&io);
        const auto device = devices_.find(event.device_id());
        io.device = device != devices_.end()
                        ? device->second
                        : sink->Device("device" + std::to_string(event.device_id()));
        sink->Begin(event.id(), io, {});
        break;
      }
      case octf::Event::kIoCompletion:
        sink->End(event_.io_completion().ref_id(), ns, event_.io_completion().error() ? EIO : 0);
        break;
      default:  // of file systems and caches
        break;
    }
  }

  static constexpr size_t kMostDevices = 65536;

  octf::Event event_;
  std::map<uint64_t, uint32_t> devices_;
  uint64_t offset_ = 0;
  bool lost_ = false;
};

bool LooksLike(std::string_view head) {
  uint64_t length = 0;
  const size_t prefix = Varint(head, &length);
  if (prefix == 0 || length < 4 || length > 4096 || head.size() < prefix + length) return false;
  octf::Event event;
  return event.ParseFromArray(head.data() + prefix, static_cast<int>(length)) &&
         event.header().sid() > 0 && event.header().timestamp() > 0 &&
         event.kind_case() != octf::Event::KIND_NOT_SET;
}

}  // namespace

ImportFormat OctfFormat() {
  return {.name = "octf",
          .title = "Open-CAS OCTF (iotrace): a folder, its octf.trace.*, or a tar of it",
          .lacks = "issue times, processes, the wall clock; its file names are left out",
          .binary = true,
          .looks_like = LooksLike,
          .make = [] { return std::make_unique<Octf>(); }};
}

}  // namespace blktape
