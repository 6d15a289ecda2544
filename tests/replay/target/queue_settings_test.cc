#include "replay/target/queue_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace blktape {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Files in a folder that answer as the kernel's do: of the schedulers the chosen one stands in
// brackets, and a new one brings its own number of requests and its own tunables.
class FakeQueues : public QueueAttributes {
 public:
  explicit FakeQueues(std::string root) : root_(std::move(root)) {}

  Result<std::string> Read(const std::string& path) const override {
    std::ifstream file(root_ + path);
    if (!file) return Status(StatusCode::kNotFound, path);
    std::string line;
    std::getline(file, line);
    return line;
  }

  Status Write(const std::string& path, std::string_view value) override {
    if (path == refuses) return Status(StatusCode::kIoError, path + ": refused");
    ++writes;
    if (!path.ends_with("/scheduler")) {
      Put(path, std::string(value));
      return OkStatus();
    }
    std::string known = *Read(path);
    std::erase_if(known, [](char c) { return c == '[' || c == ']'; });
    const size_t at = (" " + known + " ").find(" " + std::string(value) + " ");
    if (at == std::string::npos) return Status(StatusCode::kIoError, path + ": Invalid argument");
    Put(path,
        known.substr(0, at) + "[" + std::string(value) + "]" + known.substr(at + value.size()));
    const std::string queue = std::filesystem::path(path).parent_path().string();
    Put(queue + "/nr_requests", value == "none" ? "64" : "256");
    std::filesystem::remove_all(root_ + queue + "/iosched");
    if (value == "mq-deadline") Put(queue + "/iosched/read_expire", "500");
    return OkStatus();
  }

  std::vector<std::string> List(const std::string& folder) const override {
    std::vector<std::string> names;
    if (!std::filesystem::exists(root_ + folder)) return names;
    for (const auto& entry : std::filesystem::directory_iterator(root_ + folder)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  void Put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }

  // sdb-like: mq-deadline with a tunable and a number of requests that somebody has chosen.
  void AddDisk(const std::string& disk, const std::string& sequence) {
    const std::string queue = "/sys/block/" + disk + "/queue/";
    Put("/sys/block/" + disk + "/diskseq", sequence);
    Put(queue + "scheduler", "none [mq-deadline] bfq");
    Put(queue + "nr_requests", "512");
    Put(queue + "iosched/read_expire", "90");
    Put(queue + "nomerges", "0");
    Put(queue + "read_ahead_kb", "128");
  }

  // Every attribute of a disk and what it says.
  std::map<std::string, std::string> All(const std::string& disk) const {
    std::map<std::string, std::string> all;
    const std::string folder = root_ + "/sys/block/" + disk;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = entry.path().string().substr(root_.size());
      all[path.substr(folder.size() - root_.size() + 1)] = *Read(path);
    }
    return all;
  }

  std::string refuses;  // writes to this path fail
  int writes = 0;

 private:
  const std::string root_;
};

class QueueSettingsTest : public testing::Test {
 protected:
  QueueSettingsTest() {
    std::string name = testing::TempDir() + "/queues-XXXXXX";
    root_ = mkdtemp(name.data());
    fake_ = std::make_unique<FakeQueues>(root_);
    fake_->Put("/proc/sys/kernel/random/boot_id", "boot-1");
    fake_->AddDisk("sdb", "7");
    places_ = {.attributes = fake_.get(), .journal_folder = root_ + "/run"};
  }
  ~QueueSettingsTest() override { std::filesystem::remove_all(root_); }

  Result<std::unique_ptr<QueueSettingsScope>> Apply(const std::vector<QueueSetting>& settings,
                                                    const std::vector<std::string>& disks = {
                                                        "sdb"}) {
    return QueueSettingsScope::Apply(disks, settings, places_);
  }

  // In a process that is then killed: no destructor runs, its locks are gone.
  void ApplyAndDie(const std::vector<QueueSetting>& settings) {
    const pid_t child = fork();
    if (child == 0) {
      const auto scope = Apply(settings);
      _exit(scope.ok() ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }

  std::vector<std::string> Journals() const {
    std::vector<std::string> names = fake_->List("/run");
    std::erase(names, "queue-settings.lock");
    return names;
  }

  std::string Queue(const std::string& attribute) const {
    return *fake_->Read("/sys/block/sdb/queue/" + attribute);
  }

  std::string root_;
  std::unique_ptr<FakeQueues> fake_;
  QueuePlaces places_;
};

const std::vector<QueueSetting> kAllThree = {
    {"nomerges", "2"}, {"scheduler", "none"}, {"read_ahead_kb", "0"}};

TEST_F(QueueSettingsTest, SetsWhatIsAskedAndSaysWhatItWas) {
  const auto scope = Apply(kAllThree);
  ASSERT_TRUE(scope.ok()) << scope.status().message();
  EXPECT_EQ(Queue("scheduler"), "[none] mq-deadline bfq");
  EXPECT_EQ(Queue("nomerges"), "2");
  EXPECT_EQ(Queue("read_ahead_kb"), "0");
  EXPECT_THAT((*scope)->changed(),
              ElementsAre("sdb scheduler: mq-deadline -> none", "sdb nomerges: 0 -> 2",
                          "sdb read_ahead_kb: 128 -> 0"));
}

TEST_F(QueueSettingsTest, PutsEverythingBackAlsoWhatANewSchedulerBroughtWithIt) {
  const auto before = fake_->All("sdb");
  {
    const auto scope = Apply(kAllThree);
    ASSERT_TRUE(scope.ok());
    EXPECT_EQ(Queue("nr_requests"), "64");
    EXPECT_THAT(Journals(), SizeIs(1));
    EXPECT_THAT((*scope)->Restore(), IsEmpty());
    EXPECT_EQ(fake_->All("sdb"), before);
    EXPECT_THAT(Journals(), IsEmpty());
    fake_->Put("/sys/block/sdb/queue/nomerges", "1");
  }
  EXPECT_EQ(Queue("nomerges"), "1") << "what was restored once is left alone";
}

TEST_F(QueueSettingsTest, PutsEverythingBackWhenItGoesOutOfScope) {
  const auto before = fake_->All("sdb");
  {
    ASSERT_TRUE(Apply(kAllThree).ok());
  }
  EXPECT_EQ(fake_->All("sdb"), before);
}

TEST_F(QueueSettingsTest, WhatIsSoAlreadyIsNotWritten) {
  const auto scope = Apply({{"scheduler", "mq-deadline"}, {"nomerges", "0"}});
  ASSERT_TRUE(scope.ok());
  EXPECT_THAT((*scope)->changed(), IsEmpty());
  EXPECT_EQ(fake_->writes, 0);
}

TEST_F(QueueSettingsTest, TheNextStartRestoresWhatAKilledReplayLeft) {
  const auto before = fake_->All("sdb");
  ApplyAndDie(kAllThree);
  EXPECT_EQ(Queue("nomerges"), "2");
  const std::vector<std::string> notes = RestoreLeftQueueSettings(places_);
  EXPECT_EQ(fake_->All("sdb"), before);
  // The scheduler, its two companions, and the two others.
  ASSERT_THAT(notes, SizeIs(5));
  EXPECT_THAT(notes[0], HasSubstr("restored sdb scheduler: none -> mq-deadline"));
  EXPECT_THAT(Journals(), IsEmpty());
  EXPECT_THAT(RestoreLeftQueueSettings(places_), IsEmpty());
}

TEST_F(QueueSettingsTest, AReplayKilledAmidItsChangesIsUndoneAsFarAsItCame) {
  const auto before = fake_->All("sdb");
  // The journal lists nomerges and read-ahead too, which were never reached.
  ApplyAndDie(kAllThree);
  fake_->Put("/sys/block/sdb/queue/nomerges", "0");
  fake_->Put("/sys/block/sdb/queue/read_ahead_kb", "128");
  EXPECT_THAT(RestoreLeftQueueSettings(places_), SizeIs(3));
  EXPECT_EQ(fake_->All("sdb"), before);
}

TEST_F(QueueSettingsTest, TheNextReplayOfTheDiskRestoresFirst) {
  const auto before = fake_->All("sdb");
  ApplyAndDie({{"nomerges", "2"}});
  {
    const auto scope = Apply({{"nomerges", "1"}});
    ASSERT_TRUE(scope.ok());
    EXPECT_EQ((*scope)->changed().back(), "sdb nomerges: 0 -> 1");
  }
  EXPECT_EQ(fake_->All("sdb"), before);
}

TEST_F(QueueSettingsTest, ALivingReplayIsLeftAloneAndNobodyElseSetsItsDisk) {
  const auto scope = Apply({{"nomerges", "2"}});
  ASSERT_TRUE(scope.ok());
  EXPECT_THAT(RestoreLeftQueueSettings(places_), IsEmpty());
  EXPECT_EQ(Queue("nomerges"), "2");
  const auto second = Apply({{"nomerges", "1"}});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Queue("nomerges"), "2");
  fake_->AddDisk("sdc", "8");
  EXPECT_TRUE(Apply({{"nomerges", "1"}}, {"sdc"}).ok());
}

TEST_F(QueueSettingsTest, ADiskThatBearsTheNameLaterIsNotTouched) {
  ApplyAndDie({{"nomerges", "2"}});
  fake_->Put("/sys/block/sdb/diskseq", "9");
  EXPECT_THAT(RestoreLeftQueueSettings(places_), IsEmpty());
  EXPECT_EQ(Queue("nomerges"), "2");
  EXPECT_THAT(Journals(), IsEmpty());
}

TEST_F(QueueSettingsTest, ADiskThatIsGoneNeedsNothing) {
  ApplyAndDie({{"nomerges", "2"}});
  std::filesystem::remove_all(root_ + "/sys/block/sdb");
  EXPECT_THAT(RestoreLeftQueueSettings(places_), IsEmpty());
  EXPECT_THAT(Journals(), IsEmpty());
}

TEST_F(QueueSettingsTest, AKernelThatHasRestartedNeedsNothing) {
  ApplyAndDie({{"nomerges", "2"}});
  fake_->Put("/proc/sys/kernel/random/boot_id", "boot-2");
  EXPECT_THAT(RestoreLeftQueueSettings(places_), IsEmpty());
  EXPECT_EQ(Queue("nomerges"), "2") << "that is what the new kernel was told";
  EXPECT_THAT(Journals(), IsEmpty());
}

TEST_F(QueueSettingsTest, WhatSomebodyElseSetMeanwhileStays) {
  const auto scope = Apply({{"nomerges", "2"}, {"read_ahead_kb", "0"}});
  ASSERT_TRUE(scope.ok());
  fake_->Put("/sys/block/sdb/queue/nomerges", "1");
  EXPECT_THAT((*scope)->Restore(), ElementsAre(HasSubstr("sdb nomerges: is 1")));
  EXPECT_EQ(Queue("nomerges"), "1");
  EXPECT_EQ(Queue("read_ahead_kb"), "128");
  EXPECT_THAT(Journals(), IsEmpty());
}

TEST_F(QueueSettingsTest, ASettingThatFailsLeavesNothingChanged) {
  const auto before = fake_->All("sdb");
  fake_->refuses = "/sys/block/sdb/queue/read_ahead_kb";
  EXPECT_FALSE(Apply(kAllThree).ok());
  EXPECT_EQ(fake_->All("sdb"), before);
  EXPECT_THAT(Journals(), IsEmpty());
}

TEST_F(QueueSettingsTest, AnUnknownSchedulerNamesThoseThereAre) {
  const auto scope = Apply({{"scheduler", "kyber"}});
  ASSERT_FALSE(scope.ok());
  EXPECT_THAT(scope.status().message(), HasSubstr("none [mq-deadline] bfq"));
  EXPECT_EQ(Queue("scheduler"), "none [mq-deadline] bfq");
}

TEST_F(QueueSettingsTest, ADiskWithoutTheSettingIsRefusedBeforeAnotherIsChanged) {
  fake_->Put("/sys/block/zram0/diskseq", "3");
  const auto before = fake_->All("sdb");
  const auto scope = Apply({{"scheduler", "none"}}, {"sdb", "zram0"});
  ASSERT_FALSE(scope.ok());
  EXPECT_THAT(scope.status().message(), HasSubstr("zram0 has no queue setting"));
  EXPECT_EQ(fake_->All("sdb"), before);
  EXPECT_EQ(fake_->writes, 0);
}

TEST_F(QueueSettingsTest, WhatCannotBeRestoredIsTriedAgainByTheNextStart) {
  {
    const auto scope = Apply({{"nomerges", "2"}});
    ASSERT_TRUE(scope.ok());
    fake_->refuses = "/sys/block/sdb/queue/nomerges";
    EXPECT_THAT((*scope)->Restore(), ElementsAre(HasSubstr("refused")));
  }
  EXPECT_THAT(RestoreLeftQueueSettings(places_), ElementsAre(HasSubstr("not restored")));
  fake_->refuses.clear();
  EXPECT_THAT(RestoreLeftQueueSettings(places_), ElementsAre(HasSubstr("restored sdb nomerges")));
  EXPECT_EQ(Queue("nomerges"), "0");
}

TEST_F(QueueSettingsTest, AJournalThatLeadsOutOfTheQueueIsNotBelieved) {
  ApplyAndDie({{"nomerges", "2"}});
  const std::string path = "/run/" + Journals().at(0);
  std::ifstream file(root_ + path);
  std::stringstream text;
  text << file.rdbuf();
  std::string evil = text.str();
  const size_t at = evil.find("\"nomerges\"");
  ASSERT_NE(at, std::string::npos);
  evil.replace(at, 10, "\"../../../x\"");
  std::ofstream(root_ + path) << evil;
  EXPECT_THAT(RestoreLeftQueueSettings(places_), ElementsAre(HasSubstr("is no journal")));
}

TEST_F(QueueSettingsTest, AJournalThatOthersMayWriteIsNotBelieved) {
  ApplyAndDie({{"nomerges", "2"}});
  std::filesystem::permissions(root_ + "/run/" + Journals().at(0),
                               std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  EXPECT_THAT(RestoreLeftQueueSettings(places_), IsEmpty());
  EXPECT_EQ(Queue("nomerges"), "2");
}

TEST_F(QueueSettingsTest, WhereNoReplayHasEverSetAnythingNothingIsMade) {
  EXPECT_THAT(RestoreLeftQueueSettings(places_), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(places_.journal_folder));
  EXPECT_TRUE(Apply({}).ok());
  EXPECT_FALSE(std::filesystem::exists(places_.journal_folder));
}

TEST(QueueSettingTest, SettingsAreReadAsTyped) {
  for (const char* text : {"scheduler=none", "scheduler=mq-deadline", "nomerges=0", "nomerges=2",
                           "read_ahead_kb=0", "read_ahead_kb=4096"}) {
    const Result<QueueSetting> setting = ParseQueueSetting(text);
    ASSERT_TRUE(setting.ok()) << text;
    EXPECT_EQ(setting->name + "=" + setting->value, text);
  }
}

TEST(QueueSettingTest, WhatCannotBeIsUsage) {
  for (const char* text :
       {"", "scheduler", "scheduler=", "scheduler=../x", "nomerges=3", "nomerges=-1",
        "read_ahead_kb=4k", "read_ahead_kb=007", "write_cache=write through", "=none"}) {
    const Result<QueueSetting> setting = ParseQueueSetting(text);
    ASSERT_FALSE(setting.ok()) << text;
    EXPECT_EQ(setting.status().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace blktape
