// The newest parts of a trace, in memory and compressed: up to a limit of time and one of bytes. It
// is what rotation that deletes old files is for a disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "trace/files/block_queue.hpp"
#include "trace/files/frames.hpp"
#include "trace/files/trace_output.hpp"

namespace cudabpf {

// What was kept at one moment, as it is in a file. It shares its lines with the parts.
struct KeptTrace {
  std::string because;                                     // why it is to be written
  std::uint64_t since = 0;                                 // ns since the trace began
  bool cut = false;                                        // there was no room for what came before
  std::vector<std::shared_ptr<const std::string>> frames;  // without the last line
  std::uint64_t lines = 0;                                 // in them
  std::uint64_t events = 0;  // of the lines: what was recorded in that time
  Totals totals;             // sums of the parts
};

class KeptParts : public TraceOutput {
 public:
  struct Options {
    std::uint64_t keep_ns = 0;
    std::uint64_t most_bytes = 0;  // compressed
  };
  // Gets what is kept, at the end of a part for which that was wanted. Called on this class's
  // thread, and must not wait.
  using Wanted = std::function<void(KeptTrace kept)>;

  KeptParts(Options options, Wanted wanted)
      : options_(options), wanted_(std::move(wanted)), frames_(FASTEST) {}
  ~KeptParts() override { KeptParts::stop(); }

  void start(std::string header, const FilePart& part, std::uint64_t trace_start_ns) override;
  LineBlock take() override { return blocks_.take(); }
  void put(LineBlock block) override { blocks_.put(std::move(block)); }
  void stop() override;
  double compression() const override { return compression_; }

  std::uint64_t bytes() const { return bytes_; }

 private:
  static constexpr int FASTEST = 1;

  struct Kept {
    std::uint64_t since = 0;
    std::shared_ptr<const std::string> header;  // and the processes that ran when it began
    std::uint64_t header_lines = 0;
    std::vector<std::shared_ptr<const std::string>> frames;
    std::uint64_t lines = 0, bytes = 0;
    Totals totals;  // once it has ended
  };

  void run();
  void accept(const LineBlock& block);
  void begin_part(std::string_view header, std::uint64_t since);
  void close_frame();
  void keep(Kept& part, std::uint64_t bytes);
  void drop_oldest();
  void end_part(const LineBlock::FileEndsHere& end);
  KeptTrace all(const LineBlock::WriteKept& write) const;

  const Options options_;
  const Wanted wanted_;
  BlockQueue blocks_;
  std::thread thread_;

  // Used by the writing thread.
  Frames frames_;
  std::deque<Kept> parts_;
  bool cut_ = false;  // a part that would still be kept had to go
  std::uint64_t framed_in_ = 0, framed_out_ = 0;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<double> compression_{0.1};  // about right, until it is known
};

}  // namespace cudabpf
