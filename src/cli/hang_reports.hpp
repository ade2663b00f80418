// What --watch-hang finds: told on the terminal, and written as a file of JSON.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "sink/flight_recorder.hpp"
#include "sink/hangs/hang_watch.hpp"

namespace cudabpf::cli {

class HangReports {
 public:
  // Files are named after this path of a trace, and lie beside it. `recorder`: is made to write
  // what it keeps; null: nothing is kept.
  HangReports(std::uint64_t overdue_ns, std::string host, std::string beside,
              FlightRecorder* recorder);

  Sink& sink() { return watch_; }
  // Tells what was found since the last time; not from the thread that reads records.
  void tell();

 private:
  struct Found {
    hangs::Hang hang;
    std::uint64_t realtime_ns = 0;
    std::uint64_t lasted_ns = 0;  // it is over; 0: it has begun
  };
  void add(Found found);
  void tell_begin(const Found& found);
  // The path of the file, or why there is none.
  Result<std::string> write(const std::string& json);

  const std::uint64_t overdue_ns_;
  const std::string host_, beside_;
  FlightRecorder* const recorder_;
  hangs::HangWatch watch_;
  std::mutex mutex_;
  std::vector<Found> found_;
  unsigned written_ = 0;
};

}  // namespace cudabpf::cli
