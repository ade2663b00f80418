// Which kernel a handle stands for in each process.
//
// Names come from two sources: from the calls that resolve them (cuModuleGetFunction and the like),
// and from the handle itself: driver 580 keeps a pointer to the name at offset 8, which the kernel
// side follows. The second source is trusted only if the first has confirmed it or, if there is
// nothing to compare with, if the text looks like a kernel's name: a wrong name is worse than none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

#include "correlate/calls/bounds.hpp"
#include "correlate/calls/learner.hpp"
#include "cudabpf/event.hpp"
#include "cudabpf/record.hpp"
#include "cudabpf/sink.hpp"
#include "util/hash.hpp"

namespace cudabpf {

class KernelNames : public Learner {
 public:
  explicit KernelNames(Bounds& bounds) : bounds_(bounds) {}

  // What a handle belongs to, which determines when it may be reused: a CUfunction goes with its
  // module and its context, a CUkernel with its library.
  struct Owner {
    std::uint64_t handle = 0;  // the module or library
    bool in_context = false;
  };

  // A name as in a record. If it was cut, only its beginning is known.
  struct ReadName {
    std::string_view text;
    bool cut = false;
  };

  void began(ThreadId thread, Frame& frame) {
    Type type = frame.function->type;
    // The others are memory handles.
    if (frame.details.handle && (type == Type::kernel || type == Type::graph))
      frame.kernel = find(thread.pid, *frame.details.handle);
  }
  void ended(const CallStack& stack, Call& call) {
    if (call.function->names != NamesEffect::none && call.result == 0) follow(call, stack.top());
  }
  void orphaned(Call& call);
  void process_gone(std::uint32_t pid);
  // The call gives a handle a name.
  static bool learns_from(const Call& call) {
    return call.function->names == NamesEffect::learn && call.result == 0 && !call.outs.empty();
  }
  // The kernel side has read a name from a handle.
  void on_record(const Record& record) {
    ReadName name = {record.text, (record.head->flags & abi::CB_STRING_CUT) != 0};
    read_from_handle(record.head->pid, record.handle, name, record.head->ts);
  }

  // A call resolved `name` to `handle` at `ts` (like all times here, a record's).
  void learned(std::uint32_t pid, std::uint64_t handle, Owner owner, ReadName name,
               std::uint64_t ts);
  // A call turned a kernel's handle into a function's in the current context.
  void learned_alias(std::uint32_t pid, std::uint64_t handle, std::uint64_t of, std::uint64_t ts);
  // The kernel side read `name` from `handle`; empty: there was nothing to read.
  void read_from_handle(std::uint32_t pid, std::uint64_t handle, ReadName name, std::uint64_t ts);

  // The handle stands for a kernel whose name is not known.
  void forget_handle(std::uint32_t pid, std::uint64_t handle);
  // A call that began at `began` ended an owner: handles known before may be reused. What other
  // threads have learned since is about newer handles.
  void owner_unloaded(std::uint32_t pid, std::uint64_t owner, std::uint64_t began);
  void context_destroyed(std::uint32_t pid, std::uint64_t began);
  void forget_handles(std::uint32_t pid);  // a module or a context ended, but it is not known which

  // A kernel of this name, whatever its handle. Null: there is no room for it.
  const KernelName* named(ReadName name) { return intern(name, false); }

  // The limit of names is reached: names that no handle has and that are not in use may go. If
  // there is still no room, new names stay unknown.
  bool want_room() const;
  void forget_unused(const std::unordered_set<const KernelName*>& used);

  const KernelName* find(std::uint32_t pid, std::uint64_t handle) const;

  // How often the two sources agreed and disagreed, in all processes.
  const KernelNameCounts& counts() const { return counts_; }

 private:
  struct Entry {
    const KernelName* name = nullptr;
    Owner owner;
    bool learned = false;
    std::uint64_t ts = 0;
  };
  struct ProcessNames {
    HashMap<std::uint64_t, Entry> handles;
    KernelNameCounts counts;
    std::size_t size() const { return handles.size(); }
  };

  void follow(const Call& call, const Frame& frame);
  const KernelName* intern(ReadName name, bool from_handle);
  void keep(ProcessNames& process, std::uint64_t handle, const Entry& entry);
  void forget(ProcessNames& process, std::uint64_t handle);
  template <typename Gone>
  void forget_if(ProcessNames& process, Gone&& gone);
  bool trusts_handles(const ProcessNames& process) const;

  HashMap<std::uint32_t, ProcessNames> processes_;
  std::size_t handles_ = 0;  // of all processes
  // Launches repeat few names many times, so each is demangled and quoted once. One map per source;
  // the keys point into the names' own texts.
  HashMap<std::string_view, std::unique_ptr<KernelName>> names_[2];
  std::size_t name_bytes_ = 0;
  std::uint64_t refused_ = 0;  // names refused since the unused ones went
  Bounds& bounds_;
  KernelNameCounts counts_;
};

// Could this be a kernel's linker name? PTX identifiers consist of letters, digits, _, $ and %.
bool plausible_kernel_name(std::string_view name);

}  // namespace cudabpf
