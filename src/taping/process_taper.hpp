// Captures one iteration of one process: finds out where its iterations begin, has it stand there
// once before and once after one, and writes what that iteration asked of the GPU into a folder.
//
// The process stops at a launch whenever it has launched twice as much as at the last stop, until
// its iterations can be told; then where the next one begins. So what is captured does not depend
// on how fast anybody is.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bundle/folder.hpp"
#include "cudabpf/event.hpp"
#include "cudabpf/taped_process.hpp"
#include "state/followed_memory.hpp"
#include "taping/handles.hpp"
#include "taping/kept_call.hpp"
#include "taping/launch_history.hpp"
#include "taping/snapshot.hpp"
#include "taping/tape_writer.hpp"

namespace cudabpf::taping {

struct Wanted {
  std::string folder;
  std::uint64_t iteration = 0;  // as answers count them; 0: the first steady one
  std::uint64_t after_ns = 0;   // the first that begins this long after the trace
  bool contents = true;
  std::uint64_t most_bytes = 0;  // of memory; 0: any
};

// What came of it.
struct Captured {
  bool done = false;
  std::string why_not;  // if it is not done
  std::string folder;
  std::uint32_t pid = 0;
  std::uint64_t iteration = 0, operations = 0, kernels = 0, bytes = 0, stood_ns = 0;
  std::uint64_t launches = 0;  // before it ended or was captured
};

// What a capture knows of the trace that it is taken in.
struct Surroundings {
  // Waits until all records made so far have been passed on. False: that takes too long.
  std::function<bool()> settle;
  // A folder of its own for a capture that begins now.
  std::function<Result<bundle::FolderWriter>(std::string& path)> make_folder;
  bundle::Manifest manifest;  // as far as it says nothing about a process
};

class ProcessTaper final : private LiveMemory::Listener {
 public:
  static constexpr std::uint64_t FIRST_STOP = 64;  // launches before it

  ProcessTaper(const Wanted& wanted, const Surroundings& around,
               std::shared_ptr<TapedProcess> process);
  ~ProcessTaper() override;
  // The process has ended, or the trace: no more stops.
  void close();
  const Captured& captured() const { return captured_; }  // after close()

  void stopped(std::unique_ptr<StoppedThread> thread);
  // What it does, and what was lost of it.
  void call(const Call& call);
  void lost();

 private:
  enum class Stage : std::uint8_t {
    watching,     // until iterations can be told
    approaching,  // the beginning of one
    capturing,    // it
    over,
  };
  // When the thread that stands stops next.
  struct Next {
    std::uint64_t launches = 0;
    std::uint32_t tid = 0;  // as its process knows it
    bool at_wait = false;
  };

  void allocated(const LiveMemory::Block&) override {}
  void ended(const LiveMemory::Block&, std::uint64_t, LiveMemory::Ended) override {}
  void freed_unknown(const MemoryCall&) override {}

  void run();
  Next serve(StoppedThread& thread);
  Next watch(StoppedThread& thread);
  Next approach(StoppedThread& thread);
  Result<Next> begin_capture(StoppedThread& thread);
  Result<Next> go_to_end(StoppedThread& thread);
  Result<> end_capture(StoppedThread& thread);
  Next give_up(std::string why);

  bool is_wanted(const NextIteration& next) const;
  Result<> still(StoppedThread& thread);  // all threads, and the GPU
  std::string why_late() const;
  void describe_device(StoppedThread& thread, bundle::Manifest& manifest);
  Result<> take_variables(StoppedThread& thread);
  Result<> add_variables(StoppedThread& thread, const std::vector<PlacedModule>& modules);
  Blocks blocks() const;

  const Wanted& wanted_;
  const Surroundings& around_;
  std::shared_ptr<TapedProcess> process_;
  std::optional<bundle::FolderWriter> folder_;

  // What is passed on to it, and the worker asks about.
  mutable std::mutex mutex_;
  FollowedMemory memory_{*this};
  Handles handles_;
  LaunchHistory history_;
  std::vector<KeptCall> kept_;
  bool watches_ = true;  // until its iteration is captured, or given up
  bool keeps_ = false;
  std::uint64_t losses_ = 0, losses_before_ = 0, now_ = 0;

  // The worker's.
  Stage stage_ = Stage::watching;
  NextIteration next_;
  std::uint64_t begun_at_ = 0;  // launches of the thread when the iteration began
  std::uint64_t steps_ = 0;     // stops in search of a beginning
  std::unique_ptr<Snapshots> snapshots_;
  std::map<std::uint64_t, std::string> variables_;  // what they held before, by address
  bundle::Manifest manifest_;
  Captured captured_;

  std::mutex queue_mutex_;
  std::condition_variable queued_;
  std::deque<std::unique_ptr<StoppedThread>> queue_;
  bool closed_ = false;
  std::thread worker_;
};

}  // namespace cudabpf::taping
