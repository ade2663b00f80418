#include "collect/bpf/features.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/ranges.h>
#include <linux/capability.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>

#include "collect/bpf/kernel_btf.hpp"
#include "collect/bpf/kernel_files.hpp"
#include "collect/bpf/mapping_watch.hpp"
#include "collect/bpf/tracepoints.hpp"
#include "collect/bpf/uprobe_multi.hpp"
#include "collect/driver_functions.hpp"
#include "util/exit_codes.hpp"
#include "util/system/fd.hpp"
#include "util/system/privileges.hpp"

namespace cudabpf {

namespace {

using State = Feature::State;

struct Finding {
  State state;
  std::string why;
};

int load_return_zero(bpf_prog_type type, bpf_attach_type attach_type, std::uint32_t flags = 0) {
  const bpf_insn program[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
  };
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = attach_type,
              .prog_flags = flags);
  return bpf_prog_load(type, "cb_probe", "GPL", program, std::size(program), &options);
}

// Kernel commit 89ae89f53d20 ("bpf: Add multi uprobe link"), Linux 6.6.
Finding try_uprobe_multi() {
  if (kernel_links_uprobes(UprobeEnd::entry)) return {State::yes, "all functions in one call"};
  return {State::no, "this kernel has no uprobe_multi links (Linux 6.6 has them)"};
}

// Kernel commit d920179b3d48 ("bpf: Add support for uprobe multi session attach"), Linux 6.13.
Finding try_uprobe_session() {
  if (kernel_links_uprobes(UprobeEnd::both))
    return {State::yes, "processes that are not traced do not pay for returns"};
  return {State::no, "this kernel has no uprobe sessions (Linux 6.13 has them)"};
}

Finding try_uprobe_process() {
  if (links_see_all_threads())
    return {State::yes, "with --no-follow no other process gets a probe"};
  return {State::no, "this kernel has no probes for one process (Linux 6.11 has them)"};
}

// Kernel commit 8c7dcb84e3b7 ("bpf: implement sleepable uprobes by chaining gps"), Linux 6.0.
Finding try_sleepable() {
  Fd program(load_return_zero(BPF_PROG_TYPE_KPROBE, bpf_attach_type{}, BPF_F_SLEEPABLE));
  if (program) return {State::yes, "arguments in memory that is not resident are read too"};
  return {State::no, "this kernel has no sleepable uprobes (Linux 6.0 has them)"};
}

Finding try_process_events() {
  Fd program(load_return_zero(BPF_PROG_TYPE_RAW_TRACEPOINT, bpf_attach_type{}));
  if (!program)
    return {State::no, fmt::format("raw tracepoints are refused: {}", std::strerror(errno))};
  Fd link(bpf_raw_tracepoint_open("sched_process_fork", program.get()));
  if (!link) return {State::no, fmt::format("sched_process_fork: {}", std::strerror(errno))};
  return {State::yes, "fork, exec and exit through raw tracepoints"};
}

Finding try_mapping_watch() {
  auto watch = MappingWatch::open();
  if (watch) return {State::yes, "libraries mapped later are seen through perf mmap events"};
  return {State::no, watch.error().message};
}

// Does this kernel preempt threads inside it? If that can be chosen, the file reads
// "none voluntary (full) lazy"; else the kernel's version string says.
bool preempts_itself() {
  auto model = read_debugfs("sched/preempt");
  if (model)
    return model->find("(none)") == model->npos && model->find("(voluntary)") == model->npos;
  utsname name{};
  return uname(&name) != 0 ||
         std::string_view(name.version).find("PREEMPT") != std::string_view::npos;
}

constexpr const char* NO_FUNCTIONS =
    "nvidia and nvidia-uvm are not both loaded, or their functions have unknown names";

// Operations are best seen at the driver's own functions, if the kernel knows their types (cookies
// for these: kernel commit 2fcc82411e74, Linux 5.19). Both of its modules must be loaded, since a
// later one would not be seen.
Finding try_driver_fentry() {
  const auto& functions = driver_functions();
  if (functions.empty()) return {State::no, NO_FUNCTIONS};
  // Only one instance of such a program runs on a CPU at a time: if another thread preempts it and
  // calls the function, that call is not seen. Kprobes are not preempted.
  if (preempts_itself())
    return {State::no, "this kernel preempts itself, so simultaneous operations could be missed"};
  KernelBtf btf;
  auto function = btf.find(functions.front().module, functions.front().name);
  if (!function) return {State::no, function.error().message};
  const bpf_insn program[] = {
      {.code = BPF_JMP | BPF_CALL,
       .dst_reg = 0,
       .src_reg = 0,
       .off = 0,
       .imm = BPF_FUNC_get_attach_cookie},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
  };
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_FENTRY);
  options.attach_btf_id = function->id;
  options.attach_btf_obj_fd = static_cast<std::uint32_t>(function->object);
  Fd loaded(bpf_prog_load(BPF_PROG_TYPE_TRACING, "cb_probe", "GPL", program, std::size(program),
                          &options));
  if (!loaded)
    return {State::no, fmt::format("the kernel refuses such programs: {}", std::strerror(errno))};
  LIBBPF_OPTS(bpf_link_create_opts, link_options);
  link_options.tracing.cookie = 1;
  Fd link(bpf_link_create(loaded.get(), 0, BPF_TRACE_FENTRY, &link_options));
  if (!link)
    return {State::no, fmt::format("the kernel refused a trial link: {}", std::strerror(errno))};
  return {State::yes, fmt::format("{} functions of the driver", functions.size())};
}

// The second choice: kprobes.
Finding try_driver_kprobes() {
  if (access("/sys/bus/event_source/devices/kprobe/type", R_OK) != 0)
    return {State::no, "this kernel has no kprobes (CONFIG_KPROBE_EVENTS)"};
  const auto& functions = driver_functions();
  if (functions.empty()) return {State::no, NO_FUNCTIONS};
  return {State::yes, fmt::format("{} functions of the driver", functions.size())};
}

// The last choice: its system calls.
Finding try_syscall_tracepoints() {
  auto id = tracepoint_id("syscalls", "sys_enter_ioctl");
  if (id) return {State::yes, "requests to the driver are seen as system calls"};
  return {State::no, id.error().message};
}

Finding try_xid_tracepoint() {
  auto fields = tracepoint_fields("nvidia", "nvidia_dev_xid");
  if (fields) return {State::yes, "GPU errors are reported at once"};
  return {State::no, fields.error().message + "; GPU errors are read only from the kernel's log"};
}

struct Trial {
  const char* name;
  std::function<Finding()> run;
};

const std::array<Trial, 10>& trials() {
  static const std::array<Trial, 10> TRIALS = {
      {{feature::UPROBE_MULTI, try_uprobe_multi},
       {feature::UPROBE_SESSION, try_uprobe_session},
       {feature::UPROBE_PROCESS, try_uprobe_process},
       {feature::SLEEPABLE, try_sleepable},
       {feature::WATCH_MAPPINGS, try_mapping_watch},
       {feature::PROCESS_EVENTS, try_process_events},
       {feature::DRIVER_FENTRY, try_driver_fentry},
       {feature::DRIVER_KPROBES, try_driver_kprobes},
       {feature::SYSCALL_TRACEPOINTS, try_syscall_tracepoints},
       {feature::XID_TRACEPOINT, try_xid_tracepoint}}};
  return TRIALS;
}

// Tracing needs the first ones; the others are useful to a process that has them.
constexpr KeptCapability CAPABILITIES[] = {
    {CAP_BPF, "CAP_BPF", "probes in libraries that are mapped later"},
    {CAP_PERFMON, "CAP_PERFMON", "probes in libraries that are mapped later"},
    {CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "/proc of other users' processes: what they run and map"},
    {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "libraries in folders that others may not read"},
    {CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", "libraries that were deleted while mapped"},
    {CAP_SYS_ADMIN, "CAP_SYS_ADMIN",
     "probes in libraries that are mapped later, without uprobe_multi; with --kernel, in a driver "
     "that is reloaded"},
};
constexpr std::size_t NEEDED = 4;

}  // namespace

std::vector<std::string> missing_capabilities() {
  Capabilities held = privileges::effective();
  std::vector<std::string> missing;
  if (held.has(CAP_SYS_ADMIN)) return missing;  // stands in for all of them
  for (std::size_t i = 0; i < NEEDED; i++)
    if (!held.has(CAPABILITIES[i].number)) missing.emplace_back(CAPABILITIES[i].name);
  return missing;
}

std::vector<KeptCapability> kept_capabilities(const Features& features, bool driver) {
  bool admin = driver || !features.has(feature::UPROBE_MULTI);
  std::vector<KeptCapability> kept;
  for (const KeptCapability& capability : CAPABILITIES)
    if (admin || capability.number != CAP_SYS_ADMIN) kept.push_back(capability);
  return kept;
}

Result<> check_permissions() {
  auto missing = missing_capabilities();
  if (missing.empty()) return ok();
  if (geteuid() == 0)
    return Error{fmt::format("this root lacks capabilities that tracing needs: {}",
                             fmt::join(missing, ", ")),
                 "run cudabpf on the host, or give the container these capabilities",
                 exit_code::NOT_PERMITTED};
  return Error{fmt::format("tracing needs root, or these capabilities that this process lacks: {}",
                           fmt::join(missing, ", ")),
               "run it with sudo", exit_code::NOT_PERMITTED};
}

Result<> check_kernel() {
  if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
    return Error{"this kernel has no BTF (/sys/kernel/btf/vmlinux is missing)",
                 "use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as Debian's, Ubuntu's and "
                 "Fedora's are",
                 exit_code::KERNEL_UNSUPPORTED};
  Fd program(load_return_zero(BPF_PROG_TYPE_KPROBE, bpf_attach_type{}));
  if (!program) {
    int reason = errno;
    return Error{fmt::format("the kernel refuses to load a BPF program: {}", std::strerror(reason)),
                 reason == EPERM ? "a container, a lockdown or a seccomp filter forbids bpf(2): "
                                   "run cudabpf on the host, or give the container CAP_BPF, "
                                   "CAP_PERFMON and CAP_SYS_ADMIN"
                                 : "cudabpf needs Linux 5.15 or later with CONFIG_BPF_SYSCALL and "
                                   "CONFIG_UPROBE_EVENTS",
                 reason == EPERM ? exit_code::NOT_PERMITTED : exit_code::KERNEL_UNSUPPORTED};
  }
  int ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "cb_probe", 0, 0, 4096, nullptr);
  if (ring < 0)
    return Error{fmt::format("the kernel has no BPF ring buffer: {}", std::strerror(errno)),
                 "cudabpf needs Linux 5.15 or later", exit_code::KERNEL_UNSUPPORTED};
  close(ring);
  return ok();
}

std::vector<std::string> feature_names() {
  std::vector<std::string> names;
  for (const Trial& trial : trials()) names.emplace_back(trial.name);
  return names;
}

Result<Features> Features::detect(const std::vector<std::string>& disabled, const Wanted& wanted) {
  for (const std::string& name : disabled) {
    bool known = std::any_of(trials().begin(), trials().end(),
                             [&](const Trial& trial) { return name == trial.name; });
    if (!known)
      return Error{fmt::format("--no-feature {}: there is no such feature", name),
                   fmt::format("it is one of: {}", fmt::join(feature_names(), ", ")),
                   exit_code::USAGE};
  }
  auto find = [&](const Trial& trial, bool off) -> Finding {
    if (off) return {State::no, "turned off by --no-feature"};
    if (!wanted.driver && feature::is_of_driver(trial.name))
      return {State::unknown, "only --kernel uses it"};
    if (!wanted.one_process && std::string_view(trial.name) == feature::UPROBE_PROCESS)
      return {State::unknown, "only --no-follow uses it"};
    return trial.run();
  };
  Features features;
  for (const Trial& trial : trials()) {
    bool off = std::find(disabled.begin(), disabled.end(), trial.name) != disabled.end();
    Finding finding = find(trial, off);
    features.features_.push_back({trial.name, finding.state, finding.why, off});
  }
  return features;
}

bool Features::has(std::string_view name) const {
  for (const Feature& feature : features_)
    if (feature.name == name) return feature.state == State::yes;
  return false;
}

bool Features::is_disabled(std::string_view name) const {
  for (const Feature& feature : features_)
    if (feature.name == name) return feature.disabled;
  return false;
}

const char* Features::driver_way() const {
  for (const char* way : feature::DRIVER_WAYS)
    if (has(way)) return way;
  return nullptr;
}

}  // namespace cudabpf
