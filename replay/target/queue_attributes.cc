#include "replay/target/queue_attributes.h"

#include "base/file.h"
#include "host/system_view.h"

namespace blktape {
namespace {

class Machine : public QueueAttributes {
 public:
  Result<std::string> Read(const std::string& path) const override { return ReadAttribute(path); }
  Status Write(const std::string& path, std::string_view value) override {
    return WriteAttribute(path, value);
  }
  std::vector<std::string> List(const std::string& folder) const override {
    return MachineView().List(folder);
  }
};

}  // namespace

QueueAttributes& MachineQueueAttributes() {
  static Machine machine;
  return machine;
}

}  // namespace blktape
