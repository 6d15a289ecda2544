#include "replay/plan/dependencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tests/replay/plan/fake_records.h"

namespace blktape {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr int64_t kUs = 1'000;
constexpr uint32_t kJournal = kFlagSync | kFlagMeta;
constexpr uint32_t kCommit = kJournal | kFlagPreflush | kFlagFua;

// Hands records over and tells of each which earlier ones, by their place, it waited for. All times
// in microseconds.
class DependenciesTest : public testing::Test {
 protected:
  struct Waited {
    uint32_t chain = 0;
    int64_t think_us = 0;
    int64_t asks_after_us = 0;
    int64_t goes_on_us = 0;
    std::vector<size_t> gates;        // ascending; of commits the first copies
    std::vector<size_t> writing;      // in whose place what its journal writes is waited for
    uint32_t how = 0;                 // that is waited for, before it thinks
    std::vector<size_t> after;        // likewise, after it thinks
    std::vector<size_t> if_left_out;  // without whose copy, a gate, it is not needed
    // The place and copy without which the flush before it is not; as a gate that has kFlush.
    std::optional<std::pair<size_t, uint32_t>> flush_first;
    Dependencies::CommitPart part = Dependencies::CommitPart::kNone;
    bool asked = false;
    std::vector<Waited> copies;         // beyond the first
    std::vector<uint32_t> gate_copies;  // of each gate which copy it is
  };

  Waited Next(uint32_t thread, Op op, int64_t arrival_us, int64_t complete_us, uint32_t flags = 0,
              uint32_t device = 0) {
    IoRecord io = Io(op, arrival_us * kUs, complete_us * kUs, 0, 4096);
    io.pid = thread;
    io.flags = flags;
    io.device = device;
    return Hand(io);
  }
  // A read of 1 ms.
  Waited Woken(uint32_t thread, int64_t arrival_us, uint32_t waker, int64_t since_us) {
    IoRecord io = Io(Op::kRead, arrival_us * kUs, (arrival_us + 1'000) * kUs, 0, 4096);
    io.pid = thread;
    io.waker = waker;
    io.since_wake_ns = since_us * kUs;
    return Hand(io);
  }
  Waited Hand(const IoRecord& io, bool of_worker = false) {
    inferred_.Arrive(io, no_fua_);
    Waited waited;
    std::vector<uint32_t> slots;
    if ((io.flags & kFlagDerived) == 0) {
      const Dependencies::Wait wait = inferred_.WaitOf(io, &slots, of_worker);
      waited = Tell(wait, slots);
      std::vector<uint32_t> named_later;
      for (uint32_t copy = 1; copy < wait.copies; ++copy) {
        slots.clear();
        const Dependencies::Wait other = inferred_.WaitOfCopy(copy, &slots);
        waited.copies.push_back(Tell(other, slots));
        named_later.insert(named_later.end(), slots.begin(), slots.end());
      }
      if (const auto slot = inferred_.Add(io)) {
        Own(*slot, 0, named_later);
        for (uint32_t copy = 1; copy < wait.copies; ++copy) {
          if (const auto added = inferred_.AddCopy(*slot)) Own(*added, copy, named_later);
        }
      }
    }
    ++place_;
    return waited;
  }
  static constexpr size_t kFlush = 1'000;
  // A replay takes the copies one after another: what a later one names must mean the same then.
  void Own(uint32_t slot, uint32_t copy, const std::vector<uint32_t>& named_later) {
    EXPECT_THAT(named_later, Not(Contains(slot))) << "I/O " << place_ << ", copy " << copy;
    owner_[slot] = {place_, copy};
  }
  Waited Tell(const Dependencies::Wait& wait, const std::vector<uint32_t>& slots) {
    Waited waited;
    waited.chain = wait.chain;
    waited.think_us = wait.think_ns / kUs;
    waited.asks_after_us = wait.asks_after_ns / kUs;
    waited.goes_on_us = wait.goes_on_ns / kUs;
    waited.part = wait.part;
    waited.asked = wait.asked;
    if (wait.flush_first) {
      waited.flush_first = owner_[wait.flush_first->gate & ~Dependencies::kFlags];
      owner_[wait.flush_first->slot] = {kFlush, 0};
    }
    std::vector<std::pair<size_t, uint32_t>> gates;
    for (const uint32_t slot : slots) {
      const auto& owner = owner_[slot & ~Dependencies::kFlags];
      if ((slot & Dependencies::kIfLeftOut) != 0) waited.if_left_out.push_back(owner.first);
      if ((slot & Dependencies::kAfterThink) != 0) {
        waited.after.push_back(owner.first);
      } else if ((slot & Dependencies::kWhileWriting) != 0) {
        waited.writing.push_back(owner.first);
        waited.how = slot & Dependencies::kOfJournal & ~Dependencies::kWhileWriting;
      } else {
        gates.push_back(owner);
      }
    }
    std::ranges::sort(gates);
    for (const auto& [place, copy] : gates) {
      waited.gates.push_back(place);
      waited.gate_copies.push_back(copy);
    }
    return waited;
  }
  // A commit by thread 7, all of 100 us, which makes that a journal's thread.
  void CommitBefore() {
    Next(7, Op::kWrite, 0, 40, kJournal);
    Next(7, Op::kWrite, 50, 100, kCommit);
  }
  // I/Os 0 to 8: a commit for thread 1, until 1.0 ms, and one that thread 2 asked for, until 3.0
  // ms.
  void CommitsForTwo() {
    CommitBefore();                               // 0, 1
    Next(2, Op::kRead, 200, 290);                 // 2
    Next(1, Op::kWrite, 300, 400, kFlagSync);     // 3
    Next(7, Op::kWrite, 410, 500, kJournal);      // 4
    Next(2, Op::kWrite, 420, 490, kFlagSync);     // 5
    Next(7, Op::kWrite, 510, 1'000, kCommit);     // 6
    Next(7, Op::kWrite, 1'050, 1'400, kJournal);  // 7
    Next(7, Op::kWrite, 1'410, 3'000, kCommit);   // 8
  }
  // What thread 1 does at the end of a commit, 5 and 6, that follows its own and that nobody asked
  // for.
  Waited AfterASecondCommitFrom(int64_t begins_us) {
    CommitBefore();                                   // 0, 1
    Next(1, Op::kWrite, 300, 400, kFlagSync);         // 2
    Next(7, Op::kWrite, 410, 500, kJournal);          // 3
    Next(7, Op::kWrite, 510, 1'000, kCommit);         // 4
    Next(7, Op::kWrite, begins_us, 1'600, kJournal);  // 5
    Next(7, Op::kWrite, 1'610, 3'000, kCommit);       // 6
    return Next(1, Op::kWrite, 3'060, 3'100, kFlagSync);
  }

  bool no_fua_ = false;
  std::vector<size_t> next_ = {0, 0, 0};  // of each thread, in a test that needs it
  Dependencies inferred_{64, 4};
  std::map<uint32_t, std::pair<size_t, uint32_t>> owner_;  // of each slot the place, and the copy
  size_t place_ = 0;
};

TEST_F(DependenciesTest, AThreadWaitsForItsOwnIosAndNotForThoseOfOthers) {
  EXPECT_THAT(Next(1, Op::kRead, 0, 100).gates, IsEmpty());     // 0
  EXPECT_THAT(Next(2, Op::kRead, 10, 5'000).gates, IsEmpty());  // 1
  const Waited second = Next(1, Op::kRead, 1'100, 1'200);       // 2
  EXPECT_THAT(second.gates, ElementsAre(0));
  EXPECT_EQ(second.think_us, 1'000);
  const Waited other = Next(2, Op::kRead, 9'000, 9'100);  // 3
  EXPECT_THAT(other.gates, ElementsAre(1)) << "not for 2, which completed meanwhile";
  EXPECT_EQ(other.think_us, 4'000);
  EXPECT_NE(other.chain, second.chain);
}

TEST_F(DependenciesTest, WhatIsStillInFlightIsNotWaitedFor) {
  Next(1, Op::kRead, 0, 900, kFlagReadahead);  // 0
  Next(1, Op::kRead, 10, 100);                 // 1
  const Waited waited = Next(1, Op::kRead, 150, 1'000);
  EXPECT_THAT(waited.gates, ElementsAre(1));
  EXPECT_EQ(waited.think_us, 50);
  const Waited later = Next(1, Op::kRead, 1'300, 1'400);
  EXPECT_THAT(later.gates, ElementsAre(0, 2)) << "told once; 1 is not told again";
  EXPECT_EQ(later.think_us, 300);
}

TEST_F(DependenciesTest, AThreadsFirstIoWaitsForTheLastThatCompletedOfAll) {
  Next(1, Op::kRead, 0, 100);
  Next(2, Op::kRead, 20, 300);
  const Waited started = Next(3, Op::kRead, 1'300, 1'400);
  EXPECT_THAT(started.gates, ElementsAre(1));
  EXPECT_EQ(started.think_us, 1'000);
}

TEST_F(DependenciesTest, WhatNobodyWaitsForFollowsTheLastCompletionOfAll) {
  Next(9, Op::kWrite, 0, 50);     // 0: written back
  Next(1, Op::kRead, 10, 5'000);  // 1
  EXPECT_THAT(Next(9, Op::kWrite, 5'010, 5'050).gates, ElementsAre(0, 1));
}

// A clock that ticks in milliseconds gives many completions the same time.
TEST_F(DependenciesTest, WhatAKernelWorkerDoesForOthersFollowsTheLastCompletionOfAll) {
  const auto by_worker = [this](Op op, int64_t arrival_us, uint32_t flags = 0) {
    IoRecord io = Io(op, arrival_us * kUs, (arrival_us + 100) * kUs, 0, 4096);
    io.pid = 9;
    io.flags = flags;
    return Hand(io, /*of_worker=*/true);
  };
  by_worker(Op::kRead, 0);                          // 0
  Next(1, Op::kRead, 5'000, 6'000);                 // 1
  Next(2, Op::kRead, 5'500, 9'000);                 // 2
  const Waited next = by_worker(Op::kRead, 6'020);  // 3
  EXPECT_THAT(next.gates, ElementsAre(0, 1));
  EXPECT_EQ(next.think_us, 20);
  EXPECT_THAT(by_worker(Op::kWrite, 9'030, kFlagSync).gates, ElementsAre(2, 3));  // 4
  // A flush that follows, and what it writes to a journal, is its own affair.
  Next(1, Op::kRead, 9'200, 9'300);  // 5
  EXPECT_THAT(by_worker(Op::kFlush, 9'320).gates, ElementsAre(4));
}

// A program's event loop has two threads read for it in turns, 50 us after the last one. While a
// thread had nothing in flight, for 1,100 us, the other had, but for its first 100 us for 900 us:
// by chance one would have begun beside the other so often, and after 20 times that is known.
TEST_F(DependenciesTest, AThreadThatTakesTurnsWaitsForWhatTheOthersDid) {
  const auto by_program = [this](uint32_t thread, uint32_t process, int64_t arrival_us) {
    IoRecord io = Io(Op::kRead, arrival_us * kUs, (arrival_us + 1'000) * kUs, 0, 4096);
    io.pid = thread;
    io.process = process;
    return Hand(io);
  };
  int64_t at_us = 0;
  for (size_t i = 0; i < 40; ++i, at_us += 1'300) {
    const Waited next = by_program(i % 2 == 0 ? 1 : 2, 5, at_us);
    // The first read of each has none of its own before it; the third one of all could be that of
    // who started the other thread.
    if (i < 3) continue;
    const bool known = i >= 2 + 29 - 1;
    EXPECT_EQ(next.gates.back(), known ? i - 1 : i - 2) << i;
    EXPECT_EQ(next.think_us, known ? 300 : 1'600) << i;
  }
  at_us += 5'000;
  EXPECT_THAT(by_program(1, 5, at_us).gates, ElementsAre(38, 39));
  EXPECT_THAT(by_program(3, 6, at_us + 100).gates, ElementsAre(39));
}

// By its answer, say, at 1.5 ms: what the waker did later it did not wait for.
TEST_F(DependenciesTest, AThreadWaitsForWhatItsWakerHadDoneByThen) {
  Next(1, Op::kRead, 0, 40);
  Next(2, Op::kRead, 50, 100);
  Next(1, Op::kRead, 150, 1'000);
  Next(1, Op::kRead, 1'100, 2'000);
  const Waited first = Woken(2, 5'000, 1, 3'500);  // 4
  EXPECT_THAT(first.gates, ElementsAre(1));        // no completion counts before wakes are told
  Next(1, Op::kRead, 8'000, 9'000);                // 5
  Next(1, Op::kRead, 9'500, 11'000);
  const Waited next = Woken(2, 15'000, 1, 5'000);  // 7
  EXPECT_THAT(next.gates, ElementsAre(4, 5));
  EXPECT_EQ(next.think_us, 6'000);
  // Before its own last I/O was complete: it has not waited for that.
  const Waited later = Woken(2, 20'000, 1, 9'000);
  EXPECT_THAT(later.gates, ElementsAre(7));
  EXPECT_EQ(later.think_us, 4'000);
  // By a thread without an I/O.
  EXPECT_THAT(Woken(2, 25'000, 9, 10).gates, ElementsAre(8));
}

TEST_F(DependenciesTest, ANewThreadWaitsForItsWakerNotForWhoeverWasLast) {
  Woken(1, 0, 9, 10);
  Next(3, Op::kRead, 1'500, 1'800);
  EXPECT_THAT(Woken(2, 2'000, 1, 500).gates, ElementsAre(0));
  EXPECT_THAT(Next(4, Op::kRead, 2'200, 3'200).gates, ElementsAre(1));
}

TEST_F(DependenciesTest, WhereWakesAreToldNoTurnsAreLookedFor) {
  Woken(9, 0, 8, 10);
  for (size_t i = 1; i < 60; ++i) {
    IoRecord io = Io(Op::kRead, static_cast<int64_t>(i) * 1'050 * kUs,
                     (static_cast<int64_t>(i) * 1'050 + 1'000) * kUs, 0, 4096);
    io.pid = i % 2 == 0 ? 1 : 2;
    io.process = 5;
    const Waited next = Hand(io);
    if (i > 3) EXPECT_THAT(next.gates, ElementsAre(i - 2)) << i;
  }
}

// Woken by the journal's thread at once, but it goes on only 300 us later.
TEST_F(DependenciesTest, WhoIsWokenByTheJournalWaitedForItsCommit) {
  Next(2, Op::kRead, 0, 100);
  Next(50, Op::kWrite, 1'000, 1'100, kJournal);
  Next(50, Op::kWrite, 1'200, 2'000, kCommit);
  EXPECT_THAT(Woken(2, 2'300, 50, 250).gates, ElementsAre(0, 2));
}

TEST_F(DependenciesTest, WhoGoesOnThatLongAfterACommitDidNotWaitForIt) {
  Next(2, Op::kRead, 0, 100);
  Next(50, Op::kWrite, 1'000, 1'100, kJournal);
  Next(50, Op::kWrite, 1'200, 2'000, kCommit);
  EXPECT_THAT(Next(2, Op::kRead, 2'300, 3'300).gates, ElementsAre(0));
  EXPECT_THAT(Woken(2, 6'300, 9, 250).gates, ElementsAre(3));
}

// A thread goes on 50 us after a read of another program's, as if it needed the page.
TEST_F(DependenciesTest, AThreadThatIsWokenByOthersReadsWaitsForThem) {
  for (size_t i = 0; i < 40; ++i) {
    const auto at_us = static_cast<int64_t>(i) * 20'000;
    IoRecord page = Io(Op::kRead, at_us * kUs, (at_us + 9'000) * kUs, 0, 4096);
    page.pid = 1;
    page.process = 5;
    Hand(page);
    IoRecord own = Io(Op::kRead, (at_us + 9'050) * kUs, (at_us + 9'500) * kUs, 0, 4096);
    own.pid = 2;
    own.process = 6;
    const Waited waited = Hand(own);
    if (i < 2) continue;
    // Of 19,550 us since its own the first 200 do not count, and 50 of the rest are just after a
    // completion: 2 / 1,024 of an I/O by chance, so that 5 of 5 are no chance, 4 of 4 could be.
    EXPECT_EQ(waited.gates.back() == 2 * i, i >= 5) << i;
  }
}

// Two programs of one name that read now and then, each for itself.
TEST_F(DependenciesTest, WhoBeginsBesideOthersOfTheNameWaitsForItself) {
  std::vector<size_t> last(3, 0);
  for (size_t i = 0; i < 400; ++i) {
    // Every 1.3 and every 1.7 ms.
    const int64_t a_us = 1'300 * static_cast<int64_t>(next_[1]);
    const int64_t b_us = 1'700 * static_cast<int64_t>(next_[2]) + 3;
    const uint32_t thread = a_us < b_us ? 1 : 2;
    ++next_[thread];
    const int64_t at_us = std::min(a_us, b_us);
    IoRecord io = Io(Op::kRead, at_us * kUs, (at_us + 500) * kUs, 0, 4096);
    io.pid = thread;
    io.process = 5;
    const Waited waited = Hand(io);
    if (i >= 3) EXPECT_THAT(waited.gates, ElementsAre(last[thread])) << i;
    last[thread] = i;
  }
}

TEST_F(DependenciesTest, OfSeveralThatCompletedAtTheSameTimeTheOneThatArrivedLastIsTheLast) {
  for (int64_t begin_us = 0; begin_us < 10'000; begin_us += 1'000) {
    Next(1, Op::kRead, begin_us, begin_us + 100);
    Next(2, Op::kRead, begin_us, begin_us + 100);
    const size_t last = place_ - 1;
    const Waited caused = Next(9, Op::kWrite, begin_us + 200, begin_us + 300);
    EXPECT_THAT(caused.gates, testing::Contains(last));
    EXPECT_THAT(caused.gates, testing::Not(testing::Contains(last - 1)));
  }
}

TEST_F(DependenciesTest, AnIoThatCompletedWhenTheRecordingBeganIsWaitedForToo) {
  Next(1, Op::kRead, 0, 0);
  const Waited waited = Next(2, Op::kRead, 1'000, 1'100);
  EXPECT_THAT(waited.gates, ElementsAre(0));
  EXPECT_EQ(waited.think_us, 1'000);
}

// The thread writes and asks for durability; the journal's thread commits; the thread goes on.
TEST_F(DependenciesTest, AfterASyncWriteAThreadWaitsForTheCommitThatFollowed) {
  Next(1, Op::kWrite, 0, 1'000, kFlagSync);                            // 0
  const Waited journal = Next(7, Op::kWrite, 1'050, 2'000, kJournal);  // 1
  EXPECT_THAT(journal.gates, ElementsAre(0));
  EXPECT_EQ(journal.think_us, 50);
  const Waited commit = Next(7, Op::kWrite, 2'010, 4'000, kCommit);  // 2
  EXPECT_THAT(commit.gates, ElementsAre(1)) << "within a commit the journal waits for itself";
  Next(7, Op::kWrite, 6'000, 7'000, kJournal);  // 3: another commit
  Next(7, Op::kWrite, 7'010, 9'000, kCommit);   // 4
  const Waited next = Next(1, Op::kWrite, 14'000, 15'000, kFlagSync);
  EXPECT_THAT(next.gates, ElementsAre(0, 2));
  EXPECT_EQ(next.think_us, 10'000);
}

TEST_F(DependenciesTest, ACommitThatBeganBeforeTheWriteIsNotItsOwn) {
  Next(7, Op::kWrite, 0, 100, kJournal);     // 0
  Next(1, Op::kWrite, 50, 300, kFlagSync);   // 1
  Next(7, Op::kWrite, 110, 2'000, kCommit);  // 2
  EXPECT_THAT(Next(1, Op::kWrite, 9'000, 9'100, kFlagSync).gates, ElementsAre(1));
}

// Where new data lie is written down by the first commit that begins once they are on the drive.
TEST_F(DependenciesTest, ACommitThatBeganBeforeTheDataWereWrittenIsNotWaitedForIfAnotherFollowed) {
  Next(1, Op::kWrite, 0, 1'000, kFlagSync);     // 0
  Next(7, Op::kWrite, 900, 1'500, kJournal);    // 1: after 0 arrived, before it completed
  Next(7, Op::kWrite, 1'510, 3'000, kCommit);   // 2
  Next(7, Op::kWrite, 3'050, 4'000, kJournal);  // 3
  Next(7, Op::kWrite, 4'010, 6'000, kCommit);   // 4
  const Waited next = Next(1, Op::kWrite, 16'000, 17'000, kFlagSync);
  EXPECT_THAT(next.gates, ElementsAre(0, 4));
  EXPECT_EQ(next.think_us, 10'000);
}

TEST_F(DependenciesTest, WithoutAnotherItIsTheCommitThatBeganWhileTheDataWereWritten) {
  Next(1, Op::kWrite, 0, 1'000, kFlagSync);    // 0
  Next(7, Op::kWrite, 900, 1'500, kJournal);   // 1
  Next(7, Op::kWrite, 1'510, 3'000, kCommit);  // 2
  EXPECT_THAT(Next(1, Op::kWrite, 9'000, 9'100, kFlagSync).gates, ElementsAre(0, 2));
}

// Of two disks, each with a journal and its thread.
TEST_F(DependenciesTest, AThreadWaitsForACommitOfTheDiskThatItWroteTo) {
  Next(1, Op::kWrite, 0, 1'000, kFlagSync, 0);     // 0
  Next(7, Op::kWrite, 1'050, 2'000, kJournal, 0);  // 1
  Next(8, Op::kWrite, 1'060, 1'500, kJournal, 1);  // 2
  Next(8, Op::kWrite, 1'510, 1'900, kCommit, 1);   // 3: the first one to end
  Next(7, Op::kWrite, 2'010, 4'000, kCommit, 0);   // 4
  const Waited next = Next(1, Op::kRead, 5'000, 5'100);
  EXPECT_THAT(next.gates, ElementsAre(0, 4));
  EXPECT_EQ(next.think_us, 1'000);
}

// Of one whose data are on the other disk of an array.
TEST_F(DependenciesTest, AThreadWaitsForACommitWhoseRecordIsOnAnotherDiskOfTheArray) {
  Next(7, Op::kWrite, 0, 40, kJournal, 1);        // 0
  Next(7, Op::kWrite, 50, 100, kCommit, 1);       // 1
  Next(1, Op::kWrite, 200, 1'000, kFlagSync, 1);  // 2
  Next(8, Op::kWrite, 1'010, 1'050, kCommit, 2);  // 3: of a disk that belongs to no array
  Next(7, Op::kWrite, 1'060, 4'000, kCommit, 0);  // 4
  EXPECT_THAT(Next(1, Op::kRead, 5'000, 5'100, 0, 1).gates, ElementsAre(2, 4));
}

// A file system may have its journal on a disk of its own.
TEST_F(DependenciesTest, AThreadWaitsForACommitOfAnotherDiskWhereItsOwnHasNone) {
  Next(1, Op::kWrite, 0, 1'000, kFlagSync, 0);     // 0
  Next(7, Op::kWrite, 1'050, 2'000, kJournal, 1);  // 1
  Next(7, Op::kWrite, 2'010, 4'000, kCommit, 1);   // 2
  EXPECT_THAT(Next(1, Op::kRead, 5'000, 5'100, 0, 0).gates, ElementsAre(0, 2));
}

TEST_F(DependenciesTest, WhoWasWokenByAJournalsWriteWasSoByThatOfItsDisk) {
  for (const uint32_t device : {0, 1}) {  // of one thread each
    SCOPED_TRACE(device);
    const size_t first = place_;
    const int64_t from = 10'000 * device;
    Next(1 + device, Op::kRead, from, from + 100, 0, device);
    Next(7, Op::kWrite, from + 1'000, from + 2'000, kCommit, 0);
    Next(8, Op::kWrite, from + 1'010, from + 2'050, kCommit, 1);
    EXPECT_THAT(Next(1 + device, Op::kRead, from + 2'100, from + 2'200, 0, device).gates,
                ElementsAre(first, first + 1 + device));
  }
}

// As a program copies from one disk to another.
TEST_F(DependenciesTest, OrByThatOfAnotherDiskIfItsOwnWroteNothing) {
  Next(1, Op::kRead, 0, 100, 0, 0);               // 0
  Next(8, Op::kWrite, 1'000, 2'000, kCommit, 1);  // 1
  EXPECT_THAT(Next(1, Op::kRead, 2'100, 2'200, 0, 0).gates, ElementsAre(0, 1));
}

// Two programs that meet by chance are no one's cause.
TEST_F(DependenciesTest, NoThreadWaitsForTheJournalOfADiskThatItDoesNotUse) {
  Next(7, Op::kWrite, 0, 100, kCommit, 0);        // 0: each disk has a journal
  Next(8, Op::kWrite, 10, 110, kCommit, 1);       // 1
  Next(1, Op::kWrite, 200, 1'000, kFlagSync, 0);  // 2
  Next(8, Op::kWrite, 1'010, 1'100, kCommit, 1);  // 3
  EXPECT_THAT(Next(1, Op::kRead, 2'000, 2'100, 0, 0).gates, ElementsAre(2)) << "not for 3";  // 4
  Next(8, Op::kWrite, 2'900, 3'000, kCommit, 1);                                             // 5
  EXPECT_THAT(Next(1, Op::kRead, 3'100, 3'200, 0, 0).gates, ElementsAre(4)) << "not for 5";  // 6
  Next(8, Op::kWrite, 4'000, 5'000, kCommit, 1);                                             // 7
  EXPECT_THAT(Next(1, Op::kRead, 5'300, 5'400, 0, 1).gates, ElementsAre(6));                 // 8
  Next(8, Op::kWrite, 5'900, 6'000, kCommit, 1);                                             // 9
  EXPECT_THAT(Next(1, Op::kRead, 6'100, 6'200, 0, 0).gates, ElementsAre(8, 9))
      << "it was there before";
}

TEST_F(DependenciesTest, WithoutAnAskerACommitFollowsWhatItsDiskDidLast) {
  Next(7, Op::kWrite, 0, 40, kJournal, 0);   // 0
  Next(7, Op::kWrite, 50, 100, kCommit, 0);  // 1
  Next(1, Op::kRead, 0, 1'000, 0, 0);        // 2
  Next(2, Op::kRead, 10, 2'000, 0, 1);       // 3
  EXPECT_THAT(Next(7, Op::kWrite, 9'000, 9'100, kJournal, 0).gates, ElementsAre(1, 2));
}

// Devices 0 and 2 are of one machine, 1 is of another.
TEST(MergedDependenciesTest, NoThreadWaitsForWhatAnotherMachineDid) {
  Dependencies inferred(64, 8, {0, 9, 0});
  std::map<uint32_t, int> owner;
  int place = 0;
  const auto next = [&](uint32_t thread, uint32_t device, Op op, int64_t arrival_us,
                        int64_t complete_us, uint32_t flags = 0) {
    IoRecord io = Io(op, arrival_us * kUs, complete_us * kUs, 0, 4096);
    io.device = device;
    io.flags = flags;
    if (thread != 0) io.pid = thread;
    inferred.Arrive(io, /*no_fua=*/false);
    std::vector<uint32_t> slots;
    inferred.WaitOf(io, &slots);
    owner[*inferred.Add(io)] = place++;
    std::vector<int> gates;
    for (const uint32_t slot : slots) gates.push_back(owner[slot]);
    std::ranges::sort(gates);
    return gates;
  };
  next(1, 2, Op::kRead, 0, 100);   // 0
  next(5, 1, Op::kRead, 10, 200);  // 1
  next(0, 0, Op::kRead, 20, 40);   // 2: without a thread's id
  next(0, 1, Op::kRead, 30, 50);   // 3: likewise
  EXPECT_THAT(next(2, 0, Op::kRead, 300, 900), ElementsAre(0)) << "not 1, the last of all";
  EXPECT_THAT(next(0, 1, Op::kRead, 310, 320), ElementsAre(3)) << "not 2";
  EXPECT_THAT(next(1, 2, Op::kWrite, 1'000, 1'100, kFlagSync), ElementsAre(0, 4));  // 6: began 4
  next(6, 1, Op::kWrite, 1'110, 1'150, kCommit);                                    // 7
  next(7, 1, Op::kRead, 1'160, 1'170);                                              // 8: is new
  EXPECT_THAT(next(1, 2, Op::kRead, 5'000, 5'100), ElementsAre(6)) << "neither 7 nor 8";
}

// Unmounting writes the superblock, which is metadata, once the journal's thread has committed.
TEST_F(DependenciesTest, WhoWritesMetadataForItselfWaitsForTheCommitThatEndedJustBefore) {
  Next(1, Op::kWrite, 0, 100, kJournal);        // 0: mounted
  Next(1, Op::kRead, 150, 1'000);               // 1
  Next(7, Op::kWrite, 5'000, 6'000, kJournal);  // 2
  Next(7, Op::kWrite, 6'010, 9'000, kCommit);   // 3
  const Waited superblock = Next(1, Op::kWrite, 9'300, 9'900, kJournal);
  EXPECT_THAT(superblock.gates, ElementsAre(1, 3));
  EXPECT_EQ(superblock.think_us, 300);
}

TEST_F(DependenciesTest, AfterAReadNoCommitIsWaitedForButOneThatEndedJustBefore) {
  Next(1, Op::kRead, 0, 100);                                           // 0
  Next(7, Op::kWrite, 200, 1'000, kJournal);                            // 1
  Next(7, Op::kWrite, 1'010, 3'000, kCommit);                           // 2
  EXPECT_THAT(Next(1, Op::kRead, 4'000, 4'100).gates, ElementsAre(0));  // 3
  Next(7, Op::kWrite, 5'000, 6'000, kJournal);                          // 4
  const Waited woken = Next(1, Op::kRead, 6'150, 6'200);
  EXPECT_THAT(woken.gates, ElementsAre(3));
  EXPECT_THAT(woken.writing, ElementsAre(4)) << "whatever the journal writes in the replay";
  EXPECT_EQ(woken.think_us, 150);
}

// The block layer writes and then flushes; software saw the end of the flush.
TEST_F(DependenciesTest, AFuaWriteOfADeviceWithoutFuaCompletesWithTheFlushThatFollowsIt) {
  no_fua_ = true;
  Next(1, Op::kWrite, 0, 1'000, kFlagSync | kFlagFua);      // 0
  Next(8, Op::kFlush, 1'005, 4'000, kFlagDerived);          // 1
  const Waited between = Next(1, Op::kRead, 2'000, 2'100);  // 2
  EXPECT_THAT(between.gates, IsEmpty());
  const Waited after = Next(1, Op::kRead, 4'300, 4'400);
  EXPECT_THAT(after.gates, ElementsAre(0, 2));
  EXPECT_EQ(after.think_us, 300);
}

// A shell reads, starts a program that reads, and goes on when that has ended.
TEST_F(DependenciesTest, AThreadWaitsForTheOnesThatBeganSinceItsLastIo) {
  Next(2, Op::kRead, 0, 50);                                            // 0: was there before
  Next(1, Op::kRead, 10, 100);                                          // 1: the shell
  EXPECT_THAT(Next(3, Op::kRead, 2'000, 3'000).gates, ElementsAre(1));  // 2
  Next(2, Op::kRead, 3'500, 5'000);                                     // 3
  const Waited next = Next(1, Op::kRead, 9'000, 9'100);
  EXPECT_THAT(next.gates, ElementsAre(1, 2));
  EXPECT_EQ(next.think_us, 6'000);
}

// What the flush stands for may have to wait for another flush; until one is issued nobody can
// tell.
TEST_F(DependenciesTest, TheFlushAfterAFuaWriteMayBeginLater) {
  no_fua_ = true;
  Next(1, Op::kWrite, 0, 1'000, kFlagSync | kFlagFua);                  // 0
  EXPECT_THAT(Next(1, Op::kRead, 2'000, 2'100).gates, IsEmpty());       // 1
  Next(8, Op::kFlush, 4'000, 7'000, kFlagDerived);                      // 2
  Next(8, Op::kFlush, 4'500, 6'000, kFlagDerived);                      // 3: not the first
  EXPECT_THAT(Next(1, Op::kRead, 6'500, 6'600).gates, ElementsAre(1));  // 4
  const Waited after = Next(1, Op::kRead, 7'300, 7'400);
  EXPECT_THAT(after.gates, ElementsAre(0, 4));
  EXPECT_EQ(after.think_us, 300);
}

// It is known only after the read, as no record arrives before.
TEST_F(DependenciesTest, TheFlushAfterAFuaWriteMayEndBeforeAnotherIo) {
  no_fua_ = true;
  Next(1, Op::kWrite, 0, 100, kFlagFua);  // 0
  Next(2, Op::kRead, 20, 800);            // 1
  IoRecord flush = Io(Op::kFlush, 90 * kUs, 500 * kUs, 0, 0);
  flush.issue_ns = 101 * kUs;
  flush.flags = kFlagDerived;
  Hand(flush);  // 2
  EXPECT_THAT(Next(9, Op::kWrite, 1'000, 1'100).gates, ElementsAre(1));
}

TEST_F(DependenciesTest, AFuaWriteThatNoFlushFollowsIsCompleteByItself) {
  no_fua_ = true;
  Next(1, Op::kWrite, 0, 1'000, kFlagSync | kFlagFua);             // 0
  EXPECT_THAT(Next(1, Op::kRead, 5'900, 6'900).gates, IsEmpty());  // 1: one may still come
  EXPECT_THAT(Next(1, Op::kRead, 7'000, 7'100).gates, ElementsAre(0, 1));
}

// A shell starts a program that makes a file durable, and goes on when that has ended.
TEST_F(DependenciesTest, AProgramThatWasStartedEndsWithTheCommitItWaitedFor) {
  Next(1, Op::kRead, 0, 100);                    // 0: the shell
  Next(3, Op::kWrite, 2'000, 3'000, kFlagSync);  // 1
  Next(7, Op::kWrite, 3'050, 4'000, kJournal);   // 2
  Next(7, Op::kWrite, 4'010, 8'000, kCommit);    // 3
  const Waited next = Next(1, Op::kRead, 15'000, 15'100);
  EXPECT_THAT(next.gates, ElementsAre(0, 3));
  EXPECT_EQ(next.think_us, 7'000);
}

TEST_F(DependenciesTest, WithoutThreadsTheOrderOfCompletionsIsKept) {
  Hand(Read(0, 100));
  Hand(Read(10, 200));
  EXPECT_THAT(Hand(Read(150, 180)).gates, ElementsAre(0));
  EXPECT_THAT(Hand(Read(300, 400)).gates, ElementsAre(1, 2));
}

TEST_F(DependenciesTest, OfMoreThreadsThanChainsTheOneSilentForLongestGivesWay) {
  for (uint32_t thread = 1; thread <= 4; ++thread) {
    Next(thread, Op::kRead, thread * 10, thread * 10 + 1);
  }
  const uint32_t second = Next(2, Op::kRead, 100, 101).chain;
  const uint32_t first = Next(1, Op::kRead, 110, 111).chain;
  EXPECT_NE(first, second);
  const Waited fifth = Next(5, Op::kRead, 120, 121);  // takes that of the third thread
  EXPECT_THAT(fifth.gates, ElementsAre(5)) << "as new: for the last completion of all";
  EXPECT_EQ(Next(1, Op::kRead, 130, 131).chain, first);
  EXPECT_EQ(Next(2, Op::kRead, 140, 141).chain, second);
}

TEST_F(DependenciesTest, BeyondTheSlotsAnIoGatesNothing) {
  Dependencies few(2, 4);
  std::vector<uint32_t> gates;
  for (int i = 0; i < 3; ++i) {
    const IoRecord io = Read(i, 1'000);
    few.Arrive(io, false);
    few.WaitOf(io, &gates);
    EXPECT_EQ(few.Add(io).has_value(), i < 2);
  }
  const IoRecord open = Read(5, {});
  few.Arrive(open, false);
  EXPECT_FALSE(few.Add(open).has_value()) << "nobody knows when it completed";
}

// However long the work: those in flight, those not told yet, and the last 64 commits.
TEST_F(DependenciesTest, SlotsAreUsedAgain) {
  Dependencies inferred(80, 4);
  std::vector<uint32_t> gates;
  for (int64_t i = 0; i < 10'000; ++i) {
    IoRecord io = Io(i % 5 == 0 ? Op::kWrite : Op::kRead, i * 100, i * 100 + 250, 0, 4096);
    io.pid = static_cast<uint32_t>(1 + i % 3);
    io.flags = i % 10 == 0 ? kCommit : 0;
    inferred.Arrive(io, false);
    inferred.WaitOf(io, &gates);
    ASSERT_TRUE(inferred.Add(io).has_value()) << i;
  }
}

using Part = Dependencies::CommitPart;

TEST_F(DependenciesTest, ACommitIsThereOnceForEachThreadThatAskedForIt) {
  CommitBefore();                                                 // 0, 1
  Next(1, Op::kWrite, 300, 400, kFlagSync);                       // 2
  Next(2, Op::kWrite, 310, 450, kFlagSync);                       // 3
  const Waited begins = Next(7, Op::kWrite, 480, 600, kJournal);  // 4
  EXPECT_EQ(begins.part, Part::kBegins);
  EXPECT_TRUE(begins.asked);
  EXPECT_THAT(begins.gates, ElementsAre(1, 2)) << "1 is not shared";
  EXPECT_EQ(begins.think_us, 80);
  ASSERT_EQ(begins.copies.size(), 1u);
  EXPECT_THAT(begins.copies[0].gates, ElementsAre(1, 3));
  EXPECT_EQ(begins.copies[0].think_us, 30);

  const Waited more = Next(7, Op::kWrite, 485, 620, kJournal);  // 5
  EXPECT_EQ(more.part, Part::kWithin);
  EXPECT_THAT(more.gates, IsEmpty());
  EXPECT_EQ(more.think_us, 85) << "from what the first of its commit waited for";
  const Waited ends = Next(7, Op::kWrite, 630, 900, kCommit);  // 6
  EXPECT_EQ(ends.part, Part::kEnds);
  EXPECT_THAT(ends.gates, ElementsAre(4, 5));
  EXPECT_THAT(ends.gate_copies, ElementsAre(0, 0));
  EXPECT_EQ(ends.think_us, 10);
  ASSERT_EQ(ends.copies.size(), 1u);
  EXPECT_THAT(ends.copies[0].gates, ElementsAre(4, 5));
  EXPECT_THAT(ends.copies[0].gate_copies, ElementsAre(1, 1));

  const Waited second = Next(2, Op::kRead, 1'000, 1'100);
  EXPECT_THAT(second.gates, ElementsAre(3, 6));
  EXPECT_THAT(second.gate_copies, ElementsAre(0, 1)) << "its own copy of the commit";
  const Waited first = Next(1, Op::kRead, 1'300, 1'400);
  EXPECT_THAT(first.gates, ElementsAre(2, 6));
  EXPECT_THAT(first.gate_copies, ElementsAre(0, 0));
  EXPECT_EQ(first.think_us, 400);
}

// Nobody but the record can name the first write any more, as the second one completed later.
TEST_F(DependenciesTest, EachCopyOfACommitRecordWaitsForItsOwnWrites) {
  CommitBefore();                                                // 0, 1
  Next(1, Op::kWrite, 200, 300, kFlagSync);                      // 2
  Next(2, Op::kWrite, 210, 310, kFlagSync);                      // 3
  Next(7, Op::kWrite, 400, 450, kJournal);                       // 4
  Next(7, Op::kWrite, 410, 500, kJournal);                       // 5
  const Waited record = Next(7, Op::kWrite, 510, 900, kCommit);  // 6
  EXPECT_THAT(record.gates, ElementsAre(4, 5));
  EXPECT_THAT(record.gate_copies, ElementsAre(0, 0));
  ASSERT_EQ(record.copies.size(), 1U);
  EXPECT_THAT(record.copies[0].gates, ElementsAre(4, 5));
  EXPECT_THAT(record.copies[0].gate_copies, ElementsAre(1, 1));
}

TEST_F(DependenciesTest, WhoAskedWhileTheJournalWasBusyIsServedWhenThatEnds) {
  CommitBefore();                                                   // 0, 1
  Next(1, Op::kWrite, 300, 400, kFlagSync);                         // 2
  Next(7, Op::kWrite, 410, 500, kJournal);                          // 3: for thread 1
  Next(2, Op::kWrite, 420, 600, kFlagSync);                         // 4
  Next(7, Op::kWrite, 510, 5'000, kCommit);                         // 5
  const Waited next = Next(7, Op::kWrite, 5'030, 5'100, kJournal);  // 6
  EXPECT_TRUE(next.asked);
  EXPECT_THAT(next.copies, IsEmpty()) << "thread 1 has been served";
  EXPECT_THAT(next.gates, ElementsAre(4)) << "not 5: it comes after whichever is under way";
  EXPECT_EQ(next.think_us, 30) << "from the end of the commit before, as that came later";
}

TEST_F(DependenciesTest, WhoCannotHaveCausedACommitDidNotAskForIt) {
  const auto asks = [this](int64_t from_us) {
    const Waited begins = Next(7, Op::kWrite, from_us, from_us + 10, kJournal);
    EXPECT_EQ(begins.part, Part::kBegins);
    Next(7, Op::kWrite, from_us + 20, from_us + 100, kCommit);
    return begins.asked;
  };
  CommitBefore();
  Next(1, Op::kWrite, 2'000, 2'100, kFlagSync);
  Next(1, Op::kRead, 2'150, 2'200);
  EXPECT_FALSE(asks(2'300)) << "its last I/O is a read";
  Next(1, Op::kWrite, 3'000, 3'900, kFlagSync);
  EXPECT_FALSE(asks(3'200)) << "its write is in flight";
  IoRecord elsewhere = Io(Op::kWrite, 5'000 * kUs, 5'100 * kUs, 0, 4096);
  elsewhere.device = 1;
  elsewhere.pid = 1;
  elsewhere.flags = kFlagSync;
  Hand(elsewhere);
  EXPECT_FALSE(asks(5'200)) << "on another device";
  Next(1, Op::kWrite, 6'000, 6'100, kFlagSync);
  EXPECT_TRUE(asks(6'500));
  EXPECT_FALSE(asks(6'650)) << "it has been served";
}

TEST_F(DependenciesTest, WhoCouldHaveCausedACommitBeforeThatDidSoIfNobodyElseCould) {
  CommitBefore();                                                     // 0, 1
  Next(1, Op::kWrite, 1'000, 1'100, kFlagSync);                       // 2
  Next(2, Op::kWrite, 1'350, 1'450, kFlagSync);                       // 3
  const Waited of_one = Next(7, Op::kWrite, 1'501, 1'600, kJournal);  // 4
  EXPECT_THAT(of_one.gates, ElementsAre(1, 3)) << "and not 2, 401 us before";
  EXPECT_THAT(of_one.copies, IsEmpty());
  Next(7, Op::kWrite, 1'610, 2'000, kCommit);                          // 5
  Next(1, Op::kWrite, 3'000, 3'100, kFlagSync);                        // 6
  Next(2, Op::kWrite, 3'010, 3'150, kFlagSync);                        // 7
  const Waited of_both = Next(7, Op::kWrite, 9'000, 9'100, kJournal);  // 8
  EXPECT_TRUE(of_both.asked);
  EXPECT_THAT(of_both.gates, ElementsAre(6));
  ASSERT_THAT(of_both.copies, SizeIs(1));
  EXPECT_THAT(of_both.copies[0].gates, ElementsAre(7));
}

TEST_F(DependenciesTest, WithoutAnAskerACommitFollowsTheOneBefore) {
  CommitBefore();                                                    // 0, 1
  const Waited first = Next(7, Op::kWrite, 5'000, 5'100, kJournal);  // 2
  EXPECT_EQ(first.part, Part::kBegins);
  EXPECT_FALSE(first.asked);
  EXPECT_THAT(first.gates, ElementsAre(1)) << "which waited for 0";
  Next(7, Op::kWrite, 5'110, 5'900, kCommit);  // 3
  EXPECT_THAT(Next(7, Op::kWrite, 9'000, 9'100, kJournal).gates, ElementsAre(3));
}

TEST_F(DependenciesTest, OnlyACommitLikeThoseOfAKnownJournalMayBeShared) {
  Next(1, Op::kWrite, 0, 100, kFlagSync);
  EXPECT_EQ(Next(7, Op::kWrite, 110, 200, kJournal).part, Part::kNone) << "no journal's so far";
  EXPECT_EQ(Next(7, Op::kWrite, 210, 300, kCommit).part, Part::kNone);
  Next(1, Op::kWrite, 400, 500, kFlagSync);
  EXPECT_EQ(Next(7, Op::kWrite, 510, 600, kCommit).part, Part::kNone) << "one write is all of it";
  Next(1, Op::kWrite, 700, 800, kFlagSync);
  EXPECT_EQ(Next(7, Op::kWrite, 810, 900, kJournal).part, Part::kBegins);
}

// In Btrfs a program writes the log, flushes, and writes a superblock that counts. That one does is
// known after its first commit.
TEST_F(DependenciesTest, ACommitOfWhoWritesTheLogItselfIsAChainOfItsOwn) {
  Next(1, Op::kWrite, 0, 100, kFlagSync);  // 0
  EXPECT_EQ(Next(1, Op::kWrite, 110, 200, kJournal).part, Part::kNone);
  Next(1, Op::kFlush, 210, 500);
  EXPECT_EQ(Next(1, Op::kWrite, 510, 600, kJournal | kFlagFua).part, Part::kNone);  // 3
  const uint32_t own = Next(1, Op::kWrite, 1'000, 1'100, kFlagSync).chain;          // 4

  const Waited begins = Next(1, Op::kWrite, 1'130, 1'200, kJournal);  // 5
  EXPECT_EQ(begins.part, Part::kBegins);
  EXPECT_TRUE(begins.asked) << "by who writes it";
  EXPECT_NE(begins.chain, own);
  EXPECT_THAT(begins.gates, ElementsAre(4));
  EXPECT_EQ(begins.think_us, 30);
  const Waited flush = Next(1, Op::kFlush, 1'210, 1'500);  // 6
  EXPECT_EQ(flush.part, Part::kWithin);
  EXPECT_EQ(flush.chain, begins.chain);
  EXPECT_THAT(flush.gates, ElementsAre(5));
  const Waited superblock = Next(1, Op::kWrite, 1'520, 1'600, kJournal | kFlagFua);  // 7
  EXPECT_EQ(superblock.part, Part::kEnds);
  EXPECT_THAT(superblock.gates, ElementsAre(6));
  EXPECT_EQ(superblock.think_us, 20);

  const Waited next = Next(1, Op::kRead, 2'000, 2'050);  // 8
  EXPECT_EQ(next.chain, own);
  EXPECT_THAT(next.gates, ElementsAre(4, 7));
  EXPECT_EQ(next.think_us, 400);
  EXPECT_THAT(Next(1, Op::kRead, 2'100, 2'150).gates, ElementsAre(8));
}

// In XFS the log is written by one of those who fsync, for all of them.
TEST_F(DependenciesTest, WhoFsyncsBesideTheOneThatWritesTheLogHasACopyOfItsCommit) {
  Next(1, Op::kRead, 0, 50);                                  // 0
  Next(2, Op::kRead, 10, 60);                                 // 1
  Next(1, Op::kWrite, 100, 200, kFlagSync);                   // 2
  Next(2, Op::kWrite, 110, 190, kFlagSync);                   // 3
  const Waited log = Next(1, Op::kWrite, 220, 600, kCommit);  // 4
  EXPECT_EQ(log.part, Part::kWhole);
  EXPECT_THAT(log.gates, ElementsAre(3)) << "the copy of thread 2, whose write came first";
  EXPECT_EQ(log.think_us, 30);
  ASSERT_EQ(log.copies.size(), 1u);
  EXPECT_THAT(log.copies[0].gates, ElementsAre(2));
  EXPECT_EQ(log.copies[0].think_us, 20);
  const Waited other = Next(2, Op::kWrite, 700, 800, kFlagSync);  // 5
  EXPECT_THAT(other.gates, ElementsAre(3, 4));
  EXPECT_THAT(other.gate_copies, ElementsAre(0, 0));
  const Waited writer = Next(1, Op::kWrite, 750, 850, kFlagSync);  // 6
  EXPECT_THAT(writer.gates, ElementsAre(2, 4));
  EXPECT_THAT(writer.gate_copies, ElementsAre(0, 1));
  const Waited next = Next(2, Op::kWrite, 860, 1'400, kCommit);  // 7
  EXPECT_EQ(next.chain, log.chain) << "that of the device, whoever writes";
  EXPECT_THAT(next.gates, ElementsAre(5));
  ASSERT_EQ(next.copies.size(), 1u);
  EXPECT_THAT(next.copies[0].gates, ElementsAre(6));
}

// The kernel makes who writes wait before it takes what is written, where others write much.
TEST_F(DependenciesTest, WhatTheKernelTakesLateIsNoThinkingOfWhoWritesACommit) {
  CommitBefore();
  int64_t base_us = 0;
  // Thread 1 asks until 100, and the commit's first write arrives at 150; another thread's read
  // ends 50 us before the next write.
  const auto next_write_thinks_us = [&](int64_t issue_us, int64_t next_us) {
    base_us += 20'000;
    Next(1, Op::kWrite, base_us, base_us + 100, kFlagSync);
    IoRecord first = Io(Op::kWrite, (base_us + 150) * kUs, (base_us + 9'000) * kUs, 0, 4096);
    first.issue_ns = (base_us + issue_us) * kUs;
    first.pid = 7;
    first.flags = kJournal;
    Hand(first);
    Next(2, Op::kRead, base_us + 160, base_us + next_us - 50);
    const Waited next = Next(7, Op::kWrite, base_us + next_us, base_us + 9'100, kJournal);
    EXPECT_EQ(next.part, Part::kWithin);
    EXPECT_THAT(next.gates, IsEmpty());
    Next(7, Op::kWrite, base_us + 9'200, base_us + 9'500, kCommit);
    return next.think_us;
  };
  EXPECT_EQ(next_write_thinks_us(2'100, 2'000), 50);
  EXPECT_EQ(next_write_thinks_us(1'800, 2'000), 50);
  EXPECT_EQ(next_write_thinks_us(1'799, 2'000), 1'900) << "it was taken before";
  EXPECT_EQ(next_write_thinks_us(600, 551), 50);
  EXPECT_EQ(next_write_thinks_us(600, 550), 450) << "it need not have waited";
}

// The same of a commit that is not shared, as it begins long after its thread's last I/O.
TEST_F(DependenciesTest, WhatTheKernelTakesLateIsNoThinkingInACommitOfOnesOwnEither) {
  Next(1, Op::kRead, 0, 50);
  IoRecord first = Io(Op::kWrite, 1'000 * kUs, 9'000 * kUs, 0, 4096);
  first.issue_ns = 4'100 * kUs;
  first.pid = 1;
  first.flags = kJournal;
  EXPECT_EQ(Hand(first).part, Part::kNone);
  Next(2, Op::kRead, 1'500, 3'950);
  EXPECT_EQ(Next(1, Op::kWrite, 4'000, 9'100, kJournal).think_us, 50);
  EXPECT_EQ(Next(1, Op::kWrite, 4'001, 9'100, kJournal).think_us, 51);
}

// In XFS all who wait for a commit flush after it, but for who wrote it.
TEST_F(DependenciesTest, WhoDidNotWriteTheLogFlushesWhereItsCopyIsLeftOut) {
  Next(1, Op::kRead, 0, 50);                           // 0
  Next(2, Op::kRead, 10, 60);                          // 1
  Next(1, Op::kWrite, 100, 200, kFlagSync);            // 2
  Next(2, Op::kWrite, 110, 190, kFlagSync);            // 3
  Next(1, Op::kWrite, 220, 600, kCommit);              // 4: its first copy is that of thread 2
  const Waited flush = Next(2, Op::kFlush, 650, 900);  // 5
  EXPECT_THAT(flush.gates, ElementsAre(3, 4));
  EXPECT_THAT(flush.gate_copies, ElementsAre(0, 0));
  EXPECT_THAT(flush.if_left_out, ElementsAre(4));
  EXPECT_EQ(flush.think_us, 50);
  const Waited writer = Next(1, Op::kRead, 700, 750);  // 6
  EXPECT_EQ(writer.flush_first, std::pair(size_t{4}, 1u));
  EXPECT_THAT(writer.gates, ElementsAre(2, kFlush));
  EXPECT_EQ(writer.think_us, 100) << "as if the flush had taken no time";
  const Waited next = Next(1, Op::kRead, 800, 850);
  EXPECT_EQ(next.flush_first, std::nullopt);
  EXPECT_THAT(next.gates, ElementsAre(6));

  Next(1, Op::kWrite, 1'000, 1'100, kFlagSync);                     // 8
  Next(1, Op::kWrite, 1'110, 1'500, kCommit);                       // 9
  const Waited again = Next(1, Op::kWrite, 1'600, 1'700, kCommit);  // 10: straight after its own
  EXPECT_EQ(again.part, Part::kWhole);
  EXPECT_EQ(again.flush_first, std::pair(size_t{9}, 0u));
  EXPECT_THAT(again.gates, Contains(kFlush));
}

TEST_F(DependenciesTest, AFlushLongAfterACommitOrByItsWriterIsOneLikeOthers) {
  Next(1, Op::kRead, 0, 50);
  Next(2, Op::kRead, 10, 60);
  Next(1, Op::kWrite, 100, 200, kFlagSync);
  Next(2, Op::kWrite, 110, 190, kFlagSync);
  Next(1, Op::kWrite, 220, 600, kCommit);
  EXPECT_THAT(Next(1, Op::kFlush, 620, 900).if_left_out, IsEmpty()) << "by who wrote it";
  EXPECT_THAT(Next(2, Op::kFlush, 1'001, 1'200).if_left_out, IsEmpty()) << "401 us after it";
  Next(1, Op::kWrite, 1'300, 1'400, kFlagSync);
  Next(1, Op::kWrite, 1'410, 1'700, kCommit);
  EXPECT_EQ(Next(1, Op::kRead, 1'800, 1'900).flush_first, std::nullopt);
}

TEST_F(DependenciesTest, OnlyTheLogsNextCommitStraightAfterItsWritersIoMayBeShared) {
  Next(1, Op::kRead, 0, 50);
  Next(2, Op::kRead, 0, 50);
  Next(1, Op::kWrite, 100, 200, kFlagSync);
  const Waited late = Next(1, Op::kWrite, 601, 700, kCommit);
  EXPECT_EQ(late.part, Part::kNone) << "401 us: it has not only waited";
  EXPECT_THAT(Next(1, Op::kWrite, 800, 900, kFlagSync).gates, Contains(3));
  EXPECT_EQ(Next(1, Op::kWrite, 1'300, 2'000, kCommit).part, Part::kWhole);
  Next(2, Op::kWrite, 1'400, 1'500, kFlagSync);
  EXPECT_EQ(Next(2, Op::kWrite, 1'510, 1'600, kCommit).part, Part::kNone) << "beside another one";
  Next(2, Op::kWrite, 1'610, 1'700, kFlagSync);
  EXPECT_EQ(Next(2, Op::kWrite, 2'400, 2'500, kCommit).part, Part::kWhole)
      << "the log was not at rest before 2,000";
  Next(3, Op::kWrite, 2'600, 2'700, kFlagSync);
  Next(1, Op::kWrite, 2'720, 2'750, kFlagSync);
  EXPECT_EQ(Next(1, Op::kWrite, 2'760, 3'200, kCommit).part, Part::kWhole);
  const Waited third = Next(3, Op::kWrite, 3'210, 3'300, kCommit);
  EXPECT_EQ(third.part, Part::kWhole);
  EXPECT_EQ(third.think_us, 10) << "from when the log came to rest";
  EXPECT_EQ(third.asks_after_us, 60) << "not before that commit began";
}

// Of a recording that lost it, say.
TEST_F(DependenciesTest, ACommitWhoseRecordNeverCameDoesNotOccupyTheLog) {
  for (const uint32_t thread : {1u, 2u}) {
    const int64_t at_us = thread * 1'000;
    Next(thread, Op::kRead, at_us, at_us + 10);
    Next(thread, Op::kWrite, at_us + 20, at_us + 30, kJournal);
    Next(thread, Op::kFlush, at_us + 40, at_us + 50);
    Next(thread, Op::kWrite, at_us + 60, at_us + 70, kCommit);
  }
  Next(1, Op::kWrite, 3'000, 3'100, kFlagSync);
  EXPECT_EQ(Next(1, Op::kWrite, 3'110, 3'200, kJournal).part, Part::kBegins);
  Next(2, Op::kWrite, 3'300, 3'400, kFlagSync);
  EXPECT_EQ(Next(2, Op::kWrite, 3'410, 3'500, kJournal).part, Part::kBegins);
  EXPECT_EQ(Next(2, Op::kWrite, 3'510, 3'600, kCommit).part, Part::kEnds);
}

TEST_F(DependenciesTest, AfterItsOwnCommitRecordAThreadWaitsForNoOthers) {
  Next(2, Op::kRead, 0, 50);                 // 0
  Next(1, Op::kWrite, 10, 100, kFlagSync);   // 1
  Next(1, Op::kWrite, 110, 600, kCommit);    // 2
  Next(2, Op::kWrite, 620, 700, kFlagSync);  // 3
  Next(2, Op::kWrite, 710, 1'200, kCommit);  // 4
  const Waited next = Next(1, Op::kRead, 2'000, 2'100);
  EXPECT_THAT(next.gates, ElementsAre(1, 2));
  EXPECT_EQ(next.think_us, 1'400);
}

// A shell starts a program that writes to the journal itself.
TEST_F(DependenciesTest, AProgramThatWasStartedMayEndWithACommitOfItsOwn) {
  Next(1, Op::kRead, 0, 100);                    // 0: the shell
  Next(3, Op::kWrite, 2'000, 3'000, kFlagSync);  // 1
  Next(3, Op::kWrite, 3'050, 4'000, kCommit);    // 2
  Next(7, Op::kWrite, 4'100, 5'000, kCommit);    // 3: a thread that does nothing else
  const Waited next = Next(1, Op::kRead, 8'000, 8'100);
  EXPECT_THAT(next.gates, ElementsAre(0, 2));
  EXPECT_EQ(next.think_us, 4'000);
}

TEST_F(DependenciesTest, MoreAskersThanCopiesShareTheFirst) {
  Dependencies many(256, 64);
  const auto next = [&](uint32_t thread, int64_t from_us, int64_t to_us, uint32_t flags) {
    IoRecord io = Io(Op::kWrite, from_us * kUs, to_us * kUs, 0, 4096);
    io.pid = thread;
    io.flags = flags;
    many.Arrive(io, false);
    std::vector<uint32_t> gates;
    const Dependencies::Wait wait = many.WaitOf(io, &gates);
    const auto slot = many.Add(io);
    for (uint32_t copy = 1; copy < wait.copies; ++copy) many.AddCopy(*slot);
    return std::pair(wait.copies, std::pair(*slot, gates));
  };
  next(7, 0, 40, kJournal);
  next(7, 50, 100, kCommit);
  for (uint32_t thread = 100; thread < 120; ++thread) next(thread, 200, 300 + thread, kFlagSync);
  EXPECT_EQ(next(7, 450, 500, kJournal).first, Dependencies::kMaxCopies);
  const uint32_t record = next(7, 510, 600, kCommit).second.first;
  EXPECT_THAT(next(119, 1'000, 1'100, kFlagSync).second.second, Contains(record));
  EXPECT_THAT(next(100, 1'000, 1'100, kFlagSync).second.second, Contains(record));
  EXPECT_THAT(next(101, 1'000, 1'100, kFlagSync).second.second, Not(Contains(record)));
}

// Thread 1 waits after its commit for what the next one writes, then once goes on meanwhile.
TEST_F(DependenciesTest, AThreadWaitsForTheJournalsWritesIfItDidTheLastTime) {
  CommitBefore();                                                    // 0, 1
  Next(1, Op::kWrite, 300, 400, kFlagSync);                          // 2
  Next(7, Op::kWrite, 410, 500, kJournal);                           // 3
  Next(2, Op::kWrite, 420, 510, kFlagSync);                          // 4
  Next(7, Op::kWrite, 510, 1'000, kCommit);                          // 5
  Next(7, Op::kWrite, 1'020, 4'000, kJournal);                       // 6: for thread 2
  Next(7, Op::kWrite, 4'010, 5'000, kCommit);                        // 7
  const Waited held = Next(1, Op::kWrite, 4'050, 4'200, kFlagSync);  // 8
  EXPECT_THAT(held.gates, ElementsAre(2, 5));
  EXPECT_THAT(held.writing, ElementsAre(6));
  EXPECT_EQ(held.think_us, 50);
  EXPECT_EQ(held.how, 0u) << "50 us is what it thinks once the writes are complete";
  EXPECT_THAT(held.after, ElementsAre(5)) << "and others may have begun when it has thought";
  Next(7, Op::kWrite, 5'020, 5'100, kJournal);                        // 9: for 8
  Next(7, Op::kWrite, 5'110, 6'000, kCommit);                         // 10
  const Waited again = Next(1, Op::kWrite, 9'000, 9'100, kFlagSync);  // 11
  EXPECT_THAT(again.gates, ElementsAre(8, 10));
  EXPECT_THAT(again.writing, IsEmpty());
  EXPECT_THAT(again.after, ElementsAre(10)) << "of that journal";
  EXPECT_EQ(again.think_us, 3'000);
  EXPECT_EQ(again.goes_on_us, 50) << "as the last time";
  Next(7, Op::kWrite, 9'120, 9'200, kJournal);   // 12: for 11
  Next(2, Op::kWrite, 9'130, 9'240, kFlagSync);  // 13
  Next(7, Op::kWrite, 9'210, 9'500, kCommit);    // 14
  Next(7, Op::kWrite, 9'520, 9'900, kJournal);   // 15: for thread 2
  EXPECT_THAT(Next(1, Op::kWrite, 9'600, 9'700, kFlagSync).after, IsEmpty())
      << "15 is being written and it goes on";    // 16
  Next(7, Op::kWrite, 9'910, 10'000, kCommit);    // 17
  Next(7, Op::kWrite, 10'020, 10'100, kJournal);  // 18: for 16
  Next(7, Op::kWrite, 10'110, 10'500, kCommit);   // 19
  EXPECT_THAT(Next(1, Op::kWrite, 12'000, 12'100).after, IsEmpty());
}

// Thread 1 waits for what the journal writes, and the next time to the end of a second commit: then
// for what is written when it has thought, too.
TEST_F(DependenciesTest, WhoSharesBlocksMayWaitBeforeItThinksAndAfter) {
  CommitsForTwo();                                                   // 0 to 8
  Next(7, Op::kWrite, 3'020, 4'000, kJournal);                       // 9
  Next(7, Op::kWrite, 4'010, 6'000, kCommit);                        // 10
  Next(1, Op::kWrite, 4'070, 4'100, kFlagSync);                      // 11: shares
  Next(7, Op::kWrite, 6'020, 6'100, kJournal);                       // 12: for 11
  Next(2, Op::kWrite, 6'030, 6'090, kFlagSync);                      // 13
  Next(7, Op::kWrite, 6'110, 7'000, kCommit);                        // 14
  Next(7, Op::kWrite, 7'050, 7'400, kJournal);                       // 15: for 13
  Next(7, Op::kWrite, 7'410, 9'000, kCommit);                        // 16
  const Waited held = Next(1, Op::kWrite, 9'060, 9'100, kFlagSync);  // 17
  EXPECT_THAT(held.gates, ElementsAre(11, 14));
  EXPECT_THAT(held.writing, ElementsAre(16));
  EXPECT_EQ(held.how, Dependencies::kToTheEnd);
  EXPECT_THAT(held.after, ElementsAre(14));
  EXPECT_EQ(held.think_us, 60);
  EXPECT_EQ(held.goes_on_us, 70) << "after 9";
}

// Thread 1 goes on when the second commit is over.
TEST_F(DependenciesTest, WhoWaitsForACommitItDidNotAskForWaitsForWhicheverIsNext) {
  CommitsForTwo();
  const Waited held = Next(1, Op::kWrite, 3'060, 3'100, kFlagSync);  // 9
  EXPECT_THAT(held.gates, ElementsAre(3, 6));
  EXPECT_THAT(held.writing, ElementsAre(8));
  EXPECT_EQ(held.how, Dependencies::kToTheEnd);
  EXPECT_EQ(held.think_us, 60);
}

TEST_F(DependenciesTest, ACommitThatNobodyAskedForIsWaitedForItself) {
  const Waited held = AfterASecondCommitFrom(1'401);
  EXPECT_THAT(held.gates, ElementsAre(2, 4, 6));
  EXPECT_THAT(held.writing, IsEmpty());
}

// Whoever asked did so during the one before.
TEST_F(DependenciesTest, ACommitStraightAfterAnotherIsOfNobodysOwn) {
  const Waited held = AfterASecondCommitFrom(1'400);
  EXPECT_THAT(held.gates, ElementsAre(2, 4));
  EXPECT_THAT(held.writing, ElementsAre(6));
  EXPECT_EQ(held.how, Dependencies::kToTheEnd);
}

// Nor is one for which its thread did not sleep, though it begins late.
TEST_F(DependenciesTest, ACommitOfAJournalThatWasNotWokenIsOfNobodysOwn) {
  CommitBefore();                               // 0, 1
  Next(1, Op::kWrite, 300, 400, kFlagSync);     // 2
  Next(7, Op::kWrite, 410, 500, kJournal);      // 3
  Next(7, Op::kWrite, 510, 1'000, kCommit);     // 4
  Woken(3, 1'100, 9, 50);                       // 5: so wakes are told
  Next(7, Op::kWrite, 3'000, 3'600, kJournal);  // 6
  Next(7, Op::kWrite, 3'610, 5'000, kCommit);   // 7
  EXPECT_THAT(Woken(1, 5'060, 7, 30).writing, ElementsAre(7));
}

// Its write is complete when the commit is under way. What that waited for is thread 2's.
TEST_F(DependenciesTest, WhoDidNotAskForItsCommitWaitsForWhicheverIsNext) {
  CommitBefore();                                         // 0, 1
  Next(2, Op::kWrite, 200, 300, kFlagSync);               // 2
  Next(1, Op::kWrite, 210, 450, kFlagSync);               // 3
  Next(7, Op::kWrite, 410, 500, kJournal);                // 4
  Next(7, Op::kWrite, 510, 1'000, kCommit);               // 5
  const Waited other = Next(1, Op::kRead, 1'030, 1'200);  // 6
  EXPECT_THAT(other.gates, ElementsAre(3));
  EXPECT_THAT(other.writing, ElementsAre(5));
  EXPECT_EQ(other.how, Dependencies::kToTheEnd);
  EXPECT_EQ(other.think_us, 30);
}

// The last one to wake thread 1 was the journal's: it did nothing between its commit's end, at 1
// ms, and then.
TEST_F(DependenciesTest, WhoIsWokenAtACommitsEndWaitedForThatWhateverItDidThen) {
  CommitsForTwo();                                // 0 to 8
  const Waited held = Woken(1, 6'000, 7, 2'960);  // 9: at 3.04 ms
  EXPECT_THAT(held.gates, ElementsAre(3, 6));
  EXPECT_THAT(held.writing, ElementsAre(8));
  EXPECT_EQ(held.how, Dependencies::kToTheEnd);
  EXPECT_EQ(held.think_us, 3'000);
}

TEST_F(DependenciesTest, WhoIsWokenByAJournalsWritesWaitedForThese) {
  CommitsForTwo();                                // 0 to 8
  const Waited held = Woken(1, 6'000, 7, 4'570);  // 9: at 1.43 ms
  EXPECT_THAT(held.gates, ElementsAre(3, 6));
  EXPECT_THAT(held.writing, ElementsAre(8));
  EXPECT_EQ(held.how, 0u);
  EXPECT_EQ(held.think_us, 4'600) << "since 7 was complete";
}

TEST_F(DependenciesTest, OrForTheCommitBeforeAndThenForThese) {
  CommitsForTwo();                                // 0 to 8
  Next(7, Op::kWrite, 3'020, 4'000, kJournal);    // 9
  Next(7, Op::kWrite, 4'010, 6'000, kCommit);     // 10
  const Waited held = Woken(1, 9'000, 7, 4'970);  // 11: at 4.03 ms
  EXPECT_THAT(held.gates, ElementsAre(3, 6));
  EXPECT_THAT(held.writing, ElementsAre(10));
  EXPECT_EQ(held.how, Dependencies::kToTheEnd | Dependencies::kAndTheNext);
  EXPECT_EQ(held.think_us, 5'000);
}

// At 2.0 ms the next commit's writes have been complete for 600 us.
TEST_F(DependenciesTest, WhoIsWokenByAJournalForAnotherReasonWaitedForNoWrites) {
  CommitsForTwo();  // 0 to 8
  EXPECT_THAT(Woken(1, 2'500, 7, 500).writing, IsEmpty());
}

// As before, but the next commit writes at once what thread 1 wants.
TEST_F(DependenciesTest, AfterACommitItDidNotAskForAThreadMayWaitForTheWritesOfTheNext) {
  CommitsForTwo();
  Next(7, Op::kWrite, 3'020, 4'000, kJournal);                       // 9
  Next(7, Op::kWrite, 4'010, 6'000, kCommit);                        // 10
  const Waited held = Next(1, Op::kWrite, 4'070, 4'100, kFlagSync);  // 11
  EXPECT_THAT(held.gates, ElementsAre(3, 6));
  EXPECT_THAT(held.writing, ElementsAre(9));
  EXPECT_EQ(held.how, Dependencies::kToTheEnd | Dependencies::kAndTheNext);
  EXPECT_EQ(held.think_us, 70);
}

// Thread 1 has its data committed, is woken at 1.0 ms, and writes again at 9 ms. From 1.05 to 4 ms
// the journal writes what thread 2 wants.
TEST_F(DependenciesTest, WhoNeverGoesOnWhileAJournalWritesPausesBeforeItThinks) {
  CommitBefore();
  Next(2, Op::kRead, 500, 600);
  int64_t at_us = 1'000;
  const auto begin = [&] {
    Waited waited = Next(1, Op::kWrite, at_us, at_us + 100, kFlagSync);
    Next(7, Op::kWrite, at_us + 110, at_us + 200, kJournal);
    Next(2, Op::kWrite, at_us + 120, at_us + 190, kFlagSync);
    Next(7, Op::kWrite, at_us + 210, at_us + 1'000, kCommit);
    Next(7, Op::kWrite, at_us + 1'050, at_us + 4'000, kJournal);
    return waited;
  };
  const auto end = [&] {
    Next(7, Op::kWrite, at_us + 4'010, at_us + 6'000, kCommit);
    at_us += 9'000;
  };
  const auto thinks = [&](int64_t think_us, const auto& writing) {
    const Waited waited = begin();
    EXPECT_EQ(waited.think_us, think_us);
    EXPECT_THAT(waited.writing, writing);
    EXPECT_EQ(waited.how, 0u);
    end();
  };
  begin();
  end();
  for (int seen = 1; seen < 8; ++seen) thinks(8'000, IsEmpty());
  thinks(5'000, SizeIs(1));
  thinks(5'000, SizeIs(1));
  begin();
  const Waited goes_on = Next(1, Op::kWrite, at_us + 2'500, at_us + 2'600, kFlagSync);
  EXPECT_EQ(goes_on.think_us, 1'500);
  EXPECT_THAT(goes_on.writing, IsEmpty());
  end();
  begin();
  end();
  thinks(8'000, IsEmpty());
}

}  // namespace
}  // namespace blktape
