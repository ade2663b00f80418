#include "serve/catalog.hpp"

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "serve/route.hpp"
#include "util/system/threads.hpp"
#include "util/text/moments.hpp"
#include "util/text/printable.hpp"

namespace cudabpf::serve {

namespace {

using analyze::Json;

std::string_view state_of(const Json& figures, const FoundTrace& found) {
  if (figures.is_null()) return "unread";
  if (figures.contains("error")) return "unreadable";
  if (figures.value("ended", false)) return "ended";
  return found.was_just_written() && figures.value("live", true) ? "running" : "cut_off";
}

bool is_same_file(const Stamp& a, const Stamp& b) {
  return a.device == b.device && a.inode == b.inode;
}

Json entry_of(const FoundTrace& found, const Head* head, const Json& figures) {
  Json entry = {{"name", printable(found.name)},
                {"report", link_to_report(found.name)},
                {"files", found.files.size()},
                {"bytes", found.size()},
                {"modified", iso_time(found.modified())},
                {"state", state_of(figures, found)}};
  if (head) entry.update(head->shown);
  if (figures.is_object()) entry.update(figures);
  entry.erase("live");  // the state says it
  return entry;
}

}  // namespace

Catalog::Catalog(const Folder& folder) : folder_(folder) {
  reader_ = thread_without_signals([this] { read_figures(); });
}

Catalog::~Catalog() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  reader_.join();
}

Result<> Catalog::look() {
  auto now = Clock::now();
  if (looked_ && now - *looked_ < FRESH) return ok();
  auto contents = TRY(folder_.contents());
  std::map<std::string, Known> known;
  std::map<std::string, KnownHead> heads;
  for (const FoundTrace& all : contents.traces)
    for (FoundTrace& found : apart(all)) {
      auto before = known_.find(found.name);
      Known& trace = known[found.name];
      if (before != known_.end()) trace = std::move(before->second);
      for (const std::string& file : found.files)
        if (auto head = heads_.find(file); head != heads_.end()) heads.insert(*head);
      trace.found = std::move(found);
    }
  known_ = std::move(known);
  heads_ = std::move(heads);
  left_out_ = contents.left_out;
  unread_ = std::move(contents.unread);
  looked_ = Clock::now();  // it may have taken long, and those who wait shall not look again
  changed_.notify_all();
  return ok();
}

const Head* Catalog::head_of_file(const FoundTrace& trace, std::size_t file) const {
  auto known = heads_.find(trace.files[file]);
  bool is_known = known != heads_.end() && known->second.head &&
                  is_same_file(known->second.stamp, trace.stamps[file]);
  return is_known ? &*known->second.head : nullptr;
}

std::vector<FoundTrace> Catalog::apart(const FoundTrace& found) const {
  std::vector<FoundTrace> traces;
  const Head* before = nullptr;
  for (std::size_t file = 0; file < found.files.size(); file++) {
    const Head* head = head_of_file(found, file);
    bool goes_on =
        file && (!head || (head->part > 1 && (!before || before->clocks == head->clocks)));
    if (!goes_on) traces.push_back({found.files[file], {}, {}});
    traces.back().files.push_back(found.files[file]);
    traces.back().stamps.push_back(found.stamps[file]);
    if (head) before = head;
  }
  return traces;
}

// They are read before any figures: the list is in their order, and they show which files are one.
bool Catalog::read_heads(std::unique_lock<std::mutex>& lock) {
  std::vector<std::pair<std::string, Stamp>> wanted;
  for (const auto& [name, trace] : known_)
    for (std::size_t file = 0; file < trace.found.files.size(); file++) {
      const Stamp& stamp = trace.found.stamps[file];
      auto known = heads_.find(trace.found.files[file]);
      bool is_known =
          known != heads_.end() && (known->second.head ? is_same_file(known->second.stamp, stamp)
                                                       : known->second.stamp == stamp);
      if (!is_known) wanted.emplace_back(trace.found.files[file], stamp);
    }
  constexpr std::size_t AT_ONCE = 64;  // the list shows them as they come
  if (wanted.size() > AT_ONCE) wanted.resize(AT_ONCE);
  for (const auto& [file, stamp] : wanted) {
    lock.unlock();
    KnownHead known{stamp, std::nullopt};
    try {
      if (auto head = head_of(folder_, file)) known.head = std::move(*head);
    } catch (const std::exception&) {  // no memory
    }
    lock.lock();
    heads_[file] = std::move(known);
    if (ending_) return true;
  }
  if (!wanted.empty()) looked_.reset();  // which files are one may be another
  return !wanted.empty();
}

Result<Json> Catalog::list() {
  std::lock_guard lock(mutex_);
  TRY(look());
  Json traces = Json::array(), unread = Json::array();
  for (const auto& [name, trace] : known_)
    traces.push_back(entry_of(trace.found, head_of_file(trace.found, 0), trace.figures));
  for (const std::string& folder : unread_) unread.push_back(printable(folder));
  return Json{{"version", CUDABPF_VERSION},
              {"traces", std::move(traces)},
              {"left_out", left_out_},
              {"unread_folders", std::move(unread)}};
}

std::optional<FoundTrace> Catalog::find(const std::string& name) {
  std::lock_guard lock(mutex_);
  if (!look()) return std::nullopt;
  auto known = known_.find(name);
  return known == known_.end() ? std::nullopt : std::optional(known->second.found);
}

Catalog::Known* Catalog::next_to_read(Clock::time_point now,
                                      std::optional<Clock::time_point>& later) {
  Known* next = nullptr;
  for (auto& [name, trace] : known_) {
    if (trace.read_at == trace.found.stamps) continue;
    if (trace.not_before > now)
      later = std::min(later.value_or(trace.not_before), trace.not_before);
    else if (!next || trace.found.modified() > next->found.modified())
      next = &trace;
  }
  return next;
}

void Catalog::read_figures() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (read_heads(lock)) {
      if (!ending_) static_cast<void>(look());
      continue;
    }
    auto began = Clock::now();
    std::optional<Clock::time_point> later;
    Known* next = next_to_read(began, later);
    if (!next) {
      if (later)
        changed_.wait_until(lock, *later);
      else
        changed_.wait(lock);
      continue;
    }
    FoundTrace trace = next->found;
    lock.unlock();
    Json figures = figures_of(folder_, trace, [&] {
      std::lock_guard ending(mutex_);
      return !ending_ && Clock::now() - began < LONGEST;
    });
    lock.lock();
    auto known = known_.find(trace.name);  // it may be gone by now
    if (known == known_.end()) continue;
    known->second.read_at = trace.stamps;
    known->second.figures = std::move(figures);
    known->second.not_before = Clock::now() + PAUSE_FACTOR * (Clock::now() - began);
  }
}

}  // namespace cudabpf::serve
