#include "sink/live.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <utility>

using namespace cudabpf;

namespace {

struct Watching {
  std::string text;
  bool stopped = false;
  LiveSink sink{[this](std::string_view part, bool last) {
    if (stopped && !last) return false;
    text += part;
    return true;
  }};
  std::string take() {
    sink.flush();
    return std::exchange(text, {});
  }
};

Process started() {
  Process process;
  process.pid = 42;
  process.comm = "python";
  process.cmdline = "python \033[2Jserve.py";
  process.ts = 1'500'000;
  return process;
}

}  // namespace

TEST_CASE("What happens is shown with its process") {
  Watching w;
  w.sink.process(started());
  CHECK(w.take() == "    0.001500  python/42               is traced: python ?[2Jserve.py\n");

  Call call;
  call.ts = 2'000'000'000;
  call.pid = 42;
  call.function = find_function("cuMemAlloc_v2");
  call.has_return = true;
  call.duration = 84'328;
  call.details.size = 4 << 20;
  call.ioctls = 4;
  call.ioctl_time = 59'799;
  w.sink.call(call);
  CHECK(w.take() ==
        "    2.000000  python/42               cuMemAlloc 4.00 MiB  84.3 µs, 4 ioctls 59.8 µs\n");
  call.ioctls = 0;
  call.result = 2;
  w.sink.call(call);
  CHECK(w.take().ends_with("cuMemAlloc 4.00 MiB  84.3 µs  CUDA_ERROR_OUT_OF_MEMORY\n"));

  KernelName name;
  name.short_name = "add";
  call = {};
  call.pid = 7;
  call.function = find_function("cuLaunchKernel");
  call.kernel = &name;
  call.details.has_dims = true;
  call.details.grid = {4096, 1, 1};
  call.details.block = {16, 16, 1};
  call.unfinished = true;
  w.sink.call(call);
  CHECK(w.take() ==
        "    0.000000  ?/7                     cuLaunchKernel add <<<4096, 16x16>>>  unfinished\n");

  DriverCall driver_call;
  driver_call.pid = 42;
  driver_call.call = 1;
  driver_call.device = "nvidiactl";
  driver_call.details.name = "NV_ESC_RM_CONTROL";
  driver_call.details.control = 0x20801234;
  driver_call.has_return = true;
  driver_call.duration = 1500;
  driver_call.status = 0x56;
  w.sink.driver_call(driver_call);
  CHECK(w.take().ends_with(
      "  NV_ESC_RM_CONTROL 0x20801234 on nvidiactl  1.50 µs  NV_ERR_NOT_SUPPORTED\n"));
  driver_call = {};
  driver_call.op = DriverCall::Op::isr;
  driver_call.cpu = 3;
  driver_call.duration = 2000;
  w.sink.driver_call(driver_call);
  CHECK(w.take() == "    0.000000  cpu 3                   isr  2.00 µs\n");

  w.sink.gpu_error({5000, 79, "off the bus", "0000:0a:00.0", 42, "python", "gone", false});
  CHECK(w.take() ==
        "    0.000005  python/42               Xid 79 on 0000:0a:00.0: off the bus (gone)\n");
  w.sink.lost({Loss::ring_entry, 1200, 0, 1000, {}});
  CHECK(w.take() == "    0.000001                          LOST 1,200 ring_full_entry\n");
  Process gone = started();
  gone.op = Process::Op::exit;
  gone.exit_code = 3;
  w.sink.process(gone);
  CHECK(w.take().ends_with("python/42               exits with 3\n"));
}

TEST_CASE("A launch of a graph is shown with what it holds") {
  Watching w;
  GraphContent content;
  content.number = 7;
  content.kernels = 20;
  Call call;
  call.function = find_function("cuGraphLaunch");
  call.has_return = true;
  call.graph = &content;
  w.sink.call(call);
  CHECK(w.take().find("cuGraphLaunch graph 7: 20 kernels  ") != std::string::npos);
  call.graph = nullptr;
  call.captured = true;
  w.sink.call(call);
  CHECK(w.take().find("cuGraphLaunch captured  ") != std::string::npos);
}

TEST_CASE("More than can be read is left out, and the page says so") {
  Watching w;
  for (int i = 0; i < 1500; i++) w.sink.process(started());
  std::string text = w.take();
  CHECK(std::count(text.begin(), text.end(), '\n') == 201);
  CHECK(text.ends_with("  … 1,300 more\n"));
  w.sink.process(started());
  text = w.take();
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  w.sink.end({});
  CHECK(w.text.empty());
}

TEST_CASE("What a stopped terminal did not take is counted where it would be") {
  Watching w;
  w.stopped = true;
  for (int flush = 0; flush < 3; flush++) {
    for (int i = 0; i < 300; i++) w.sink.process(started());
    w.sink.flush();
  }
  CHECK(w.text.empty());
  w.stopped = false;
  w.sink.process(started());
  std::string text = w.take();
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  CHECK(text.starts_with("               … 900 more\n    0.001500  python/42 "));
  w.stopped = true;
  w.sink.process(started());
  w.sink.flush();
  w.sink.end({});
  CHECK(w.text == "               … 1 more\n");
}

TEST_CASE("A traced program cannot write to the terminal that watches it") {
  Watching w;
  Process process = started();
  process.comm =
      "\xc2\x9b"
      "2J";
  process.cmdline = "a\xe2\x80\xaetxt.exe \xff\n0.1 forged";
  w.sink.process(process);
  CHECK(w.take() == "    0.001500  ?2J/42                  is traced: a?txt.exe ??0.1 forged\n");
  Library library;
  library.path = "/tmp/\033]0;title\a/libcuda.so";
  w.sink.library(library);
  CHECK(w.take().ends_with("  traces /tmp/?]0;title?/libcuda.so\n"));
}
