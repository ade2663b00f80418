#include "collect/merged_source.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <queue>

#include "cudabpf/abi.h"

namespace cudabpf {

namespace {

constexpr std::size_t whole_words(std::size_t size) { return (size + 7) & ~std::size_t{7}; }

abi::cb_head head_of(std::span<const std::byte> record) {
  abi::cb_head head{};
  std::memcpy(&head, record.data(), std::min(record.size(), sizeof(head)));
  return head;
}

}  // namespace

// ----- what a thread has made

void MergedSource::Lane::add(std::span<const std::byte> record) {
  std::uint64_t size = record.size();
  std::size_t at = bytes_.size();
  bytes_.resize(at + sizeof(size) + whole_words(record.size()));
  std::memcpy(bytes_.data() + at, &size, sizeof(size));
  std::memcpy(bytes_.data() + at + sizeof(size), record.data(), record.size());
}

std::span<std::byte> MergedSource::Lane::first() {
  std::uint64_t size = 0;
  std::memcpy(&size, bytes_.data() + at_, sizeof(size));
  return std::span(bytes_).subspan(at_ + sizeof(size), size);
}

void MergedSource::Lane::remove_first() {
  at_ += sizeof(std::uint64_t) + whole_words(first().size());
  // A thread that is never idle always has some that wait.
  constexpr std::size_t WORTH_ERASING = 4 << 10;
  if (!empty() && (at_ < WORTH_ERASING || at_ < bytes_.size() / 2)) return;
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ = 0;
}

// ----- merging

void MergedSource::keep(From from, std::span<const std::byte> record) {
  abi::cb_head head = head_of(record);
  Lane& lane = lanes_[{thread_of(head), from}];
  kept_ -= lane.size();
  lane.add(record);
  kept_ += lane.size();
}

// One source does not know what the thread has lost at the other: a record counts both.
std::uint32_t MergedSource::drops_of_both(ThreadId thread, From from, std::uint32_t drops) {
  auto known = drops_.find(thread);
  if (known == drops_.end()) {
    if (!drops) return 0;
    if (drops_.size() == MAX_DROPS) make_room_for_drops();
    known = drops_.try_emplace(thread).first;
  }
  known->second[static_cast<std::size_t>(from)] = drops;
  return known->second[0] + known->second[1];
}

// Drops all entries of the process with most: its threads then seem to have lost more, or less, and
// their open calls count as lost.
void MergedSource::make_room_for_drops() {
  std::uint32_t largest = 0;
  std::size_t most = 0;
  for (auto at = drops_.begin(); at != drops_.end();) {
    auto end = drops_.lower_bound({at->first.pid + 1, 0});
    auto count = static_cast<std::size_t>(std::distance(at, end));
    if (count > most) {
      most = count;
      largest = at->first.pid;
    }
    at = end;
  }
  drops_.erase(drops_.lower_bound({largest, 0}), drops_.lower_bound({largest + 1, 0}));
}

void MergedSource::hand_over(From from, std::span<std::byte> record) {
  abi::cb_head head = head_of(record);
  head.drops = drops_of_both(thread_of(head), from, head.drops);
  if (record.size() >= sizeof(head)) std::memcpy(record.data(), &head, sizeof(head));
  on_record_(record);
  if (head.kind == abi::CB_THREAD_EXIT) drops_.erase(thread_of(head));
  if (head.kind == abi::CB_EXIT)
    drops_.erase(drops_.lower_bound({head.pid, 0}), drops_.lower_bound({head.pid + 1, 0}));
}

void MergedSource::hand_over_until(std::uint64_t until) {
  struct Next {
    std::uint64_t ts;
    From from;
    Lane* lane;
    bool operator<(const Next& other) const { return ts > other.ts; }  // the earliest on top
  };
  std::priority_queue<Next> waiting;
  auto wait = [&](From from, Lane& lane) {
    if (lane.empty()) return;
    std::uint64_t ts = head_of(lane.first()).ts;
    if (ts <= until) waiting.push({ts, from, &lane});
  };
  for (auto& [of, lane] : lanes_) wait(of.from, lane);
  while (!waiting.empty()) {
    Next next = waiting.top();
    waiting.pop();
    hand_over(next.from, next.lane->first());
    next.lane->remove_first();
    wait(next.from, *next.lane);
  }
  std::erase_if(lanes_, [](const auto& one) { return one.second.empty(); });
  kept_ = 0;
  for (const auto& [of, lane] : lanes_) kept_ += lane.size();
}

// Hands over what both sources have completely reported. A later record of a thread may be there
// before earlier ones of the other source, so it waits.
Source::Polled MergedSource::poll() {
  constexpr auto FOREVER = std::numeric_limits<std::uint64_t>::max();
  bool full = kept_ >= MAX_KEPT, calls_behind = calls_polled_.until <= others_polled_.until;
  if (!full || calls_behind) calls_polled_ = calls_->poll();
  if (!full || !calls_behind) others_polled_ = others_->poll();
  Polled both{.much = full || calls_polled_.much || others_polled_.much,
              .until = std::min(calls_polled_.until, others_polled_.until),
              .unfinished = full || calls_polled_.unfinished || others_polled_.unfinished};
  hand_over_until(stopped_ && !both.unfinished ? FOREVER : both.until);
  return both;
}

void MergedSource::abandon() {
  calls_->abandon();
  others_->abandon();
}

std::vector<LossEvent> MergedSource::audit(bool last) {
  std::vector<LossEvent> found = calls_->audit(last), more = others_->audit(last);
  found.insert(found.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  return found;
}

// ----- both

Result<> MergedSource::start(OnRecord on_record) {
  on_record_ = std::move(on_record);
  TRY(others_->start([this](std::span<const std::byte> record) { keep(From::others, record); }));
  return calls_->start([this](std::span<const std::byte> record) { keep(From::calls, record); });
}

void MergedSource::describe(Session& session) const {
  others_->describe(session);
  bool driver_traced = session.driver_traced;
  std::string driver_way = session.driver_way;
  calls_->describe(session);
  if (!driver_traced) return;
  session.driver_traced = driver_traced;
  session.driver_way = driver_way;
}

void MergedSource::begin(std::uint64_t begin_ns) {
  calls_->begin(begin_ns);
  others_->begin(begin_ns);
}

void MergedSource::select_process(std::uint32_t pid) {
  calls_->select_process(pid);
  others_->select_process(pid);
}

void MergedSource::select_cgroup(const CgroupFolder& folder) {
  calls_->select_cgroup(folder);
  others_->select_cgroup(folder);
}

void MergedSource::select_all() {
  calls_->select_all();
  others_->select_all();
}

std::vector<int> MergedSource::watch_fds() const {
  auto fds = calls_->watch_fds();
  for (int fd : others_->watch_fds()) fds.push_back(fd);
  return fds;
}

News MergedSource::look() {
  News news = calls_->look();
  news.add(others_->look());
  return news;
}

News MergedSource::last_look() {
  News news = calls_->last_look();
  news.add(others_->last_look());
  return news;
}

void MergedSource::stop() {
  calls_->stop();
  others_->stop();
  stopped_ = true;
}

void MergedSource::forget_process(std::uint32_t pid) {
  calls_->forget_process(pid);
  others_->forget_process(pid);
}

std::uint32_t MergedSource::drops(ThreadId thread) const {
  return calls_->drops(thread) + others_->drops(thread);
}

Source::Losses MergedSource::losses() const {
  Losses losses = calls_->losses(), more = others_->losses();
  for (std::size_t i = 0; i < losses.size(); i++) losses[i] += more[i];
  return losses;
}

Accounts MergedSource::accounts() const {
  Accounts accounts = calls_->accounts(), more = others_->accounts();
  accounts.entered += more.entered;
  accounts.emitted += more.emitted;
  accounts.dropped += more.dropped;
  return accounts;
}

}  // namespace cudabpf
