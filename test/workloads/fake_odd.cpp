// Makes driver calls in the ways that break tracers which change a program's code: README.md lists
// them. What it prints is the same whether it is traced or not.
#include <dlfcn.h>
#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "driver.hpp"

int main(int argc, char** argv);

namespace workload {
namespace {

using Word = uint64_t;
using HostFunction = void(void*);
using StreamCallback = void(Handle, Status, void*);

struct Odd {
  const Driver& driver;
  std::string other;  // the path of another libcuda

  template <typename... Arguments>
  Status call(const char* symbol, Arguments... arguments) const {
    void* entry = driver.exported(symbol);
    if (!entry) {
      fprintf(stderr, "fake_odd: the library exports no %s\n", symbol);
      exit(1);
    }
    return reinterpret_cast<Status (*)(Arguments...)>(entry)(arguments...);
  }

  Status host_function(HostFunction* function, void* data = nullptr) const {
    return call("cuLaunchHostFunc", Handle{}, function, data);
  }
};

void setup(const Driver& driver) {
  Handle context = nullptr;
  check(driver, driver.cuInit(0), "cuInit");
  check(driver, driver.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(driver, driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

constexpr int kTimes = 1000;

// ----- what leaves a call without returning from it

// Through one call, and through two, one inside the other.
void exceptions(const Odd& odd) {
  int caught = 0;
  struct Guard {
    int& count;
    ~Guard() { ++count; }
  };
  int unwound = 0;
  for (int i = 0; i < kTimes; ++i) {
    try {
      const Guard guard{unwound};
      odd.host_function([](void*) { throw std::runtime_error("one"); });
    } catch (const std::runtime_error& error) {
      caught += strcmp(error.what(), "one") == 0;
    }
    try {
      const Guard guard{unwound};
      StreamCallback* outer = [](Handle, Status, void* data) {
        static_cast<const Odd*>(data)->host_function([](void*) { throw 7; });
      };
      odd.call("cuStreamAddCallback", Handle{}, outer, static_cast<const void*>(&odd), 0U);
    } catch (int number) {
      caught += number == 7;
    }
    odd.driver.cuStreamSynchronize(nullptr);
  }
  printf("caught %d, unwound %d\n", caught, unwound);
}

jmp_buf back;

bool jumps_back(const Odd& odd) {
  if (setjmp(back) != 0) return true;
  odd.host_function([](void*) { longjmp(back, 1); });
  return false;
}

void jumps(const Odd& odd) {
  int came = 0;
  for (int i = 0; i < kTimes; ++i) {
    came += jumps_back(odd);
    odd.driver.cuStreamSynchronize(nullptr);
  }
  printf("came back %d times\n", came);
}

// A thread that is cancelled, which unwinds it, and one that ends itself, in a call.
void thread_ends(const Odd& odd) {
  for (int i = 0; i < 100; ++i) {
    pthread_t thread;
    const auto body = [](void* data) -> void* {
      static_cast<const Odd*>(data)->host_function([](void*) { pthread_exit(nullptr); });
      return nullptr;
    };
    if (pthread_create(&thread, nullptr, body, const_cast<Odd*>(&odd)) != 0) exit(1);
    pthread_join(thread, nullptr);
  }
  odd.driver.cuStreamSynchronize(nullptr);
  printf("all threads have ended\n");
}

// ----- code that looks at the stack from inside a call

bool reaches_main() {
  void* addresses[64];
  const int count = backtrace(addresses, 64);
  for (int i = 0; i < count; ++i) {
    if (_Unwind_FindEnclosingFunction(addresses[i]) == reinterpret_cast<void*>(&main)) return true;
  }
  return false;
}

void backtraces(const Odd& odd) {
  static bool reached;
  odd.host_function([](void*) { reached = reaches_main(); });
  printf("a backtrace %s main\n", reached ? "reaches" : "does not reach");
}

// For a debugger to look at: stays in a call until there is a line on stdin.
void waits_in_call(const Odd& odd) {
  odd.host_function([](void*) {
    printf("in the call\n");
    fflush(stdout);
    for (char c = 0; read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) {
    }
  });
  odd.driver.cuStreamSynchronize(nullptr);
  printf("out of the call\n");
}

// ----- signals

// A handler that makes calls, at any moment of other calls. Both functions take no lock.
void handlers(const Odd& odd) {
  using Get = Status(int32_t*);
  using Start = Status();
  static auto* start = reinterpret_cast<Start*>(odd.driver.exported("cuProfilerStart"));
  static std::atomic<int> handled{0};
  auto* get = reinterpret_cast<Get*>(odd.driver.exported("cuDriverGetVersion"));
  start();
  struct sigaction action = {};
  action.sa_handler = [](int) {
    const int kept = errno;
    if (start() == kSuccess) ++handled;
    errno = kept;
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &often, nullptr);
  int version = 0, wrong = 0;
  while (handled < kTimes) wrong += get(&version) != kSuccess || version != 13000;
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  printf("%d calls went wrong\n", wrong);
}

// ----- arguments

// Arguments of every kind, with addresses that are the same each time.
void arguments(const Odd& odd) {
  void* at = mmap(reinterpret_cast<void*>(0x1000000000), 1 << 16, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED) return perror("fake_odd: mmap");
  auto* words = static_cast<Word*>(at);
  for (Word i = 0; i < 1024; ++i) words[i] = i * 0x0101010101010101;
  Bytes<64> handle;
  Bytes<104> frame;
  memcpy(&handle, words + 3, sizeof handle);
  memcpy(&frame, words + 40, sizeof frame);
  const auto texture = reinterpret_cast<Handle>(0x1234);
  odd.call("cuTexRefSetMipmapLevelBias", texture, 1.5F);
  odd.call("cuTexRefSetMipmapLevelClamp", texture, -2.25F, 1e30F);
  odd.call("cuParamSetf", Handle{}, int32_t{-4}, 3.25F);
  odd.call("cuIpcOpenMemHandle_v2", words + 500, handle, 0xfffffff1U);
  odd.call("cuIpcOpenEventHandle", words + 501, handle);
  odd.call("cuEGLStreamProducerPresentFrame", static_cast<void*>(words + 502), frame,
           static_cast<void*>(words + 503));
  odd.call("cuLaunchKernel", Handle{}, 1U, 2U, 3U, 4U, 5U, 6U, 7U, reinterpret_cast<Handle>(8),
           reinterpret_cast<void*>(9), reinterpret_cast<void*>(10));
  odd.call("cuTensorMapEncodeIm2colWide", static_cast<void*>(words + 600), 1U, 2U,
           static_cast<void*>(words + 610), static_cast<void*>(words + 620),
           static_cast<void*>(words + 630), int32_t{-6}, int32_t{7}, 8U, 9U,
           static_cast<void*>(words + 640), 11U, 12U, 13U, 14U, 15U);
  for (const char* name :
       {"cuFlushGPUDirectRDMAWrites", "cuCtxRecordEvent", "cuTexRefCreate", "cuTexRefDestroy",
        "cuCtxResetPersistingL2Cache"}) {  // how they begin, is odd
    const Status status = odd.call(name, words + 700, words + 701, 3, 4, 5, 6, 7, 8);
    printf("%s: %u\n", name, status);
  }
  Word sum = 0;
  for (Word i = 0; i < 1024; ++i) sum = sum * 31 + words[i];
  printf("memory sums up to %lx\n", sum);
}

// errno, and the registers that a program may keep values in across calls.
void kept_state(const Odd& odd) {
  int wrong = 0;
  double sum = 0;
  Word hash = 1;
  for (int i = 0; i < kTimes; ++i) {
    errno = 1000 + i;
    odd.driver.cuStreamSynchronize(nullptr);
    wrong += errno != 1000 + i;
    sum += 1.0 / (i + 1);
    hash = hash * 6364136223846793005 + static_cast<Word>(i);
  }
  printf("errno was changed %d times, sums %.17g and %lx\n", wrong, sum, hash);
}

// ----- libraries and processes

using Number = Status(uint32_t);
using Nothing = Status();

Status use(const Odd& odd, void* library) {
  Status worst = reinterpret_cast<Number*>(dlsym(library, "cuInit"))(0);
  for (int i = 0; i < 100; ++i) {
    worst = std::max(worst, reinterpret_cast<Nothing*>(dlsym(library, "cuProfilerStart"))());
    worst = std::max(worst, odd.driver.cuStreamSynchronize(nullptr));
  }
  return worst;
}

// Another libcuda in the same process, which is loaded and unloaded again and again. It is used by
// threads that end, since it stays as long as a thread has variables of it to destroy.
void copies(const Odd& odd) {
  int unloaded = 0;
  Status worst = kSuccess;
  for (int i = 0; i < 5; ++i) {
    void* library = dlopen(odd.other.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      fprintf(stderr, "%s\n", dlerror());
      exit(1);
    }
    std::thread([&] { worst = std::max(worst, use(odd, library)); }).join();
    dlclose(library);
    unloaded += dlopen(odd.other.c_str(), RTLD_NOW | RTLD_NOLOAD) == nullptr;
    worst = std::max(worst, odd.driver.cuStreamQuery(nullptr));
  }
  printf("the worst result was %u; unloaded %d times\n", worst, unloaded);
}

// vfork, whose child uses its parent's memory until it is another program.
void vforks(const Odd& odd) {
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) odd.driver.cuStreamSynchronize(nullptr);
  });
  int good = 0;
  for (int i = 0; i < 100; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      if (i % 2) _exit(0);
      execl("/bin/true", "true", nullptr);
      _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    good += status == 0;
    odd.driver.cuStreamQuery(nullptr);
  }
  over = true;
  other.join();
  printf("%d children were well\n", good);
}

// Threads that all call cuInit as their first call, and go on at once.
void crowd(const Odd& odd) {
  std::atomic<int> ready{0};
  constexpr int kThreads = 16;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      ++ready;
      while (ready < kThreads) {
      }
      check(odd.driver, odd.driver.cuInit(0), "cuInit");
      for (int j = 0; j < kTimes; ++j) odd.driver.cuStreamSynchronize(nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  printf("%d threads\n", kThreads);
}

ucontext_t outside;
const Odd* inside_a_fiber;

void beginning_of_a_fiber() {
  inside_a_fiber->call("cuCtxSynchronize");
  inside_a_fiber->call("cuProfilerStart");
}

// On stacks of their own, at whose top memory ends.
void fibers(const Odd& odd) {
  constexpr size_t kStack = 64 << 10, kPage = 4096;
  inside_a_fiber = &odd;
  int ended = 0;
  for (int i = 0; i < 2; ++i) {
    void* memory = mmap(nullptr, kStack + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, kStack, PROT_READ | PROT_WRITE);
    ucontext_t fiber;
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = memory;
    fiber.uc_stack.ss_size = kStack;
    fiber.uc_link = &outside;
    makecontext(&fiber, beginning_of_a_fiber, 0);
    swapcontext(&outside, &fiber);
    ++ended;
    munmap(memory, kStack + kPage);
  }
  printf("%d fibers\n", ended);
}

const std::map<std::string, void (*)(const Odd&)> kWays = {
    {"arguments", arguments},   {"backtraces", backtraces},
    {"copies", copies},         {"crowd", crowd},
    {"exceptions", exceptions}, {"fibers", fibers},
    {"handlers", handlers},     {"jumps", jumps},
    {"kept-state", kept_state}, {"thread-ends", thread_ends},
    {"vforks", vforks},         {"waits-in-call", waits_in_call},
};

}  // namespace
}  // namespace workload

int main(int argc, char** argv) {
  workload::DriverOptions options;
  std::string way, other;
  CLI::App app("Makes driver calls in odd ways");
  app.add_option("--library,--libcuda", options.library, "the driver to load");
  app.add_option("--other", other, "another copy of it, for `copies`");
  app.add_option("way", way)->required();
  CLI11_PARSE(app, argc, argv);
  const auto found = workload::kWays.find(way);
  if (found == workload::kWays.end()) {
    fprintf(stderr, "fake_odd: there is no way %s\n", way.c_str());
    return 2;
  }
  const workload::Driver driver(options);
  if (way != "crowd") workload::setup(driver);
  found->second({driver, other});
  return 0;
}
