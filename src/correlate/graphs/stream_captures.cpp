#include "correlate/graphs/stream_captures.hpp"

#include <utility>

#include "correlate/graphs/graph_calls.hpp"
#include "util/hash.hpp"

namespace cudabpf {

std::size_t StreamCaptures::StreamHash::operator()(const Stream& stream) const {
  return hash_of(stream.handle, stream.tid);
}

StreamCaptures::Stream StreamCaptures::stream_of(const Call& call) {
  constexpr std::uint64_t DEFAULT = 0, LEGACY = 1, OF_THREAD = 2;  // CU_STREAM_PER_THREAD
  std::uint64_t handle = call.details.stream.value_or(DEFAULT);
  if (handle == DEFAULT) handle = is_for_threads(call.function->symbol) ? OF_THREAD : LEGACY;
  return {handle, handle == OF_THREAD ? call.tid : 0};
}

void StreamCaptures::begin(const Call& call, GraphHolding::Ptr into) {
  end(call);
  if (streams_.size() < MAX) streams_[stream_of(call)] = {std::move(into), true};
}

GraphHolding::Ptr StreamCaptures::end(const Call& call) {
  auto at = streams_.find(stream_of(call));
  if (at == streams_.end()) return nullptr;
  GraphHolding::Ptr into = at->second.into;
  std::erase_if(streams_, [&](const auto& stream) { return stream.second.into == into; });
  std::erase_if(events_, [&](const auto& event) { return event.second == into; });
  return into;
}

GraphHolding* StreamCaptures::into(const Call& call) const {
  if (!call.details.stream) return nullptr;
  auto at = streams_.find(stream_of(call));
  return at == streams_.end() ? nullptr : at->second.into.get();
}

bool StreamCaptures::follow_event(const Call& call) {
  constexpr std::uint64_t EXTERNAL = 1;  // CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL
  auto event = argument_of(call, Role::event);
  EventEffect effect = call.function->meaning.event;
  if (!event || effect == EventEffect::query) return false;
  if (effect == EventEffect::destroy) {
    events_.erase(*event);
    return false;
  }
  auto captured = streams_.find(stream_of(call));
  bool is_captured = captured != streams_.end();
  if (argument_of(call, Role::u32).value_or(0) & EXTERNAL) return is_captured;
  if (effect == EventEffect::record) {
    if (is_captured && events_.size() < MAX)
      events_[*event] = captured->second.into;
    else
      events_.erase(*event);
  } else if (auto recorded = events_.find(*event);
             recorded != events_.end() && !is_captured && streams_.size() < MAX) {
    streams_[stream_of(call)] = {recorded->second};
  }
  return false;
}

void StreamCaptures::stream_destroyed(const Call& call) {
  auto at = streams_.find(stream_of(call));
  if (at == streams_.end()) return;
  if (at->second.began)
    end(call);
  else
    streams_.erase(at);
}

void StreamCaptures::calls_lost() {
  forget(GraphUnknown::lost);
  streams_.clear();
  events_.clear();
}

}  // namespace cudabpf
