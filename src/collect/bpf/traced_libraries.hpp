// The copies of libcuda that a trace knows: those found when it begins and those mapped later.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "collect/bpf/mapping_watch.hpp"
#include "collect/bpf/probe_set.hpp"
#include "collect/function_numbers.hpp"
#include "collect/libraries.hpp"
#include "cudabpf/function_filter.hpp"
#include "cudabpf/source.hpp"
#include "util/elf/elf_reader.hpp"
#include "util/system/first_page.hpp"

namespace cudabpf {

class TracedLibraries {
 public:
  struct Options {
    FunctionFilter filter;
    std::vector<std::string> named;  // by --library
    std::string library_path;        // the traced program's LD_LIBRARY_PATH
    bool watch = true;               // for libraries mapped later
  };
  // `reader` was started before this process held anything worth stealing.
  TracedLibraries(elf::Reader reader, ProbeSet& probes, FunctionNumbers& numbers, Options options);

  // Probes every copy that is named, on the linker's paths, or already mapped.
  Result<> attach_known();
  const std::vector<Library>& all() const { return libraries_; }
  std::size_t attached() const { return attached_.size(); }

  // The trace begins: its ts 0 is this time on CLOCK_MONOTONIC.
  void begin(std::uint64_t begin_ns) { begin_ns_ = begin_ns; }
  // Code that processes have mapped: for any thread. Nothing: that is not watched.
  std::optional<MappingWatch::Code> read_code();
  std::vector<int> watch_fds() const;  // readable when a copy may have been mapped
  // Probes newly mapped copies, for a fraction of a second at most; the rest waits for the next
  // call. Withdraws the probes from copies that were written to.
  News look();
  // Reports copies that were mapped but never probed. To be called when the trace ends.
  News finish();

 private:
  struct Attached {
    LibraryFile file;
    std::optional<FirstPage> page;  // if the numbers are not enough to distinguish files
    ProbeSet::Attachment attachment;
    std::uint64_t probed_at;  // CLOCK_MONOTONIC
    bool copied = false;      // its name now leads to a copy, and no name leads to the file itself
    bool ahead = false;  // found in a process's LD_LIBRARY_PATH, and not known to have been late
  };

  void attach_named_and_found(std::vector<LibraryFile> files);
  void attach_mapped(const MappedLibrary& mapped, News& news);
  void attach_ahead(News& news, std::chrono::steady_clock::time_point give_up);
  // The loss of calls into a library from its mapping on.
  LossEvent missed(const MappedLibrary& mapped, std::uint64_t until, std::string_view what) const;
  void came_late(const MappedLibrary& mapped, std::uint64_t until, News& news);
  void note_if_ahead_was_late(const LibraryFile& file, const MappedLibrary& mapped, News& news);
  bool is_probed(const MappedLibrary& mapped) const;
  void attach_pending(News& news, std::chrono::steady_clock::time_point give_up);
  void read_watch(News& news);
  void queue(std::vector<MappedLibrary> mapped, News& news);
  void look_through_processes(News& news);
  void withdraw_changed(News& news);
  void attach_settled(News& news);
  void withdraw(std::size_t index, News& news);
  bool is_known(const LibraryFile& file, News& news);
  bool selects_nothing() const;
  Library attach(LibraryFile file, News& news);
  std::uint64_t now() const;  // ns since the trace began

  elf::Reader reader_;
  ProbeSet& probes_;
  FunctionNumbers& numbers_;
  Options options_;
  std::optional<MappingWatch> watch_;
  std::deque<MappedLibrary> pending_;
  std::deque<std::uint32_t> begun_;        // processes whose LD_LIBRARY_PATH must be looked at
  std::vector<std::string> looked_ahead_;  // values of that variable, with the processes' roots
  std::vector<Attached> attached_;
  struct Written {
    LibraryFile file;  // its id is as last seen
    std::uint64_t since;
  };
  std::vector<Written> written_;  // written to, so not traced; more writes may follow
  std::vector<FileId> refused_;
  std::vector<Library> libraries_;
  News early_;  // from before there was a trace to report it to
  std::uint64_t begin_ns_ = 0;
  bool missed_some_ = false;  // mappings were missed since processes were last looked through
  std::uint64_t looked_through_at_ = 0;
};

}  // namespace cudabpf
