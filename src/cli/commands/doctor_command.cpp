// cudabpf doctor: whether cudabpf can trace here, what it would trace, and what to do if it cannot.
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/doctor/diagnosis.hpp"
#include "cli/doctor/node.hpp"
#include "cli/help.hpp"
#include "cli/request/inside.hpp"
#include "cli/request/invoker.hpp"
#include "cli/request/program_path.hpp"
#include "cli/request/recordable.hpp"
#include "cli/shown.hpp"
#include "collect/bpf/features.hpp"
#include "collect/libraries.hpp"
#include "collect/library_functions.hpp"
#include "collect/linker_folders.hpp"
#include "collect/machine.hpp"
#include "cudabpf/inside.h"
#include "util/elf/elf_reader.hpp"
#include "util/exit_codes.hpp"
#include "util/system/privileges.hpp"
#include "util/text/json.hpp"

namespace cudabpf::cli {

namespace {

using Need = Finding::Need;

Finding from_result(std::string name, const Result<>& result, std::string when_well) {
  if (result) return {Need::required, std::move(name), Verdict::yes, std::move(when_well)};
  return {Need::required, std::move(name), Verdict::no, result.error().message,
          result.error().hint};
}

void check_system(std::vector<Finding>& findings) {
  Session machine;
  describe_machine(machine);
  auto permitted = check_permissions();
  findings.push_back(from_result("permissions", permitted,
                                 geteuid() == 0 ? "root" : "all capabilities that are needed"));
  bool btf = access("/sys/kernel/btf/vmlinux", R_OK) == 0;
  findings.push_back({Need::required, "BTF", btf ? Verdict::yes : Verdict::no,
                      "/sys/kernel/btf/vmlinux",
                      btf ? "" : "use a kernel built with CONFIG_DEBUG_INFO_BTF=y"});
  if (permitted)
    findings.push_back(from_result("kernel", check_kernel(),
                                   "Linux " + machine.linux_release + " " + machine.arch));
  else
    findings.push_back({Need::required, "kernel", Verdict::unknown,
                        "Linux " + machine.linux_release, "run `sudo cudabpf doctor` to try it"});
  findings.push_back({Need::required, "libbpf", Verdict::yes, libbpf_version_string()});
}

// The capabilities that cudabpf keeps once tracing has begun.
void check_kept(std::vector<Finding>& findings, const Features& features) {
  Capabilities held = privileges::permitted();
  for (const KeptCapability& capability : kept_capabilities(features, true)) {
    bool has = held.has(capability.number);
    findings.push_back({Need::optional, capability.name, has ? Verdict::yes : Verdict::no,
                        capability.why, has ? "" : "this process does not have it", &KEEPS});
  }
}

// Whether the command that the user names can be recorded inside its process, as far as its file
// shows.
bool check_program(std::vector<Finding>& findings, const std::string& program) {
  const auto& environment = caller().environment;
  std::string path = find_program(program, environment);
  if (path.empty() || access(path.c_str(), X_OK) != 0) {
    findings.push_back({Need::target, program, Verdict::no, "there is no such program"});
    return false;
  }
  uid_t user = caller().user ? caller().user->uid : geteuid();
  std::string why = why_not_recordable(path, environment, user);
  if (why.empty())
    findings.push_back({Need::target, program, Verdict::yes,
                        path + ": nothing in its file rules out `run --inside`"});
  else
    findings.push_back({Need::target, program, Verdict::no, why,
                        "record it with eBPF; programs that it starts can be recorded inside"});
  return why.empty();
}

// Needs no rights.
void check_inside(std::vector<Finding>& findings) {
  auto library = inside_library();
  if (!library) {
    findings.push_back(
        {Need::optional, INSIDE, Verdict::no, library.error().message, library.error().hint});
    return;
  }
  std::string other = value_in(caller().environment, CI_INJECTION);
  findings.push_back(
      {Need::optional, INSIDE, Verdict::yes,
       fmt::format("{}{}", *library,
                   other.empty() ? ""
                                 : fmt::format("; CUDA_INJECTION64_PATH names {}, which is loaded "
                                               "after it",
                                               other))});
}

void check_features(std::vector<Finding>& findings) {
  if (!check_permissions()) {
    findings.push_back({Need::optional, "features", Verdict::unknown,
                        "they are detected by trying them", "run `sudo cudabpf doctor`"});
    return;
  }
  auto features = Features::detect({}, {.driver = true, .one_process = true});
  for (const Feature& feature : features->list()) {
    Verdict verdict = feature.state == Feature::State::yes  ? Verdict::yes
                      : feature.state == Feature::State::no ? Verdict::no
                                                            : Verdict::unknown;
    std::string advice;
    if (verdict != Verdict::yes && feature.name == feature::UPROBE_MULTI)
      advice = "each function gets a link of its own instead: starting and stopping take longer";
    if (verdict != Verdict::yes && feature.name == feature::WATCH_MAPPINGS)
      advice = "a libcuda that is mapped later is not traced; name it with --library";
    if (verdict != Verdict::yes && feature.name == feature::PROCESS_EVENTS)
      advice = "children are not followed, and processes' ends are not seen";
    findings.push_back({Need::optional, feature.name, verdict, feature.why, advice, &FEATURE});
  }
  check_kept(findings, *features);
  const char* way = features->driver_way();
  findings.push_back({Need::optional, "--kernel", way ? Verdict::yes : Verdict::no,
                      way ? std::string("by ") + way : "no way to see requests to the driver",
                      way ? "" : "it needs a kernel with CONFIG_FTRACE_SYSCALLS"});
}

Finding check_library(const LibraryFile& file, const elf::Reader& reader) {
  elf::Wanted wanted = contents_wanted(*file.api);
  wanted.prologues = true;
  auto contents = reader.read(file.fd, wanted);
  if (!contents)
    return {Need::target, LIBCUDA, Verdict::no, file.path + ": " + contents.error().message,
            "it is left out; reinstall the driver if programs should use this copy"};
  if (std::string why = why_refused(*file.api, *contents, file.named); !why.empty())
    return {Need::target, LIBCUDA, Verdict::no, file.path + ": " + why,
            "it is a stub or another library; nothing of it is traced"};
  if (file.api->has_probes())
    return {Need::target, LIBCUDA, Verdict::yes,
            fmt::format("{}: USDT probes at {} places", file.path, contents->probes.size())};
  std::size_t counts[3] = {0, 0, 0}, unknown = 0, functions = 0;
  for (const auto& exported : contents->functions) {
    if (!belongs_to(*file.api, exported.name)) continue;
    const Function* known = find_function(exported.name);
    functions++;
    if (!known) unknown++;
    counts[static_cast<int>(known ? known->profile : Profile::default_)]++;
  }
  std::string what = fmt::format("{}: {} functions (light {}, default {}, full {})", file.path,
                                 functions, counts[0], counts[0] + counts[1], functions);
  if (unknown) what += fmt::format(", {} not in the table", unknown);
  if (contents->other_prologues)
    what += fmt::format(", {} begin with an instruction that the kernel may have to single-step",
                        contents->other_prologues);
  return {Need::target, LIBCUDA, Verdict::yes, what};
}

void check_libraries(std::vector<Finding>& findings) {
  Procfs procfs;
  auto reader = elf::Reader::start();
  if (!reader) {
    findings.push_back(
        {Need::target, LIBCUDA, Verdict::unknown, reader.error().message, reader.error().hint});
    return;
  }
  auto files = find_on_paths(value_in(caller().environment, "LD_LIBRARY_PATH"));
  for (auto& file : find_mapped(procfs, procfs.pids())) {
    bool known = std::any_of(files.begin(), files.end(),
                             [&](const LibraryFile& other) { return other.id.same_file(file.id); });
    if (!known) files.push_back(std::move(file));
  }
  if (files.empty())
    findings.push_back({Need::target, LIBCUDA, Verdict::no,
                        "none on the linker's paths, none mapped",
                        "install the NVIDIA driver, or set LD_LIBRARY_PATH to where libcuda.so.1 "
                        "is; containers bring their own, which is seen when it is mapped"});
  for (const LibraryFile& file : files) findings.push_back(check_library(file, *reader));
  for (const MappedLibrary& mapped : mapped_libraries(procfs, procfs.pids())) {
    auto pid = static_cast<pid_t>(mapped.pid);
    pid_t tracer = procfs.tracer(pid);
    bool is_listed = !findings.empty() && findings.back().name == fmt::format("process {}", pid);
    if (tracer && !is_listed)
      findings.push_back({Need::target, fmt::format("process {}", pid), Verdict::no,
                          fmt::format("it uses libcuda and is debugged by process {}", tracer),
                          "a debugger's breakpoint and a probe cannot share an address: end one "
                          "before the other begins"});
  }
}

void check_driver(std::vector<Finding>& findings) {
  Driver driver = nvidia_driver();
  if (driver.version.empty())
    findings.push_back(
        {Need::target, "NVIDIA driver", Verdict::no, "not loaded",
         "`nvidia-smi` shows more; without the driver, CUDA programs fail at cuInit"});
  else
    findings.push_back({Need::target, "NVIDIA driver", Verdict::yes,
                        driver.version + " (" + driver.flavour + " kernel module)"});
  auto gpus = nvidia_gpus();
  for (const Gpu& gpu : gpus)
    findings.push_back({Need::target, "GPU " + std::to_string(gpu.index), Verdict::yes,
                        gpu.name + " " + gpu.bus_id});
  if (gpus.empty() && !driver.version.empty())
    findings.push_back({Need::target, "GPU", Verdict::no, "the driver found none",
                        "`dmesg | grep NVRM` may say why"});
}

void print_lines(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    nlohmann::ordered_json line{{"subject", finding.subject()},
                                {"verdict", to_string(finding.verdict)},
                                {"what", finding.what}};
    if (!finding.advice.empty()) line["advice"] = finding.advice;
    fmt::print("{}\n", json::without_invisible(
                           line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  }
}

struct DoctorFlags {
  bool json = false, node = false;
  std::vector<std::string> command;
};

int doctor(const DoctorFlags& flags) {
  const std::vector<std::string>& command = flags.command;
  std::vector<Finding> findings;
  check_system(findings);
  check_features(findings);
  check_inside(findings);
  bool recordable =
      !command.empty() && check_program(findings, command.front()) && can_record_inside(findings);
  check_libraries(findings);
  check_driver(findings);
  if (flags.node) {
    NodePlaces places;
    places.libraries = linker_folders({});
    check_node(findings, places, clock_error());
  }
  if (flags.json) {
    print_lines(findings);
  } else {
    Page page = page_for(stdout);
    add_diagnosis(page, findings, terminal_of(STDOUT_FILENO).utf8);
    fmt::print("{}", page.take());
  }
  if (can_trace(findings) || recordable) return exit_code::OK;
  return check_permissions() ? exit_code::KERNEL_UNSUPPORTED : exit_code::NOT_PERMITTED;
}

std::string doctor_statuses() {
  using namespace exit_code;
  return fmt::format(
      "{} cudabpf can trace here, or record CMD inside its process; {} wrong usage; {} not "
      "permitted; {} the kernel "
      "lacks something that cudabpf needs.",
      OK, USAGE, NOT_PERMITTED, KERNEL_UNSUPPORTED);
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<DoctorFlags>(
      app, action, "doctor", "Show what works on this machine, what does not, and what to do",
      doctor);
  sub.add_flag("--json", flags.json, "Print one JSON object per line");
  sub.add_flag("--node", flags.node,
               "Also show what `cudabpf metrics` needs to tell of all pods and GPUs");
  sub.add_option("command", flags.command,
                 "Also show whether this command can be recorded inside its process")
      ->type_name("CMD");
  sub.positionals_at_end();
  add_footer(sub,
             {"sudo cudabpf doctor",
              "sudo cudabpf doctor --node   does it see all pods and GPUs of a node?",
              "cudabpf doctor -- python3 inference.py   can it be recorded without root?",
              "sudo cudabpf doctor --json | jq 'select(.verdict != \"yes\")'   what is wrong"},
             doctor_statuses());
}

}  // namespace cudabpf::cli
