#include "collect/bpf/driver_probes.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "collect/bpf/kernel_btf.hpp"
#include "collect/bpf/skeleton.hpp"
#include "collect/bpf/tracepoints.hpp"
#include "collect/driver_functions.hpp"
#include "collect/ioctl_plan.hpp"
#include "util/console/log.hpp"
#include "util/system/privileges.hpp"

namespace cudabpf {

namespace {

// How often the kernel skipped a program because one was already running on that CPU.
std::uint64_t skipped_runs(int program) {
  bpf_prog_info information{};
  std::uint32_t size = sizeof(information);
  privileges::Raised rights({CAP_BPF});  // needed before Linux 5.19
  if (program < 0 || bpf_obj_get_info_by_fd(program, &information, &size) != 0) return 0;
  return information.recursion_misses;
}

}  // namespace

void DriverProbes::choose_programs(cudabpf_bpf& skeleton, const Features& features) {
  const auto& programs = skeleton.progs;
  auto choose = [](std::initializer_list<bpf_program*> chosen) {
    for (bpf_program* program : chosen) bpf_program__set_autoload(program, true);
  };
  choose({programs.driver_xid});
  if (features.has(feature::DRIVER_FENTRY)) {
    // Programs loaded with the others serve only as templates for copies, so any function will do.
    std::string some = driver_functions().front().name;
    auto copied = {programs.driver_function_entered, programs.driver_function_left};
    if (std::all_of(copied.begin(), copied.end(), [&](bpf_program* program) {
          return bpf_program__set_attach_target(program, 0, some.c_str()) == 0;
        }))
      choose(copied);
  }
  if (features.has(feature::DRIVER_KPROBES))
    choose({programs.driver_function, programs.driver_function_return});
  if (features.has(feature::SYSCALL_TRACEPOINTS))
    choose({programs.driver_ioctl, programs.driver_open, programs.driver_close,
            programs.driver_mmap, programs.driver_poll, programs.driver_exit});
}

void DriverProbes::set_version(const DriverVersion& version) {
  for (unsigned number = 0; number < CB_IOCTL_PLANS; number++) {
    auto narrow = static_cast<std::uint8_t>(number);
    skeleton_.bss->escape_plans[number] = escape_plan(narrow, version);
    skeleton_.bss->uvm_plans[number] = uvm_plan(narrow, version);
  }
}

Result<std::string> DriverProbes::attach(const Features& features) {
  Error failure{"--kernel: this kernel offers no way to see ioctls that cudabpf can use",
                "it needs CONFIG_FTRACE_SYSCALLS; `cudabpf doctor` says more",
                exit_code::KERNEL_UNSUPPORTED};
  for (const char* way : feature::DRIVER_WAYS) {
    if (!features.has(way)) continue;
    Result<> attached = way == feature::DRIVER_FENTRY    ? attach_by_fentry(features)
                        : way == feature::DRIVER_KPROBES ? attach_by_kprobes(features)
                                                         : attach_system_calls(SystemCalls::all);
    if (attached) return std::string(way);
    log::hint("without {}: {}", way, attached.error().message);
    failure = attached.error();
    detach();
  }
  return failure;
}

// Compilers change some functions so that their types are no longer known: those get kprobes.
Result<> DriverProbes::attach_by_fentry(const Features& features) {
  auto functions = driver_functions();
  if (functions.empty()) return Error{"the driver's functions were not found", {}};
  for (const std::string& name : poll_functions()) functions.push_back({"", name, abi::CB_POLL});
  KernelBtf btf;
  for (const DriverFunction& function : functions) {
    auto attached = attach_fentry(btf, function);
    if (!attached && features.has(feature::DRIVER_KPROBES)) attached = attach_kprobe(function);
    if (!attached && function.needed)
      return Error{function.name + ": " + attached.error().message, {}};
  }
  return ok();
}

// The kernel watches at most twice as many returns at once as it has CPUs. Threads that wait in
// poll() would use them up, so polls are seen as system calls.
Result<> DriverProbes::attach_by_kprobes(const Features& features) {
  const auto& functions = driver_functions();
  if (functions.empty()) return Error{"the driver's functions were not found", {}};
  for (const DriverFunction& function : functions)
    if (auto attached = attach_kprobe(function); !attached && function.needed)
      return Error{function.name + ": " + attached.error().message, {}};
  if (features.has(feature::SYSCALL_TRACEPOINTS)) return attach_system_calls(SystemCalls::polls);
  return ok();
}

// Returns are attached first, here and below: so if an operation begins meanwhile, its end is seen.
Result<> DriverProbes::attach_fentry(KernelBtf& btf, const DriverFunction& function) {
  auto type = TRY(btf.find(function.module, function.name));
  const auto& programs = skeleton_.progs;
  for (auto [program, attach_type] : {std::pair{programs.driver_function_left, BPF_TRACE_FEXIT},
                                      {programs.driver_function_entered, BPF_TRACE_FENTRY}}) {
    // A loaded program serves only one function, so each function gets a copy.
    LIBBPF_OPTS(bpf_prog_load_opts, load, .expected_attach_type = attach_type);
    load.attach_btf_obj_fd = static_cast<std::uint32_t>(type.object);
    load.attach_btf_id = type.id;
    Copy copy;
    copy.program =
        Fd(bpf_prog_load(BPF_PROG_TYPE_TRACING, bpf_program__name(program), "Dual BSD/GPL",
                         bpf_program__insns(program), bpf_program__insn_cnt(program), &load));
    if (!copy.program) return errno_error("loading a program");
    LIBBPF_OPTS(bpf_link_create_opts, link);
    link.tracing.cookie = function.op;
    copy.link = Fd(bpf_link_create(copy.program.get(), 0, attach_type, &link));
    if (!copy.link) return errno_error("attaching a program");
    copies_.push_back(std::move(copy));
  }
  return ok();
}

Result<> DriverProbes::attach_kprobe(const DriverFunction& function) {
  const auto& programs = skeleton_.progs;
  LIBBPF_OPTS(bpf_kprobe_opts, options);
  options.bpf_cookie = function.op;
  std::string symbol =
      function.module.empty() ? function.name : function.module + ":" + function.name;
  for (bool at_return : {true, false}) {
    options.retprobe = at_return;
    Link link(bpf_program__attach_kprobe_opts(
        at_return ? programs.driver_function_return : programs.driver_function, symbol.c_str(),
        &options));
    if (!link) return errno_error("attaching a kprobe");
    links_.push_back(std::move(link));
  }
  return ok();
}

Result<> DriverProbes::attach_system_calls(SystemCalls which) {
  const auto& programs = skeleton_.progs;
  const struct {
    const char* name;
    bpf_program* program;
    abi::cb_driver_op op;
  } system_calls[] = {{"ioctl", programs.driver_ioctl, abi::CB_IOCTL},
                      {"openat", programs.driver_open, abi::CB_OPEN},
                      {"close", programs.driver_close, abi::CB_CLOSE},
                      {"mmap", programs.driver_mmap, abi::CB_MMAP},
                      {"ppoll", programs.driver_poll, abi::CB_POLL},
                      {"poll", programs.driver_poll, abi::CB_POLL}};
  for (const auto& [name, program, op] : system_calls) {
    bool polls = op == abi::CB_POLL;
    if (which == SystemCalls::polls && !polls) continue;
    for (bool at_exit : {true, false}) {
      auto link = attach_tracepoint(at_exit ? programs.driver_exit : program, "syscalls",
                                    std::string(at_exit ? "sys_exit_" : "sys_enter_") + name, op);
      if (!link && errno == ENOENT && polls) continue;  // arm64: no poll
      if (!link) return link.error();
      links_.push_back(std::move(*link));
    }
  }
  return ok();
}

Result<> DriverProbes::attach_xid() {
  if (xid_link_) return ok();
  auto format = TRY(tracepoint_fields("nvidia", "nvidia_dev_xid"));
  auto& layout = skeleton_.bss->xid_layout;
  layout = {format["dev"], format["error_code"], format["msg"]};
  if (!layout.device_at || !layout.number_at || !layout.message_at)
    return Error{"the tracepoint nvidia:nvidia_dev_xid has unknown fields", {}};
  xid_link_ = TRY(attach_tracepoint(skeleton_.progs.driver_xid, "nvidia", "nvidia_dev_xid", 0));
  return ok();
}

std::uint64_t DriverProbes::skipped() const {
  const auto& programs = skeleton_.progs;
  std::uint64_t sum = skipped_before_;
  for (bpf_program* program :
       {programs.driver_function, programs.driver_function_return, programs.driver_ioctl,
        programs.driver_open, programs.driver_close, programs.driver_mmap, programs.driver_poll,
        programs.driver_exit, programs.driver_xid})
    sum += skipped_runs(bpf_program__fd(program));
  for (const Copy& copy : copies_) sum += skipped_runs(copy.program.get());
  return sum;
}

void DriverProbes::set_devices(const DriverDevices& devices) {
  auto list = devices.for_kernel_side();
  std::copy(list.begin(), list.end(), skeleton_.bss->driver_devices);
}

void DriverProbes::detach() {
  release_modules();
  while (!links_.empty()) links_.pop_back();
}

// The last attached go first: entries before their returns.
void DriverProbes::release_modules() {
  for (std::size_t i = copies_.size(); i-- > 0;) copies_[i].link.reset();
  for (const Copy& copy : copies_) skipped_before_ += skipped_runs(copy.program.get());
  copies_.clear();
  xid_link_ = {};
}

}  // namespace cudabpf
