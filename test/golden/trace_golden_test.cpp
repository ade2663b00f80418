// Checks one of everything that a trace can hold, byte for byte; and the questions that the
// documentation answers from a trace, with real jq.
#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "golden.hpp"
#include "support/sample_calls.hpp"
#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "trace/files/jsonl.hpp"

using namespace cudabpf;

namespace {

Session a_session() {
  Session session;
  session.version = "0.1.0";
  session.host = "gpu-1";
  session.linux_release = "6.12.9-amd64";
  session.boot_id = "0c9b2f4e-5d1a-4a57-9b0e-6f1f1c0b7d21";
  session.rank = {{"RANK", 3}, {"LOCAL_RANK", 3}, {"WORLD_SIZE", 8}};
  session.arch = "x86_64";
  session.driver = "580.159.04";
  session.gpus = {{0, "NVIDIA H200", "GPU-6a0d", "0000:19:00.0"}};
  session.mode = "run";
  session.source = "inside";
  session.unseen = {"calls before cuInit"};
  session.command = {"python", "serve.py", "--name", "a \"b\" \xff"};
  session.profile = "default";
  session.only = {"cuMem*", "cuLaunchKernel"};
  session.exclude = {"cuMemFree"};
  session.left_out = {"copies", "waits", "frees"};
  session.ring_size = 32 << 20;
  session.realtime_ns = 1'795'000'000'000'000'001;
  session.monotonic_ns = 5'000'000'000;
  session.boottime_ns = 6'000'000'000;
  session.clock_error = ClockError{-1500, 4000, 12, 0x2001};
  Library found;
  found.api = "cuda";
  found.path = "/usr/lib/libcuda.so.580.159.04";
  found.build_id = "7c1f";
  found.device = 66306;
  found.inode = 1443;
  found.functions = 578;
  found.skipped = 104;
  Library not_traced;
  not_traced.path = "/opt/libcuda.so.1";
  not_traced.error = "it is for AArch64, and this machine is x86-64";
  session.libraries = {found, not_traced};
  session.features = {{"uprobe_multi", Feature::State::yes, "", false},
                      {"module_btf", Feature::State::no, "nvidia has no BTF", false},
                      {"fentry", Feature::State::unknown, "not tried", true}};
  return session;
}

Process a_process(Process::Op op, std::uint64_t ts) {
  Process process;
  process.op = op;
  process.ts = ts;
  process.pid = 4242;
  process.ppid = 4100;
  process.uid = 1000;
  process.comm = "python";
  process.rank = {{"RANK", 3}};
  return process;
}

void write_processes(Sink& sink) {
  sink.process(a_process(Process::Op::start, 10));
  sink.process(a_process(Process::Op::fork, 20));
  Process exec = a_process(Process::Op::exec, 30);
  exec.ns_pid = 7;
  exec.cmdline = "python serve.py --name \xff\n";
  exec.exe = "/usr/bin/python3.11";
  exec.cgroup = "/system.slice/docker-8f2b.scope";
  exec.container_runtime = "docker";
  exec.container_id = "8f2b";
  exec.pod = "6b4a";
  sink.process(exec);
  Process exit = a_process(Process::Op::exit, 40);
  exit.unit = "vllm.service";
  exit.exit_code = 3;
  sink.process(exit);
  Process killed = a_process(Process::Op::exit, 50);
  killed.signal = 9;
  sink.process(killed);
}

class Calls {
 public:
  explicit Calls(Sink& sink) : sink_(sink) {}

  void emit(SampleCall& call, std::uint64_t duration) {
    call.id = ++id_;
    call.ts = ts_ += 10'000;
    call.duration = duration;
    sink_.call(call);
  }
  void emit(SampleCall&& call, std::uint64_t duration) { emit(call, duration); }

 private:
  Sink& sink_;
  std::uint64_t id_ = 0, ts_ = 100'000;
};

void write_calls(Sink& sink) {
  Calls calls(sink);
  calls.emit(SampleCall("cuInit", {0}), 36'112'410);
  calls.emit(SampleCall("cuCtxCreate_v2", {0x7ffe1000, 8, 0}, {0x55d0}), 37'000'001);
  SampleCall module("cuModuleGetFunction", {1, 0x55d1, 3}, {0x55d2});
  module.text = "_Z3addPf\xff\"";
  module.has_text = true;
  calls.emit(module, 9000);
  calls.emit(SampleCall("cuMemAlloc_v2", {1, 1 << 20}, {0x7f2a40000000}), 104'221);
  SampleCall failing("cuMemAlloc_v2", {1, std::numeric_limits<std::uint64_t>::max()});
  failing.fail(2);
  calls.emit(failing, 20'000);
  calls.emit(SampleCall("cuMemAllocManaged", {1, 4096, 1}, {0x7f2b00000000}), 5000);
  calls.emit(SampleCall("cuMemAllocPitch_v2", {1, 2, 100, 16, 4}, {0x7f2c00000000, 512}), 5000);
  calls.emit(SampleCall("cuMemcpyHtoD_v2", {0x7f2a40000000, 0x5555, 1 << 20}), 61'500);
  SampleCall inferred("cuMemcpyAsync", {0x7f2a40000000, 0x7f2a40001000, 64, 0x7f00});
  inferred.details.op = Op::DtoD;
  inferred.details.inferred_op = true;
  calls.emit(inferred, 4000);

  auto name = kernel_named("void add<4, \"x\">(float*)", "add");
  SampleCall launch("cuLaunchKernel", {0x55d2, 4096, 2, 1, 256, 1, 1, 1024, 0x7f00, 0, 0});
  launch.kernel = &name;
  calls.emit(launch, 3871);
  name.from_handle = true;
  calls.emit(launch, 2999);
  launch.kernel = nullptr;
  launch.parent = 99;
  calls.emit(launch, 3000);

  SampleCall hanging("cuCtxSynchronize");
  hanging.has_return = false;
  hanging.unfinished = true;
  calls.emit(hanging, 0);
  SampleCall lost("cuMemFree_v2", {0x7f2a40000000});
  lost.has_return = false;
  lost.return_lost = true;
  calls.emit(lost, 0);
  SampleCall orphan("cuStreamSynchronize");
  orphan.has_return = false;
  orphan.entry_lost = true;
  orphan.result = 999;
  orphan.words = {};
  orphan.details = {};
  calls.emit(orphan, 0);
  SampleCall faulty("cuModuleLoad", {1, 2}, {0x55d1});
  faulty.read_fault = true;
  faulty.string_cut = true;
  calls.emit(faulty, 1);
}

std::string write_trace(const std::string& path) {
  JsonlOptions options;
  options.output.path = path;
  auto opened = JsonlSink::open(options);
  REQUIRE(opened);
  JsonlSink& sink = **opened;
  sink.begin(a_session());
  write_processes(sink);
  write_calls(sink);
  Library library;
  library.path = "/proc/4242/root/usr/lib/libcuda.so.1";
  library.functions = 500;
  library.unknown = 3;
  library.ts = 77;
  sink.library(library);
  sink.lost({Loss::ring_entry, 120, 1000, 2000, ""});
  sink.lost({Loss::late_library, std::nullopt, 1000, 2000, "/usr/lib/libcuda.so.1"});
  sink.lost({Loss::ring_name, 2, 0, 3000, ""});
  Totals totals;
  totals.duration_ns = 52'000'000;
  totals.counts.calls = 16;
  totals.counts.unfinished = 1;
  totals.accounts = {40, 38, 2, 38};
  totals.losses[static_cast<std::size_t>(Loss::ring_entry)] = 120;
  totals.losses[static_cast<std::size_t>(Loss::ring_name)] = 2;
  totals.kernel_names = {7, 1};
  totals.command_status = 3;
  totals.reason = "command ended";
  sink.end(totals);
  return file_text(path);
}

}  // namespace

TEST_CASE("A trace, byte for byte") {
  TemporaryFolder folder;
  std::string text = write_trace(folder.path() / "t.jsonl");
  CHECK(trace_lines(text).size() == 27);
  check_golden("trace.jsonl", text);
}

TEST_CASE("The questions that people ask of a trace work as written") {
  if (!is_installed("jq")) SKIP("jq is not installed");
  TemporaryFolder folder;
  std::string file = folder.path() / "t.jsonl";
  write_trace(file);
  auto answer = [&](const std::string& rest) {
    return output_of("grep -E '^{' " + file + " | " + rest);
  };
  CHECK(answer("jq -r '.type' | LC_ALL=C sort | uniq -c") ==
        "      1 context\n      1 end\n      1 init\n      3 kernel\n      1 library\n"
        "      3 lost\n      5 memory\n      2 module\n      5 process\n      2 sync\n"
        "      1 trace\n      2 transfer\n");
  CHECK(answer("jq -r '.name' | LC_ALL=C sort | uniq") ==
        "cuCtxCreate\ncuCtxSynchronize\ncuInit\ncuLaunchKernel\ncuMemAlloc\ncuMemAllocManaged\n"
        "cuMemAllocPitch\ncuMemFree\ncuMemcpyAsync\ncuMemcpyHtoD\ncuModuleGetFunction\n"
        "cuModuleLoad\ncuStreamSynchronize\nnull\n");
  CHECK(answer("jq -c 'select(.type==\"memory\" and .op==\"alloc\") | {ts, size}' | head -n 1") ==
        "{\"ts\":140000,\"size\":1048576}\n");
  CHECK(answer("jq 'select(.type==\"memory\" and .op==\"alloc\") | {ts, size}' | grep -c size") ==
        "4\n");
  CHECK(answer("jq -c 'select(.type==\"kernel\" and .op==\"launch\")' | wc -l") == "3\n");
  CHECK(answer("jq 'select(.type==\"kernel\" and .op==\"launch\")' | wc -l") != "0\n");
  CHECK(answer("jq 'select(.name==\"cuLaunchKernel\")' | jq -r '.ts' | "
               "awk 'NR>1 {print $1-prev} {prev=$1}'") == "10000\n10000\n");
  CHECK(answer("jq -c 'select(.type==\"kernel\") | {ts, name}'") ==
        "{\"ts\":200000,\"name\":\"cuLaunchKernel\"}\n{\"ts\":210000,\"name\":\"cuLaunchKernel\"}\n"
        "{\"ts\":220000,\"name\":\"cuLaunchKernel\"}\n");
  // jq prints the values themselves as 36112.41 or 36112.410, depending on its version.
  CHECK(answer("jq 'select(.duration_us and .name) | {name, duration_us}' | "
               "jq -s 'sort_by(.duration_us) | reverse | .[0:10]' | jq -c '.[0:3] | map(.name)'") ==
        "[\"cuCtxCreate\",\"cuInit\",\"cuMemAlloc\"]\n");
}
