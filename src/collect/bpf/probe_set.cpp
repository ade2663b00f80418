#include "collect/bpf/probe_set.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <thread>

#include "collect/bpf/skeleton.hpp"
#include "util/console/log.hpp"
#include "util/exit_codes.hpp"
#include "util/system/container.hpp"
#include "util/system/file_limit.hpp"
#include "util/system/pipe.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf {

namespace {

// libbpf's last messages; shown only when a load fails.
std::string g_libbpf_messages;

int keep_message(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG) return 0;
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(nullptr, 0, format, again);
  va_end(again);
  std::string message(static_cast<std::size_t>(std::max(length, 0)) + 1, '\0');
  vsnprintf(message.data(), message.size(), format, arguments);
  message.pop_back();
  g_libbpf_messages += message;
  // A verifier log is long; what it refused is at the end.
  constexpr std::size_t KEEP = 3000;
  if (g_libbpf_messages.size() > KEEP)
    g_libbpf_messages.erase(0, g_libbpf_messages.find('\n', g_libbpf_messages.size() - KEEP) + 1);
  return 0;
}

// The last close of a single link waits for grace periods, one link after the other: a thousand
// take a minute or two. So a child keeps every descriptor until this process has closed its own,
// and then closes them without anything waiting for it. The child holds none of our terminals or
// pipes.
class SlowClosing {
 public:
  SlowClosing() {
    auto parent_closed = make_pipe();
    if (!parent_closed) return;
    if (fork() == 0) {
      setsid();
      prctl(PR_SET_NAME, "cudabpf-closing");
      for (int stdio : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(stdio);
      parent_closed->to_write.reset();
      char end;
      [[maybe_unused]] ssize_t got = read(parent_closed->to_read.get(), &end, 1);
      syscall(SYS_close_range, 0, ~0U, 0);
      _exit(0);
    }
    until_closed_ = std::move(parent_closed->to_write);
  }

 private:
  Fd until_closed_;
};

template <typename Blocks>
std::uint64_t over_cpus(const Blocks& blocks, unsigned counter) {
  std::uint64_t sum = 0;
  for (const auto& block : blocks) sum += __atomic_load_n(&block[counter], __ATOMIC_RELAXED);
  return sum;
}

// Each close waits for the kernel's grace periods; links closed at the same time share them.
void close_together(std::vector<Link> links) {
  std::vector<std::thread> closing;
  closing.reserve(links.size());
  for (Link& link : links) closing.emplace_back([closed = std::move(link)] {});
  for (std::thread& thread : closing) thread.join();
}

}  // namespace

bpf_program* ProbeSet::entry_program(const PlannedProbe& probe) const {
  const auto& programs = skeleton_->progs;
  bool session = way_ == Way::session;
  if (probe.semaphore) return programs.static_probe;
  if (probe.tallied) return session ? programs.tally_session : programs.tally_entry;
  if (probe.launch) return session ? programs.call_launch_session : programs.call_launch_entry;
  if (is_plain(probe)) return session ? programs.call_session : programs.call_entry;
  return session ? programs.call_rich_session : programs.call_rich_entry;
}

bpf_program* ProbeSet::return_program(const PlannedProbe& probe) const {
  if (way_ == Way::session || probe.plan.entry_only) return nullptr;
  const auto& programs = skeleton_->progs;
  if (probe.tallied) return programs.tally_return;
  return probe.plan.returns ? programs.call_out_return : programs.call_return;
}

// Where a program runs that is no return's. In the middle of a function nothing returns.
UprobeEnd ProbeSet::end_of(const bpf_program* program) const {
  const auto& programs = skeleton_->progs;
  bool once = program == programs.code_freed || program == programs.static_probe;
  return way_ == Way::session && !once ? UprobeEnd::both : UprobeEnd::entry;
}

void ProbeSet::choose_programs(const Features& features, const Options& options) {
  const auto& programs = skeleton_->progs;
  auto of_calls =
      way_ == Way::session
          ? std::vector{programs.call_session, programs.call_rich_session,
                        programs.call_launch_session}
          : std::vector{programs.call_entry, programs.call_rich_entry, programs.call_launch_entry,
                        programs.call_return, programs.call_out_return};
  auto of_tallies = way_ == Way::session  // they read no memory
                        ? std::vector{programs.tally_session}
                        : std::vector{programs.tally_entry, programs.tally_return};
  if (!options.most_tallies) of_tallies.clear();
  auto of_walks = way_ == Way::session
                      ? std::vector{programs.walk_session, programs.code_freed}
                      : std::vector{programs.walk_entry, programs.walk_return, programs.code_freed};
  if (!options.walked_ns) of_walks.clear();
  if (options.static_probes) of_calls.push_back(programs.static_probe);
  for (bpf_program* program : of_calls)
    if (features.has(feature::SLEEPABLE))
      bpf_program__set_flags(program, bpf_program__flags(program) | BPF_F_SLEEPABLE);
  of_calls.insert(of_calls.end(), of_tallies.begin(), of_tallies.end());
  of_calls.insert(of_calls.end(), of_walks.begin(), of_walks.end());
  for (bpf_program* program : of_calls) {
    bpf_program__set_autoload(program, true);
    if (way_ != Way::single_links)
      bpf_program__set_expected_attach_type(program, attach_type_of(end_of(program)));
  }
  if (options.driver) {
    DriverProbes::choose_programs(*skeleton_, features);
    driver_.emplace(*skeleton_);
  }
  if (features.has(feature::PROCESS_EVENTS))
    for (bpf_program* program :
         {programs.process_fork, programs.process_exec, programs.process_exit})
      bpf_program__set_autoload(program, true);
}

void ProbeSet::set_sizes_and_constants(const Features& features, const Options& options) {
  bpf_map__set_max_entries(skeleton_->maps.ring, static_cast<std::uint32_t>(options.ring_size));
  if (options.most_tallies) bpf_map__set_max_entries(skeleton_->maps.tallies, options.most_tallies);
  if (options.tally_times) {
    // A process has a few classes, and a few results.
    bpf_map__set_max_entries(skeleton_->maps.call_times, options.most_tallies);
    bpf_map__set_max_entries(skeleton_->maps.failed_calls, options.most_tallies);
    skeleton_->rodata->times_wanted = true;
  }
  if (options.walked_ns) bpf_map__set_max_entries(skeleton_->maps.pythons, CB_PYTHON_PROCESSES);
  skeleton_->rodata->slow_ns = options.walked_ns;
  skeleton_->rodata->follow_children = options.follow_children;
  skeleton_->rodata->driver_traced = options.driver;
  skeleton_->rodata->own_pid = static_cast<std::uint32_t>(getpid());
  skeleton_->rodata->can_sleep = features.has(feature::SLEEPABLE);
  // In the initial pid namespace, whose inode number is fixed, the plain helper is enough.
  constexpr ino_t INITIAL_PID_NAMESPACE = 0xeffffffc;
  struct stat pid_namespace {};
  if (stat("/proc/self/ns/pid", &pid_namespace) == 0 &&
      pid_namespace.st_ino != INITIAL_PID_NAMESPACE) {
    skeleton_->rodata->pidns_dev = pid_namespace.st_dev;
    skeleton_->rodata->pidns_ino = pid_namespace.st_ino;
  }
}

Result<std::unique_ptr<ProbeSet>> ProbeSet::load(const Features& features, const Options& options) {
  libbpf_set_print(keep_message);
  raise_file_limit();
  Skeleton opened(cudabpf_bpf__open());
  if (!opened) return errno_error("opening the BPF programs");
  cudabpf_bpf* skeleton = opened.get();
  Way way = !features.has(feature::UPROBE_MULTI)    ? Way::single_links
            : features.has(feature::UPROBE_SESSION) ? Way::session
                                                    : Way::multi;
  std::unique_ptr<ProbeSet> set(new ProbeSet(
      std::move(opened), way,
      features.has(feature::UPROBE_PROCESS) ? options.only_in : std::vector<std::uint32_t>{},
      options.give_up));
  set->choose_programs(features, options);
  set->set_sizes_and_constants(features, options);
  if (int error = cudabpf_bpf__load(skeleton)) {
    std::string hint = error == -EPERM ? "run it with sudo, outside a container that forbids bpf(2)"
                                       : "what the kernel said:\n" + g_libbpf_messages;
    return Error{std::string("loading the BPF programs: ") + std::strerror(-error), hint,
                 error == -EPERM ? exit_code::NOT_PERMITTED : exit_code::KERNEL_UNSUPPORTED};
  }
  set->reads_.emplace(skeleton->bss->reads);
  return set;
}

void SkeletonDeleter::operator()(cudabpf_bpf* skeleton) const { cudabpf_bpf__destroy(skeleton); }

ProbeSet::~ProbeSet() { detach(); }

std::string ProbeSet::refusal() {
  refused_ = errno;
  return std::string("the kernel refuses its probes: ") + std::strerror(refused_);
}

// Attaches a program to these places, in every process or in each of `only_in_`.
std::string ProbeSet::hang_program(const LibraryFile& file, bpf_program* program, UprobeEnd end,
                                   const UprobePlaces& places, std::vector<Link>& links) {
  std::string path = "/proc/self/fd/" + std::to_string(file.fd.get());
  g_libbpf_messages.clear();
  if (way_ == Way::single_links) {
    for (std::size_t i = 0; i < places.offsets.size(); i++) {
      if (give_up_()) return "the trace ended before its probes were in place";
      LIBBPF_OPTS(bpf_uprobe_opts, options);
      options.bpf_cookie = places.cookies[i];
      if (!places.semaphores.empty()) options.ref_ctr_offset = places.semaphores[i];
      options.retprobe = end == UprobeEnd::at_return;
      Link link(
          bpf_program__attach_uprobe_opts(program, -1, path.c_str(), places.offsets[i], &options));
      if (!link) return refusal();
      links.push_back(std::move(link));
    }
    return {};
  }
  constexpr std::uint32_t EVERY_PROCESS = 0;
  for (std::uint32_t pid : only_in_.empty() ? std::vector{EVERY_PROCESS} : only_in_) {
    Link link(link_uprobes(bpf_program__fd(program), path, end, places, pid));
    if (!link && pid && errno == ESRCH) continue;  // it has ended
    if (!link) return refusal();
    links.push_back(std::move(link));
  }
  return {};
}

std::string ProbeSet::hang(const LibraryFile& file, const std::vector<PlannedProbe>& probes,
                           Attached& attached) {
  std::map<bpf_program*, UprobePlaces> entries, returns;
  auto add = [](std::map<bpf_program*, UprobePlaces>& programs, bpf_program* program,
                const PlannedProbe& probe, abi::cb_plan plan) {
    if (!program) return;
    UprobePlaces& places = programs[program];
    places.offsets.push_back(probe.offset);
    places.cookies.push_back(std::bit_cast<std::uint64_t>(plan));
    if (probe.semaphore) places.semaphores.push_back(*probe.semaphore);
  };
  for (const PlannedProbe& probe : probes) {
    auto reads = reads_->place(probe.reads);
    if (!reads) return "the table of what is read is full";
    abi::cb_plan plan = probe.plan;
    plan.reads = *reads & (CB_READS - 1U);
    add(entries, entry_program(probe), probe, plan);
    add(returns, return_program(probe), probe, plan);
  }
  std::string error;
  // Returns first, so that a call that begins in between is at least seen to return.
  for (const auto& [program, places] : returns)
    if (error.empty())
      error = hang_program(file, program, UprobeEnd::at_return, places, attached.returns);
  for (const auto& [program, places] : entries)
    if (error.empty())
      error = hang_program(file, program, end_of(program), places, attached.entries);
  if (error.empty() && skeleton_->rodata->slow_ns) error = hang_walks(file, probes, attached.walks);
  return error;
}

// The kernel runs the programs at one place in reverse: the last one to come runs first. So a walk
// is reported while its call is still open.
std::string ProbeSet::hang_walks(const LibraryFile& file, const std::vector<PlannedProbe>& probes,
                                 std::vector<Link>& links) {
  const auto& programs = skeleton_->progs;
  UprobePlaces places;
  for (const PlannedProbe& probe : probes) {
    if (probe.plan.entry_only || probe.tallied) continue;
    places.offsets.push_back(probe.offset);
    places.cookies.push_back(std::bit_cast<std::uint64_t>(probe.plan));
  }
  if (places.offsets.empty()) return {};
  if (way_ == Way::session)
    return hang_program(file, programs.walk_session, UprobeEnd::both, places, links);
  std::string error = hang_program(file, programs.walk_return, UprobeEnd::at_return, places, links);
  if (!error.empty()) return error;
  return hang_program(file, programs.walk_entry, UprobeEnd::entry, places, links);
}

bool ProbeSet::watch_freed_codes(std::uint32_t pid, const Mapping& mapping, std::uint64_t address) {
  MappedLibrary mapped{.pid = pid,
                       .address = mapping.start,
                       .length = mapping.end - mapping.start,
                       .device = makedev(mapping.major, mapping.minor),
                       .inode = mapping.inode,
                       .path = mapping.path,
                       .api = &api(ApiId::cuda)};  // it is opened alike
  auto file = open_mapped(Procfs(), mapped);
  if (!file) return false;
  std::uint64_t offset = address - mapping.start + mapping.offset;
  for (const Freeing& known : freeing_)
    if (known.file.same_file(file->id) && known.offset == offset) return true;
  Freeing freeing{.file = file->id, .offset = offset, .links = {}};
  UprobePlaces place{.offsets = {offset}, .cookies = {0}};
  if (!hang_program(*file, skeleton_->progs.code_freed, UprobeEnd::entry, place, freeing.links)
           .empty())
    return false;
  freeing_.push_back(std::move(freeing));
  return true;
}

Result<ProbeSet::Attachment> ProbeSet::attach(const LibraryFile& file,
                                              const std::vector<PlannedProbe>& probes) {
  Attachment attachment = attached_.size();
  std::string error = hang(file, probes, attached_.emplace_back());
  if (error.empty()) return attachment;
  // All or nothing: a library with some of its probes would look complete.
  withdraw(attachment);
  return Error{error};
}

void ProbeSet::withdraw(Attachment attachment) {
  Attached& library = attached_[attachment];
  std::optional<SlowClosing> slow_closing;
  bool any = !library.entries.empty() || !library.returns.empty();
  if (way_ == Way::single_links && any) slow_closing.emplace();
  library.walks.clear();
  library.entries.clear();
  library.returns.clear();
}

Result<> ProbeSet::attach_process_events() {
  for (bpf_program* program : {skeleton_->progs.process_fork, skeleton_->progs.process_exec,
                               skeleton_->progs.process_exit}) {
    Link link(bpf_program__attach(program));
    if (!link) return errno_error("attaching to process events");
    process_links_.push_back(std::move(link));
  }
  return ok();
}

void ProbeSet::select_process(std::uint32_t pid) {
  if (pid >= CB_PID_LIMIT) return;
  for (auto* bits : {skeleton_->bss->once_traced, skeleton_->bss->traced})
    __atomic_fetch_or(&bits[pid / 64], 1ULL << (pid % 64), __ATOMIC_SEQ_CST);
}

void ProbeSet::unselect_process(std::uint32_t pid) {
  if (pid >= CB_PID_LIMIT) return;
  __atomic_fetch_and(&skeleton_->bss->traced[pid / 64], ~(1ULL << (pid % 64)), __ATOMIC_SEQ_CST);
}

bool ProbeSet::is_traced(std::uint32_t pid) const {
  return pid < CB_PID_LIMIT &&
         (__atomic_load_n(&skeleton_->bss->traced[pid / 64], __ATOMIC_SEQ_CST) >> (pid % 64) & 1);
}

bool ProbeSet::was_selected(std::uint32_t pid) const {
  auto selection = __atomic_load_n(&skeleton_->bss->selection, __ATOMIC_SEQ_CST);
  if (selection == abi::CB_SELECT_ALL) return true;
  const auto* once_traced = skeleton_->bss->once_traced;
  if (pid < CB_PID_LIMIT &&
      (__atomic_load_n(&once_traced[pid / 64], __ATOMIC_SEQ_CST) >> (pid % 64) & 1))
    return true;
  if (selection == abi::CB_SELECT_LISTED) return false;
  std::string cgroup = Procfs().process(static_cast<pid_t>(pid)).cgroup;
  return cgroup.empty() || is_inside_cgroup(unified_cgroup_path(cgroup), cgroup_path_);
}

void ProbeSet::select_cgroup(const CgroupFolder& folder) {
  skeleton_->bss->selected_cgroup = folder.id;
  skeleton_->bss->selected_cgroup_level = folder.level;
  cgroup_path_ = folder.path;
  __atomic_store_n(&skeleton_->bss->selection, abi::CB_SELECT_CGROUP, __ATOMIC_SEQ_CST);
}

void ProbeSet::select_all() {
  __atomic_store_n(&skeleton_->bss->selection, abi::CB_SELECT_ALL, __ATOMIC_SEQ_CST);
}

void ProbeSet::detach() {
  if (driver_) driver_->release_modules();
  std::optional<SlowClosing> slow_closing;
  if (way_ == Way::single_links && !attached_.empty()) {
    slow_closing.emplace();
    // Until the last is closed, the probes still fire, but no process is selected.
    __atomic_store_n(&skeleton_->bss->selection, abi::CB_SELECT_LISTED, __ATOMIC_SEQ_CST);
    for (auto& word : skeleton_->bss->traced) __atomic_store_n(&word, 0, __ATOMIC_SEQ_CST);
  }
  freeing_.clear();
  for (std::vector<Link> Attached::*links :
       {&Attached::walks, &Attached::entries, &Attached::returns}) {
    std::vector<Link> all;
    for (Attached& library : attached_)
      std::move((library.*links).begin(), (library.*links).end(), std::back_inserter(all));
    for (Attached& library : attached_) (library.*links).clear();
    if (way_ != Way::single_links) close_together(std::move(all));
  }
  if (driver_) driver_->detach();
  process_links_.clear();
}

std::uint32_t ProbeSet::drops(std::uint32_t tid) const {
  return __atomic_load_n(&skeleton_->bss->drops[tid & (CB_DROP_SLOTS - 1)], __ATOMIC_RELAXED);
}

bpf_map* ProbeSet::ring() const { return skeleton_->maps.ring; }

TallyMaps::Maps ProbeSet::tallies() const {
  TallyMaps::Maps maps{.functions = bpf_map__fd(skeleton_->maps.tallies)};
  if (!skeleton_->rodata->times_wanted) return maps;
  maps.classes = bpf_map__fd(skeleton_->maps.call_times);
  maps.failures = bpf_map__fd(skeleton_->maps.failed_calls);
  return maps;
}

int ProbeSet::pythons() const { return bpf_map__fd(skeleton_->maps.pythons); }

std::uint32_t ProbeSet::codes_freed(std::uint32_t pid, std::uint64_t code) const {
  const auto& counts = skeleton_->bss->codes_freed;
  return __atomic_load_n(&counts[abi::cb_code_slot(pid, code)], __ATOMIC_SEQ_CST);
}

std::uint64_t ProbeSet::counter(unsigned counter) const {
  return over_cpus(skeleton_->bss->counters, counter);
}

std::uint64_t ProbeSet::tally_counter(unsigned counter) const {
  return over_cpus(skeleton_->bss->tally_counters, counter);
}

}  // namespace cudabpf
