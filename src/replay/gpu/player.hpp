// Runs the steps of a tape on a GPU.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bundle/folder.hpp"
#include "replay/gpu/code.hpp"
#include "replay/gpu/driver.hpp"
#include "replay/gpu/host_buffer.hpp"
#include "replay/messages.hpp"
#include "replay/progress.hpp"
#include "replay/tape.hpp"

namespace cudabpf::replay {

// What is done around each step's work, on its stream.
class Watch {
 public:
  virtual ~Watch() = default;
  virtual Result<> before(std::size_t step, Handle stream) = 0;
  virtual Result<> after(std::size_t step, Handle stream) = 0;
};

class Player {
 public:
  Player(const Driver& driver, Progress& progress, const bundle::Folder& folder, const Tape& tape,
         const GpuCode& code)
      : driver_(&driver), progress_(&progress), folder_(&folder), tape_(&tape), code_(&code) {}

  // Makes streams and buffers.
  Result<> prepare();
  // Kernels and steps that are not to be run.
  void leave_out(const std::vector<std::uint32_t>& kernels,
                 const std::vector<std::uint64_t>& steps);

  struct Way {
    bool waits_for_each = false;
    Watch* watch = nullptr;
    std::size_t begin = 0, end = ~std::size_t{0};  // steps
  };
  // Gives the tape's work to the GPU,
  Result<> give(const Way& way);
  // waits for it,
  Result<> finish();
  // or does both.
  Result<> play(const Way& way);

  const Tape& tape() const { return *tape_; }
  // What a launch, a copy or a fill does, on this stream; and what several do.
  Status work_on(std::size_t number, Handle stream);
  Status work_on(const std::vector<std::size_t>& steps, Handle stream);
  // The small fills right before a launch, as far as they are run.
  std::vector<std::size_t> fills_before(std::size_t launch) const;
  // Why the step is not run; empty: it is.
  std::string reason_against(std::size_t number, const Step& step) const;

  // What was not run since the tape's beginning was given last, and why.
  std::vector<Skipped> skipped() const;
  const std::set<std::size_t>& skipped_steps() const { return skipped_steps_; }
  std::vector<std::string> notes() const;
  // The file of the folder.
  std::string_view data() const { return data_.text(); }
  // What the last play's copies to the host brought there, for those whose data the capture has.
  struct Received {
    std::size_t step = 0;
    bundle::Extent expected;
    std::size_t at = 0;  // in `received()`
  };
  const std::vector<Received>& copies_to_host() const { return copies_to_host_; }
  std::string_view received() const { return received_.text(); }
  std::string description(std::size_t step) const {
    return description_of(tape_->steps()[step], folder_->manifest());
  }
  // All streams that steps use.
  std::vector<Handle> streams() const;

 private:
  struct Skip {
    std::uint64_t count = 0, call = 0;
  };

  Result<> read_data();
  Result<> prepare_copies();
  Result<> make_stream(std::uint32_t number);
  Result<Handle> event(std::uint32_t number);
  Result<> run(std::size_t number, const Way& way);
  Result<> wait(const Step& step, Handle stream);
  Result<> judge(std::size_t number, const Status& status);
  void skip(std::size_t number, const std::string& why);

  Status launch(const bundle::Launch& launch, Handle stream);
  Status copy(std::size_t number, const bundle::Copy& copy, Handle stream);
  Status fill(const bundle::Set& set, Handle stream);
  std::vector<LaunchAttribute> captured_attributes(const bundle::Launch& launch) const;
  std::vector<LaunchAttribute> attributes_of(const bundle::Launch& launch) const;

  const Driver* driver_;
  Progress* progress_;
  const bundle::Folder* folder_;
  const Tape* tape_;
  const GpuCode* code_;
  HostBuffer data_, received_, scratch_;
  std::vector<Received> copies_to_host_;
  std::vector<std::size_t> received_at_;  // by step
  std::map<std::uint32_t, Handle> streams_, events_;
  std::vector<bool> left_kernels_, left_steps_, by_pointers_;
  std::map<std::pair<std::string, std::string>, Skip> skipped_;
  std::set<std::size_t> skipped_steps_;
  std::uint64_t attributes_dropped_ = 0;
};

}  // namespace cudabpf::replay
