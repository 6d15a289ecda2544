#include "capture/assemble/event_merger.h"

#include <algorithm>
#include <functional>

namespace blktape {
namespace {

// Timestamps of a coarse clock are often equal: defines which event comes first then.
int Rank(BlockAction action) {
  switch (action) {
    case BlockAction::kRequeue:
      return 1;
    case BlockAction::kIssue:
      return 2;
    case BlockAction::kComplete:
      return 3;
    default:
      return 0;
  }
}

}  // namespace

// std::priority_queue has the greatest element on top, so the oldest must compare as the greatest.
bool EventMerger::Disordered::operator<(const Disordered& other) const {
  if (event.time_ns != other.event.time_ns) return event.time_ns > other.event.time_ns;
  return number > other.number;
}

bool EventMerger::Head::operator>(const Head& other) const {
  if (time_ns != other.time_ns) return time_ns > other.time_ns;
  if (rank != other.rank) return rank > other.rank;
  return stream > other.stream;
}

EventMerger::Stream* EventMerger::Find(uint32_t stream) {
  // A reader takes many from one ring before it turns to the next.
  if (streams_.empty() || stream != found_stream_) {
    const auto [it, added] = index_.try_emplace(stream, streams_.size());
    if (added) streams_.emplace_back();
    found_stream_ = stream;
    found_index_ = it->second;
  }
  return &streams_[found_index_];
}

void EventMerger::Report(proto::LossReason reason, int64_t from_ns, const BlockEvent& event,
                         const char* detail) {
  proto::Loss loss;
  loss.set_reason(reason);
  loss.set_count(1);
  loss.set_from_ns(std::min(from_ns, event.time_ns));
  loss.set_to_ns(std::max(from_ns, event.time_ns));
  loss.set_cpu(event.cpu);
  loss.set_device(event.device);
  loss.set_detail(detail);
  output_->OnMergeLoss(loss);
}

void EventMerger::Add(uint32_t stream_number, const BlockEvent& event) {
  Stream* stream = Find(stream_number);
  if (stream->suspect) {
    // If the clock stays at the suspect's time, it was set back; otherwise only the suspect was
    // stray.
    const BlockEvent suspect = *stream->suspect;
    stream->suspect.reset();
    if (event.time_ns < *stream->last_ns - options_.stray_ns) {
      Report(proto::CLOCK_STEP, *stream->last_ns, suspect, "the clock of a stream went back");
      stream->stepped_back = true;
      stream->last_ns = suspect.time_ns;
      Place(stream, suspect);
    } else {
      Report(proto::CLOCK_STEP, *stream->last_ns, suspect, "an event with a stray stamp left out");
    }
  }
  if (stream->last_ns && event.time_ns < *stream->last_ns && !StepBack(stream, event)) return;
  stream->before_last_ns = stream->last_ns.value_or(event.time_ns);
  stream->last_ns = event.time_ns;
  Place(stream, event);
  if (held_ > options_.held_events) Deliver(std::nullopt, options_.held_events / 4 * 3);
}

bool EventMerger::StepBack(Stream* stream, const BlockEvent& event) {
  const int64_t last_ns = *stream->last_ns;
  const bool last_is_held = !stream->events.empty() && stream->events.back().time_ns == last_ns;
  if (last_is_held && last_ns - stream->before_last_ns > options_.stray_ns &&
      event.time_ns >= stream->before_last_ns) {
    Report(proto::CLOCK_STEP, event.time_ns, stream->events.back(),
           "an event with a stray stamp left out");
    stream->events.pop_back();
    --held_;
    stream->last_ns = stream->before_last_ns;
    return true;
  }
  if (last_ns - event.time_ns > options_.stray_ns) {
    stream->suspect = event;
    return false;
  }
  Report(proto::CLOCK_STEP, last_ns, event, "an event older than its predecessor");
  stream->stepped_back = true;
  return true;
}

void EventMerger::Place(Stream* stream, const BlockEvent& event) {
  if (delivered_ns_ && event.time_ns < *delivered_ns_) {
    if (!stream->stepped_back) {
      Report(proto::MERGE_WINDOW_EXCEEDED, *delivered_ns_, event,
             "an event that came too late to be put in order");
    }
  } else {
    stream->stepped_back = false;
  }
  ++held_;
  if (stream->events.empty() || stream->events.back().time_ns <= event.time_ns) {
    stream->events.push_back(event);
  } else {
    disordered_.push({event, disordered_count_++});
  }
}

void EventMerger::Emit(const BlockEvent& event) {
  delivered_ns_ = std::max(delivered_ns_.value_or(event.time_ns), event.time_ns);
  --held_;
  output_->OnOrderedEvent(event);
}

void EventMerger::Deliver(std::optional<int64_t> ns, size_t keep) {
  const auto due = [&](int64_t time_ns) { return !ns || time_ns < *ns; };
  heads_.clear();
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i].events.empty()) continue;
    const BlockEvent& head = streams_[i].events.front();
    if (due(head.time_ns)) heads_.push_back({head.time_ns, Rank(head.action), i});
  }
  std::make_heap(heads_.begin(), heads_.end(), std::greater<>());
  while (held_ > keep) {
    const bool disordered = !disordered_.empty() && due(disordered_.top().event.time_ns);
    if (disordered &&
        (heads_.empty() || disordered_.top().event.time_ns < heads_.front().time_ns)) {
      const BlockEvent event = disordered_.top().event;
      disordered_.pop();
      Emit(event);
      continue;
    }
    if (heads_.empty()) return;
    std::pop_heap(heads_.begin(), heads_.end(), std::greater<>());
    Head& head = heads_.back();
    RingQueue<BlockEvent>& events = streams_[head.stream].events;
    Emit(events.front());
    events.pop_front();
    if (!events.empty() && due(events.front().time_ns)) {
      head.time_ns = events.front().time_ns;
      head.rank = Rank(events.front().action);
      std::push_heap(heads_.begin(), heads_.end(), std::greater<>());
    } else {
      heads_.pop_back();
    }
  }
}

void EventMerger::Release(int64_t ns) { Deliver(ns, 0); }

void EventMerger::Finish() {
  for (Stream& stream : streams_) {
    if (!stream.suspect) continue;
    Report(proto::CLOCK_STEP, *stream.last_ns, *stream.suspect,
           "an event with a stray stamp left out");
    stream.suspect.reset();
  }
  Deliver(std::nullopt, 0);
}

}  // namespace blktape
