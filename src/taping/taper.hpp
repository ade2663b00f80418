// Captures an iteration of each process of a command: one folder for each, in the order in which
// their iterations begin.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cudabpf/sink.hpp"
#include "cudabpf/taped_process.hpp"
#include "taping/process_taper.hpp"

namespace cudabpf::taping {

class Taper final : public PartialSink, public Taping {
 public:
  explicit Taper(Wanted wanted) : wanted_(std::move(wanted)) {}
  Taper(const Taper&) = delete;
  Taper& operator=(const Taper&) = delete;
  ~Taper() override { close(); }
  // Whether the folder can be made, and what `settle` of Surroundings is.
  Result<> open(std::function<bool()> settle);
  // The command has ended, or the trace: no more stops.
  void close();
  // One for each process that called cuInit. After close().
  std::vector<Captured> captured() const;

  std::uint64_t begins(std::shared_ptr<TapedProcess> process) override;
  void stopped(std::unique_ptr<StoppedThread> thread) override;

  void begin(const Session& session) override;
  void call(const Call& call) override;
  void lost(const LossEvent& loss) override;

 private:
  Result<bundle::FolderWriter> make_folder(std::string& path);
  std::shared_ptr<ProcessTaper> taper_of(std::uint32_t pid) const;

  const Wanted wanted_;
  Surroundings around_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::shared_ptr<ProcessTaper>> tapers_;  // by process
  std::vector<std::shared_ptr<ProcessTaper>> ended_;  // of processes that ran another program
  std::unique_ptr<bundle::FolderWriter> first_;       // made when tracing began
  unsigned folders_ = 0;
};

}  // namespace cudabpf::taping
