// The list of the folder's traces, with what each holds. Figures are read by a thread of its own,
// the newest trace first, and again when a file has changed; meanwhile those before stay.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "serve/reading.hpp"

namespace cudabpf::serve {

class Catalog {
 public:
  explicit Catalog(const Folder& folder);
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  // As the page of the list takes it. Looks into the folder, and waits for no figures.
  Result<analyze::Json> list();
  // As the folder has it now; nothing: it has none of that name.
  std::optional<FoundTrace> find(const std::string& name);

 private:
  using Clock = std::chrono::steady_clock;
  // Who asks sooner gets what was found then: a folder may hold thousands of files.
  static constexpr std::chrono::milliseconds FRESH{100};
  // A trace that is being written is read again and again, and may be large: a tenth of the time at
  // most goes into that.
  static constexpr int PAUSE_FACTOR = 9;
  // No trace takes this long but one that was made to.
  static constexpr std::chrono::minutes LONGEST{10};

  struct Known {
    FoundTrace found;
    std::vector<Stamp> read_at;  // what `figures` are of; empty: they were not read yet
    analyze::Json figures;
    Clock::time_point not_before;
  };

  // A file's head, as long as it is the same file; of one that had none, of what it was then.
  struct KnownHead {
    Stamp stamp;
    std::optional<Head> head;
  };

  Result<> look();  // with mutex_ held
  const Head* head_of_file(const FoundTrace& trace, std::size_t file) const;
  // Files that only seem to be parts of one, by their names.
  std::vector<FoundTrace> apart(const FoundTrace& found) const;
  bool read_heads(std::unique_lock<std::mutex>& lock);  // false: all are known
  void read_figures();                                  // the thread
  Known* next_to_read(Clock::time_point now, std::optional<Clock::time_point>& later);

  const Folder& folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Known> known_;
  std::map<std::string, KnownHead> heads_;  // by file
  std::uint64_t left_out_ = 0;
  std::vector<std::string> unread_;
  std::optional<Clock::time_point> looked_;
  bool ending_ = false;
  std::thread reader_;
};

}  // namespace cudabpf::serve
