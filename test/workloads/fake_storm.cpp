// Calls one driver function over and over, with as little as possible around it.
#include <signal.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "driver.hpp"

namespace workload {
namespace {

struct Options {
  DriverOptions driver;
  std::string symbol = "cuLaunchKernel", arguments;
  double seconds = 0, rate = 0;
  uint64_t count = 0, touch = 0;
  int threads = 1;
};

constexpr int kMaxArguments = 11;
using Word = uint64_t;
using Six = Status(Word, Word, Word, Word, Word, Word);
using Eleven = Status(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);

struct Call {
  void* function;
  Word words[kMaxArguments] = {};
  int count = 0;

  Status operator()() const {
    const Word* w = words;
    if (count <= 6) return reinterpret_cast<Six*>(function)(w[0], w[1], w[2], w[3], w[4], w[5]);
    return reinterpret_cast<Eleven*>(function)(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8],
                                               w[9], w[10]);
  }
};

std::atomic<bool> stop{false};

void ask_to_stop(int) { stop.store(true, std::memory_order_relaxed); }

std::string default_arguments(const std::string& symbol) {
  if (symbol.starts_with("cuLaunchKernelEx")) return "config function 0 0";
  if (symbol.starts_with("cuLaunchKernel")) return "function 1 1 1 32 1 1 0 0 0 0";
  if (symbol.starts_with("cuLaunchCooperativeKernel")) return "function 1 1 1 32 1 1 0 0 0";
  if (symbol.starts_with("cuMemcpyHtoD")) return "device buffer 4096";
  if (symbol.starts_with("cuMemcpyDtoH")) return "buffer device 4096";
  if (symbol.starts_with("cuCtxGetDevice")) return "buffer";
  return "";
}

// What the arguments refer to: a kernel, device memory, host memory, a launch's configuration.
struct Objects {
  Handle function = nullptr;
  DevicePtr device = 0;
  alignas(64) char buffer[4096] = {};
  LaunchConfig config = {{1, 1, 1}, {32, 1, 1}, 0, nullptr, nullptr, 0};
  Handle context = nullptr;

  explicit Objects(const Driver& driver) {
    static const char image[64] = "\177ELF";
    Handle module = nullptr;
    check(driver, driver.cuInit(0), "cuInit");
    check(driver, driver.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(driver, driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(driver, driver.cuModuleLoadData(&module, image), "cuModuleLoadData");
    check(driver, driver.cuModuleGetFunction(&function, module, "_Z5stormPf"),
          "cuModuleGetFunction");
    check(driver, driver.cuMemAlloc(&device, sizeof buffer), "cuMemAlloc");
  }

  Word value(const std::string& token) {
    if (token == "function") return reinterpret_cast<Word>(function);
    if (token == "device") return device;
    if (token == "buffer") return reinterpret_cast<Word>(buffer);
    if (token == "config") return reinterpret_cast<Word>(&config);
    char* end = nullptr;
    const Word number = strtoull(token.c_str(), &end, 0);
    if (token.empty() || *end) {
      fprintf(stderr, "argument '%s' is no number and none of function, device, buffer, config\n",
              token.c_str());
      exit(2);
    }
    return number;
  }
};

Call make_call(const Options& options, const Driver& driver, Objects& objects) {
  Call call{driver.exported(options.symbol.c_str())};
  if (!call.function) {
    fprintf(stderr, "%s exports no %s\n", options.driver.library.c_str(), options.symbol.c_str());
    exit(2);
  }
  std::istringstream tokens(options.arguments.empty() ? default_arguments(options.symbol)
                                                      : options.arguments);
  for (std::string token; tokens >> token;) {
    if (call.count == kMaxArguments) {
      fprintf(stderr, "more than %d arguments\n", kMaxArguments);
      exit(2);
    }
    call.words[call.count++] = objects.value(token);
  }
  return call;
}

uint64_t run_flat_out(const Call& call, uint64_t count) {
  uint64_t made = 0;
  while (made < count && !stop.load(std::memory_order_relaxed)) {
    call();
    ++made;
  }
  return made;
}

// Makes the calls that are due by the clock, and sleeps while none is: a late call does not shift
// those after it.
uint64_t run_paced(const Call& call, uint64_t count, double calls_per_ns) {
  const uint64_t start = monotonic_ns();
  uint64_t made = 0;
  while (made < count && !stop.load(std::memory_order_relaxed)) {
    const auto elapsed = static_cast<double>(monotonic_ns() - start);
    const uint64_t due = std::min(count, static_cast<uint64_t>(elapsed * calls_per_ns) + 1);
    while (made < due) {
      call();
      ++made;
    }
    const double next = static_cast<double>(made) / calls_per_ns - elapsed;
    if (next > 1000) sleep_us(static_cast<uint64_t>(std::min(next / 1000, 100000.0)));
  }
  return made;
}

// Acts like a program that works on its data between calls: what a call needs has left the caches.
// Adds the calls' own time to `busy_ns`.
uint64_t run_cold(const Call& call, uint64_t count, uint64_t touch, uint64_t& busy_ns) {
  constexpr size_t kCacheLine = 64;
  std::vector<char> data(touch);
  uint64_t made = 0;
  while (made < count && !stop.load(std::memory_order_relaxed)) {
    for (size_t at = 0; at < touch; at += kCacheLine) data[at]++;
    const uint64_t begin = monotonic_ns();
    call();
    busy_ns += monotonic_ns() - begin;
    ++made;
  }
  return made;
}

struct Result {
  uint64_t calls = 0, begin_ns = 0, end_ns = 0;
  uint64_t busy_ns = 0;  // in calls
};

Result storm(const Options& options, const Driver& driver, const Objects& objects,
             const Call& call) {
  prctl(PR_SET_TIMERSLACK, 1000);  // sleeps end when they should, not 50 us later
  driver.cuCtxSetCurrent(objects.context);
  const uint64_t count = options.count ? options.count : UINT64_MAX;
  Result result;
  result.begin_ns = monotonic_ns();
  const double calls_per_ns = options.rate / options.threads / 1e9;
  if (options.touch)
    result.calls = run_cold(call, count, options.touch, result.busy_ns);
  else if (options.rate > 0)
    result.calls = run_paced(call, count, calls_per_ns);
  else
    result.calls = run_flat_out(call, count);
  result.end_ns = monotonic_ns();
  if (!options.touch) result.busy_ns = result.end_ns - result.begin_ns;
  return result;
}

void report(const std::vector<Result>& results) {
  uint64_t calls = 0, busy_ns = 0, begin = UINT64_MAX, end = 0;
  for (const Result& result : results) {
    calls += result.calls;
    busy_ns += result.busy_ns;
    begin = std::min(begin, result.begin_ns);
    end = std::max(end, result.end_ns);
  }
  const double seconds = static_cast<double>(end - begin) / 1e9;
  const auto made = static_cast<double>(calls);
  printf("calls=%llu seconds=%.6f calls_per_second=%.0f ns_per_call=%.2f\n",
         static_cast<unsigned long long>(calls), seconds, made / seconds,
         calls ? static_cast<double>(busy_ns) / made : 0.0);
}

int run(const Options& options) {
  const Driver driver(options.driver);
  Objects objects(driver);
  const Call call = make_call(options, driver, objects);
  signal(SIGINT, ask_to_stop);
  signal(SIGTERM, ask_to_stop);
  std::vector<Result> results(static_cast<size_t>(options.threads));
  std::vector<std::thread> threads;
  for (Result& result : results) {
    threads.emplace_back([&] { result = storm(options, driver, objects, call); });
  }
  if (options.seconds > 0) {
    const uint64_t end = monotonic_ns() + static_cast<uint64_t>(options.seconds * 1e9);
    for (uint64_t now = monotonic_ns(); !stop && now < end; now = monotonic_ns()) {
      sleep_us(std::min<uint64_t>((end - now) / 1000 + 1, 10000));
    }
    stop = true;
  }
  for (std::thread& thread : threads) thread.join();
  report(results);
  return 0;
}

}  // namespace
}  // namespace workload

int main(int argc, char** argv) {
  workload::Options options;
  CLI::App app("Calls one driver function in a tight loop and prints what a call took");
  app.add_option("--library,--libcuda", options.driver.library, "the driver to load");
  app.add_flag("--dlsym", options.driver.use_dlsym, "find functions by dlsym");
  app.add_option("--symbol", options.symbol, "the exported function")->capture_default_str();
  app.add_option("--args", options.arguments,
                 "its arguments: numbers, or function, device, buffer, config");
  app.add_option("--seconds", options.seconds, "how long");
  app.add_option("--count", options.count, "how many calls, in each thread");
  app.add_option("--rate", options.rate, "calls a second, all threads together");
  app.add_option("--touch", options.touch,
                 "bytes of memory to touch between calls, whose time does not count");
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 1024));
  CLI11_PARSE(app, argc, argv);
  if (options.seconds <= 0 && options.count == 0) options.seconds = 1;
  return workload::run(options);
}
