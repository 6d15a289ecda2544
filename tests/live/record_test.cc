// The verb `record`, as a user runs it, on loop devices of the test's own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "tests/live/live_fixture.h"
#include "tests/live/recorder.h"
#include "tests/support/requires.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class RecordTest : public LiveTest {
 protected:
  std::string disk() const { return loop_->path(); }

  // Direct writes of 4 KiB, one behind the other, by this process.
  void WriteDirect(uint64_t first_sector, int count) const {
    const UniqueFd fd = OpenDirect();
    for (int i = 0; i < count; ++i) WriteAt(fd, first_sector + static_cast<uint64_t>(i) * 8, 4096);
  }

  // /proc/PATH/status once it holds `line`, or as it is after half a minute.
  static std::string StatusWith(const std::string& path, const std::string& line) {
    Clock* clock = Clock::Monotonic();
    const int64_t end_ns = clock->NowNs() + 30 * kNanosPerSecond;
    while (true) {
      const Result<std::string> status = ReadFile("/proc/" + path + "/status");
      if (!status.ok()) return "";
      if (status->find(line) != std::string::npos || clock->NowNs() > end_ns) return *status;
      clock->SleepUntilNs(clock->NowNs() + 10 * kNanosPerMilli);
    }
  }

  // What runs a program on a kernel that does not know the system call `name`.
  std::vector<std::string> Without(const std::string& name) const {
    const std::string deny = Path("deny.py");
    std::ofstream(deny) << R"(
import ctypes, errno, os, sys
library = ctypes.CDLL("libseccomp.so.2")
library.seccomp_init.restype = ctypes.c_void_p
context = ctypes.c_void_p(library.seccomp_init(0x7fff0000))
call = library.seccomp_syscall_resolve_name(sys.argv[1].encode())
assert library.seccomp_rule_add(context, 0x00050000 | errno.ENOSYS, call, 0) == 0
assert library.seccomp_load(context) == 0
os.execv(sys.argv[2], sys.argv[2:])
)";
    return {"python3", deny, name};
  }

  // What is recorded into a.tape with this option, three writes among it.
  LoadedTrace TraceOfThreeWrites(const std::string& option) const {
    Recorder recorder(folder_, {"record", "-d", disk(), option, "-o", Path("a.tape")});
    EXPECT_TRUE(recorder.WaitUntilRecording()) << recorder.err();
    WriteDirect(0, 3);
    recorder.Signal(SIGTERM);
    EXPECT_EQ(recorder.Wait(), 0) << recorder.err();
    return LoadTrace(Path("a.tape")).value();
  }

  // What a trace holds, as the program zstd unpacks it.
  std::string Decompressed(const std::string& name) const {
    EXPECT_EQ(system(("zstd -dcq " + Path(name) + " > " + Path("plain")).c_str()), 0);
    return ReadFile(Path("plain")).value();
  }
};

TEST_F(RecordTest, ACommandsFortyIosAreFortyRecords) {
  Recorder recorder(folder_, {"record", "--device", disk(), "-o", Path("a.tape"), "--", "sh", "-c",
                              "dd if=/dev/zero of=" + disk() +
                                  " bs=4k count=23 seek=100 oflag=direct && dd if=" + disk() +
                                  " of=/dev/null bs=16k count=17 skip=3 iflag=direct"});
  EXPECT_EQ(recorder.Wait(), 0) << recorder.err();
  EXPECT_THAT(recorder.out(), HasSubstr("command: exit status 0"));
  EXPECT_THAT(recorder.out(), HasSubstr("nothing was lost"));
  const Result<LoadedTrace> trace = LoadTrace(Path("a.tape"));
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  const std::vector<IoRecord> mine = trace->By("dd");
  ASSERT_THAT(mine, SizeIs(40));
  for (uint64_t i = 0; i < 23; ++i) {
    EXPECT_EQ(mine[i].op, Op::kWrite);
    EXPECT_EQ(mine[i].lba->sectors, 800 + i * 8);
    EXPECT_EQ(mine[i].bytes, 4096u);
  }
  for (uint64_t i = 0; i < 17; ++i) {
    EXPECT_EQ(mine[23 + i].op, Op::kRead);
    EXPECT_EQ(mine[23 + i].lba->sectors, 96 + i * 32);
    EXPECT_EQ(mine[23 + i].bytes, 16'384u);
  }
  EXPECT_THAT(trace->losses, IsEmpty());
}

TEST_F(RecordTest, TheHeaderDescribesDiskMachineAndRun) {
  const int64_t before_ns = WallNowNs();
  Recorder recorder(folder_, {"record", "-d", disk(), "-o", Path("a.tape"), "--", "true"});
  ASSERT_EQ(recorder.Wait(), 0) << recorder.err();
  const Result<LoadedTrace> trace = LoadTrace(Path("a.tape"));
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->header.devices_size(), 1);
  const proto::Device& device = trace->header.devices(0);
  EXPECT_EQ(device.name(), loop_->name());
  EXPECT_EQ(device.major(), 7u);
  EXPECT_EQ(device.size_bytes(), kDiskBytes);
  EXPECT_EQ(device.logical_block_bytes(), 512u);
  EXPECT_EQ(device.transport(), "loop");
  EXPECT_THAT(trace->header.source(), AnyOf("bpf", "tracefs"));
  EXPECT_EQ(trace->header.command(), "true");
  EXPECT_EQ(trace->header.process_names(), "recorded");
  EXPECT_GE(trace->header.start().wall_ns(), before_ns);
  EXPECT_GT(trace->header.buffer_bytes_per_cpu(), 0u);
  ASSERT_TRUE(trace->summary);
  EXPECT_GE(trace->summary->end().monotonic_ns(), trace->header.start().monotonic_ns());
  struct stat info{};
  ASSERT_EQ(stat(Path("a.tape").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(RecordTest, TheStatusOfAFailedCommandIsToldAndFails) {
  Recorder recorder(folder_,
                    {"record", "-d", disk(), "-o", Path("a.tape"), "--", "sh", "-c", "exit 7"});
  EXPECT_EQ(recorder.Wait(), 1);
  EXPECT_THAT(recorder.out(), HasSubstr("command: exit status 7"));
  EXPECT_TRUE(fs::exists(Path("a.tape")));
}

TEST_F(RecordTest, ACommandThatCannotBeRunIsNamed) {
  Recorder recorder(folder_, {"record", "-d", disk(), "-o", Path("a.tape"), "--", "/no/such"});
  EXPECT_EQ(recorder.Wait(), 1);
  EXPECT_THAT(recorder.err(), HasSubstr("/no/such: No such file or directory"));
}

TEST_F(RecordTest, WithoutRightsItSaysWhyAndLeavesNothing) {
  // Bazel's folders are closed to others.
  std::string open_folder = "/tmp/blktape-record-test-XXXXXX";
  ASSERT_NE(mkdtemp(open_folder.data()), nullptr);
  fs::permissions(open_folder, fs::perms::all);
  Recorder recorder(folder_, {"record", "-d", loop_->name(), "-o", open_folder + "/a.tape"},
                    {"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"});
  EXPECT_EQ(recorder.Wait(), 1);
  EXPECT_THAT(recorder.err(), HasSubstr("takes root's rights"));
  EXPECT_THAT(recorder.err(), HasSubstr("try:  sudo blktape record"));
  EXPECT_TRUE(fs::is_empty(open_folder));
  fs::remove_all(open_folder);
}

TEST_F(RecordTest, NothingIsOverwritten) {
  ASSERT_TRUE(CreateFile(Path("a.tape")).ok());
  Recorder recorder(folder_, {"record", "-d", disk(), "-o", Path("a.tape"), "--", "true"});
  EXPECT_EQ(recorder.Wait(), 1);
  EXPECT_THAT(recorder.err(), HasSubstr("a.tape exists"));
  EXPECT_EQ(fs::file_size(Path("a.tape")), 0u);
}

TEST_F(RecordTest, ATermSignalFinishesTheTrace) {
  Recorder recorder(folder_, {"record", "-d", disk(), "-o", Path("a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording()) << recorder.err();
  EXPECT_TRUE(fs::exists(Path("a.tape.partial")));
  WriteDirect(0, 5);
  recorder.Signal(SIGTERM);
  EXPECT_EQ(recorder.Wait(), 0) << recorder.err();
  EXPECT_FALSE(fs::exists(Path("a.tape.partial")));
  const Result<LoadedTrace> trace = LoadTrace(Path("a.tape"));
  ASSERT_TRUE(trace.ok());
  EXPECT_THAT(trace->By("record_test"), SizeIs(5));
  EXPECT_THAT(Decompressed("a.tape"), HasSubstr("record_test"));
  EXPECT_TRUE(trace->summary);
}

TEST_F(RecordTest, LostEventsAreCountedStoredAndTold) {
  Recorder recorder(folder_, {"record", "-d", disk(), "--source", "tracefs", "--buffer", "16k",
                              "--json", "-o", Path("a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording());
  WriteDirect(0, 10);
  // A recorder that gets no time at all.
  recorder.Signal(SIGSTOP);
  for (int i = 0; i < 20; ++i) WriteDirect(0, 500);
  recorder.Signal(SIGCONT);
  ASSERT_TRUE(recorder.WaitUntilItSays("buffers grown to 32 KiB a CPU")) << recorder.err();
  WriteDirect(0, 10);
  recorder.Signal(SIGTERM);
  EXPECT_EQ(recorder.Wait(), 3);
  const Result<LoadedTrace> trace = LoadTrace(Path("a.tape"));
  ASSERT_TRUE(trace.ok());
  const uint64_t overrun = trace->LossCount(proto::RING_OVERRUN);
  EXPECT_GT(overrun, 10'000u) << "three events an I/O, 16 KiB hold a few hundred";
  const auto json = ParseJson(recorder.out());
  EXPECT_GE(json["lost_events"].get<uint64_t>(), overrun);
  bool in_summary = false;
  for (const proto::LossTotal& total : trace->summary->losses()) {
    if (total.reason() != proto::RING_OVERRUN) continue;
    in_summary = true;
    EXPECT_EQ(total.count(), overrun);
  }
  EXPECT_TRUE(in_summary);
}

TEST_F(RecordTest, AHangupBeginsANewFileAndLosesNothing) {
  Recorder recorder(folder_, {"record", "-d", disk(), "-o", Path("a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording());
  WriteDirect(0, 50);
  recorder.Signal(SIGHUP);
  WriteDirect(1000, 50);
  ASSERT_TRUE(recorder.WaitUntilItSays("finished ")) << recorder.err();
  WriteDirect(2000, 50);
  recorder.Signal(SIGINT);
  EXPECT_EQ(recorder.Wait(), 0) << recorder.err();
  const Result<LoadedTrace> first = LoadTrace(Path("a.tape"));
  const Result<LoadedTrace> second = LoadTrace(Path("a_2.tape"));
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_TRUE(first->summary);
  std::vector<uint64_t> sectors;
  for (const auto* trace : {&*first, &*second}) {
    for (const IoRecord& io : trace->By("record_test")) sectors.push_back(io.lba->sectors);
  }
  ASSERT_THAT(sectors, SizeIs(150));
  for (uint64_t i = 0; i < 150; ++i) EXPECT_EQ(sectors[i], i / 50 * 1000 + i % 50 * 8);
}

TEST_F(RecordTest, FilesRotateBySizeAndTheOldestMakeRoom) {
  fs::create_directories(Path("tapes"));
  Recorder recorder(folder_, {"record", "-d", disk(), "--rotate-size", "1k", "--keep", "3k",
                              "--crash-window", "200ms", "-o", Path("tapes")});
  ASSERT_TRUE(recorder.WaitUntilRecording());
  Clock* clock = Clock::Monotonic();
  const int64_t end_ns = clock->NowNs() + 20 * kNanosPerSecond;
  while (recorder.err().find("removed ") == std::string::npos && clock->NowNs() < end_ns) {
    WriteDirect(0, 500);
    clock->SleepUntilNs(clock->NowNs() + 50 * kNanosPerMilli);
  }
  recorder.Signal(SIGTERM);
  EXPECT_EQ(recorder.Wait(), 0) << recorder.err();
  EXPECT_THAT(recorder.err(), HasSubstr("removed "));
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(Path("tapes"))) {
    ++files;
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(name.rfind(loop_->name() + "_20", 0), 0u) << name;
    EXPECT_EQ(entry.path().extension(), ".tape") << name;
    EXPECT_TRUE(LoadTrace(entry.path().string()).ok());
  }
  EXPECT_GE(files, 1u);
}

TEST_F(RecordTest, FilesRotateByTimeAndEachIoIsInOneOfThem) {
  fs::create_directories(Path("tapes"));
  Recorder recorder(folder_, {"record", "-d", disk(), "--rotate", "2s", "-o", Path("tapes")});
  ASSERT_TRUE(recorder.WaitUntilRecording());
  constexpr uint64_t kPlaces = kDiskBytes / 4096;
  uint64_t written = 0;
  Clock* clock = Clock::Monotonic();
  const int64_t end_ns = clock->NowNs() + 60 * kNanosPerSecond;
  const UniqueFd fd = OpenDirect();
  // Three files are finished while it goes on.
  for (size_t finished = 0; finished < 3 && clock->NowNs() < end_ns;) {
    for (int i = 0; i < 20; ++i) WriteAt(fd, written++ % kPlaces * 8, 4096);
    clock->SleepUntilNs(clock->NowNs() + 20 * kNanosPerMilli);
    const std::string said = recorder.err();
    finished = 0;
    for (size_t at = 0; (at = said.find("finished ", at)) != std::string::npos; ++at) ++finished;
  }
  recorder.Signal(SIGTERM);
  EXPECT_EQ(recorder.Wait(), 0) << recorder.err();

  std::map<int64_t, LoadedTrace> by_start;
  for (const auto& entry : fs::directory_iterator(Path("tapes"))) {
    LoadedTrace trace = LoadTrace(entry.path().string()).value();
    by_start.emplace(trace.header.start().wall_ns(), std::move(trace));
  }
  ASSERT_THAT(by_start, SizeIs(4));
  uint64_t expected = 0;
  int64_t due_ns = by_start.begin()->first;
  for (const auto& [start_ns, trace] : by_start) {
    EXPECT_GE(start_ns, due_ns) << "no file is begun before its time";
    due_ns += 2 * kNanosPerSecond;
    EXPECT_TRUE(trace.summary);
    EXPECT_THAT(trace.losses, IsEmpty());
    for (const IoRecord& io : trace.By("record_test")) {
      ASSERT_EQ(io.lba->sectors, expected++ % kPlaces * 8);
    }
  }
  EXPECT_EQ(expected, written);
}

TEST_F(RecordTest, FiltersKeepWhatWasAskedForAndSaySo) {
  Recorder recorder(
      folder_, {"record", "-d", disk(), "--op", "write", "--lba", "800-807", "-o", Path("a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording());
  WriteDirect(784, 5);
  recorder.Signal(SIGTERM);
  EXPECT_EQ(recorder.Wait(), 0);
  const Result<LoadedTrace> trace = LoadTrace(Path("a.tape"));
  ASSERT_TRUE(trace.ok());
  ASSERT_THAT(trace->ios, SizeIs(1));
  EXPECT_EQ(trace->ios[0].lba->sectors, 800u);
  EXPECT_THAT(trace->header.filters(), ElementsAre("op=write", "lba=800-807"));
  EXPECT_GE(trace->summary->filtered(), 4u);
}

TEST_F(RecordTest, NamesOfProcessesCanBeLeftOut) {
  const LoadedTrace trace = TraceOfThreeWrites("--no-process-names");
  EXPECT_THAT(Decompressed("a.tape"), Not(HasSubstr("record_test")));
  EXPECT_EQ(trace.header.process_names(), "none");
  EXPECT_GE(trace.ios.size(), 3u);
  for (const std::string& name : trace.names) EXPECT_EQ(name, "");
}

TEST_F(RecordTest, NamesOfProcessesCanBeHashed) {
  const LoadedTrace trace = TraceOfThreeWrites("--hash-process-names");
  EXPECT_THAT(Decompressed("a.tape"), Not(HasSubstr("record_test")));
  EXPECT_EQ(trace.header.process_names(), "hashed");
  ASSERT_GE(trace.names.size(), 3u);
  for (std::string name : trace.names) {
    // A flush that the kernel derived is of one of its workers.
    if (name.starts_with("kworker/")) name.erase(0, 8);
    EXPECT_EQ(name.size(), 13u);
    EXPECT_EQ(name[0], '#');
  }
}

TEST_F(RecordTest, WithoutRandomNumbersNoNameIsHashed) {
  Recorder recorder(folder_, {"record", "-d", disk(), "--hash-process-names", "-o", Path("a.tape")},
                    Without("getrandom"));
  EXPECT_EQ(recorder.Wait(), 1);
  EXPECT_THAT(recorder.err(), HasSubstr("no random numbers to hash process names with"));
  EXPECT_FALSE(fs::exists(Path("a.tape")));
  EXPECT_FALSE(fs::exists(Path("a.tape.partial")));
}

TEST_F(RecordTest, StatusShowsTheRecordingThatRuns) {
  Recorder recorder(folder_, {"record", "-d", disk(), "-o", Path("a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording());
  Recorder status(folder_, {"record", "--status", "--json"});
  EXPECT_EQ(status.Wait(), 0) << status.err();
  bool found = false;
  for (const auto& one : ParseJson(status.out())) {
    if (one["pid"] != recorder.pid()) continue;
    found = true;
    EXPECT_EQ(one["path"], Path("a.tape"));
    EXPECT_EQ(one["devices"][0], loop_->name());
    EXPECT_GE(one["updates"].get<int>(), 2) << "renewed on request";
  }
  EXPECT_TRUE(found);
  recorder.Signal(SIGTERM);
  EXPECT_EQ(recorder.Wait(), 0);
}

TEST_F(RecordTest, StatusSaysWhoMayAskForTheRecordingOfAnother) {
  Recorder recorder(folder_, {"record", "-d", disk(), "-o", Path("a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording());
  Recorder status(folder_, {"record", "--status"}, {"setpriv", "--reuid=65534", "--clear-groups"});
  EXPECT_EQ(status.Wait(), 1);
  EXPECT_THAT(status.err(), HasSubstr("try:  sudo blktape record --status"));
  recorder.Signal(SIGTERM);
  EXPECT_EQ(recorder.Wait(), 0);
}

// CAP_BPF is number 39: reading counts and making larger rings are calls of bpf(2).
TEST_F(RecordTest, OnceItRecordsByBpfItHasOneRightLeft) {
  BLKTAPE_REQUIRE(fs::exists("/sys/kernel/btf/vmlinux"), "a kernel with BTF");
  Recorder recorder(folder_, {"record", "-d", disk(), "--source", "bpf", "-o", Path("a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording());
  // It says that it records a moment before it drops the others; the filter comes last.
  const std::string status = StatusWith(std::to_string(recorder.pid()), "Seccomp:\t2");
  EXPECT_THAT(status, HasSubstr("CapEff:\t0000008000000000"));
  EXPECT_THAT(status, HasSubstr("CapPrm:\t0000008000000000"));
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2"));
  recorder.Signal(SIGTERM);
  EXPECT_EQ(recorder.Wait(), 0) << recorder.err();
}

TEST_F(RecordTest, RightsThatCannotBeDroppedAreSaid) {
  Recorder recorder(folder_, {"record", "-d", disk(), "-o", Path("a.tape")}, Without("capset"));
  ASSERT_TRUE(recorder.WaitUntilItSays("warning: rights of root are kept: "));
  ASSERT_TRUE(
      recorder.WaitUntilItSays("warning: rights of root are kept by the thread that writes: "));
  recorder.Signal(SIGTERM);
  EXPECT_EQ(recorder.Wait(), 0) << recorder.err();
  EXPECT_TRUE(fs::exists(Path("a.tape")));
}

// By this call a filter is set for all threads; a service manager may not allow it.
TEST_F(RecordTest, SystemCallsThatStayAllowedAreSaid) {
  Recorder recorder(folder_, {"record", "-d", disk(), "-o", Path("a.tape")}, Without("seccomp"));
  ASSERT_TRUE(recorder.WaitUntilItSays("warning: system calls that are not needed stay allowed: "));
  recorder.Signal(SIGTERM);
  EXPECT_EQ(recorder.Wait(), 0) << recorder.err();
  EXPECT_TRUE(fs::exists(Path("a.tape")));
}

TEST_F(RecordTest, OnceItRecordsItHasNoRightsLeft) {
  Recorder recorder(folder_, {"record", "-d", disk(), "--source", "tracefs", "-o", Path("a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording());
  const std::string pid = std::to_string(recorder.pid());
  EXPECT_THAT(StatusWith(pid, "Seccomp:\t2"), HasSubstr("Seccomp:\t2"));
  int threads = 0;
  for (const auto& task : fs::directory_iterator("/proc/" + pid + "/task")) {
    ++threads;
    const std::string thread = pid + "/task/" + task.path().filename().string();
    const std::string status = StatusWith(thread, "Seccomp:\t2");
    EXPECT_THAT(status, HasSubstr("CapEff:\t0000000000000000"));
    EXPECT_THAT(status, HasSubstr("CapPrm:\t0000000000000000"));
    EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
    EXPECT_THAT(status, HasSubstr("Seccomp:\t2"));
  }
  EXPECT_EQ(threads, 2);
  recorder.Signal(SIGTERM);
  EXPECT_EQ(recorder.Wait(), 0) << recorder.err();
}

TEST_F(RecordTest, TwoRecordersAtOnceSeeTheSame) {
  Recorder one(folder_, {"record", "-d", disk(), "-o", Path("a.tape")});
  Recorder two(folder_, {"record", "-d", disk(), "-o", Path("b.tape")});
  ASSERT_TRUE(one.WaitUntilRecording());
  ASSERT_TRUE(two.WaitUntilRecording());
  WriteDirect(64, 11);
  one.Signal(SIGTERM);
  two.Signal(SIGTERM);
  EXPECT_EQ(one.Wait(), 0);
  EXPECT_EQ(two.Wait(), 0);
  const Result<LoadedTrace> a = LoadTrace(Path("a.tape"));
  const Result<LoadedTrace> b = LoadTrace(Path("b.tape"));
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_THAT(a->By("record_test"), SizeIs(11));
  EXPECT_THAT(b->By("record_test"), SizeIs(11));
}

}  // namespace
}  // namespace blktape
