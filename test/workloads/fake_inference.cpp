// Goes through an inference as a framework does: driver, context, kernels, weights, warm-up; for
// each token, one round of launches, a small copy and a synchronisation; and everything is freed at
// the end. README.md says which calls that makes.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "driver.hpp"

extern char** environ;

namespace workload {
namespace {

enum class LaunchApi { kernel, ex, cooperative, graph };

struct Options {
  DriverOptions driver;
  int tokens = 8, layers = 4, weights = 16, threads = 1, processes = 0, spawn = 0;
  uint64_t pause_before_init_ms = 0, pause_before_tokens_ms = 0, token_pause_us = 0;
  LaunchApi launch_api = LaunchApi::kernel;
  int exit_code = 0, kill_self = 0;
  bool print = false;
};

constexpr uint64_t kInputBytes = 4096, kOutputBytes = 65536, kPinnedBytes = 65536;
constexpr uint64_t kTokenBytes = 8;

// The sizes differ, so that a trace cannot pass off one for another.
uint64_t weight_bytes(int index) { return (1ULL << 20) + static_cast<uint64_t>(index % 7) * 4096; }

// A kernel of a template library: its mangled name has 700 characters.
std::string long_name() {
  const std::string head = "_ZN7cutlass13device_kernelI", tail = "EEvT_";
  std::string name = head;
  const std::string part = "N4cute5tupleIJNS_1CILi128EEENS_1CILi64EEEEEE";
  while (name.size() + part.size() + tail.size() <= 700) name += part;
  while (name.size() + tail.size() < 700) name += 'i';
  return name + tail;
}

// The kernels of one layer, in the order of their launches; the first two come from a library.
const std::vector<std::string>& layer_kernels() {
  static const std::vector<std::string> names = {
      "_Z14fused_add_normPKfS0_Pfi",
      "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn",
      "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEE"
      "viT0_T1_",
      "_ZN7flashai16flash_fwd_kernelINS_23Flash_fwd_kernel_traitsILi64ELi128ELi128ELi4EEELb0EEEvN"
      "S_16Flash_fwd_paramsE",
      long_name(),
  };
  return names;
}

const char* const kSampleKernel = "_Z6argmaxPKfPii";

class Inference {
 public:
  explicit Inference(const Options& options) : options_(options), driver_(options.driver) {}

  void run() {
    stage("init");
    init();
    stage("load");
    load_kernels();
    load_weights();
    std::vector<std::thread> others;
    for (int i = 1; i < options_.threads; ++i) others.emplace_back([this] { generate(false); });
    generate(options_.print);
    for (std::thread& other : others) other.join();
    if (options_.kill_self) kill(getpid(), options_.kill_self);
    stage("free");
    release();
    stage("done");
  }

 private:
  void stage(const char* name) const {
    if (!options_.print) return;
    printf("[%8.3f ms] %s\n", static_cast<double>(monotonic_ns() - start_ns_) / 1e6, name);
    fflush(stdout);
  }

  void must(Status status, const char* what) const { check(driver_, status, what); }

  void init() {
    must(driver_.cuInit(0), "cuInit");
    int32_t version = 0, count = 0, value = 0;
    must(driver_.cuDriverGetVersion(&version), "cuDriverGetVersion");
    must(driver_.cuDeviceGetCount(&count), "cuDeviceGetCount");
    must(driver_.cuDeviceGet(&device_, 0), "cuDeviceGet");
    char name[128];
    must(driver_.cuDeviceGetName(name, sizeof name, device_), "cuDeviceGetName");
    for (const uint32_t attribute : {75U, 76U, 16U}) {  // compute capability, multiprocessors
      must(driver_.cuDeviceGetAttribute(&value, attribute, device_), "cuDeviceGetAttribute");
    }
    uint64_t bytes = 0;
    must(driver_.cuDeviceTotalMem(&bytes, device_), "cuDeviceTotalMem");
    must(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
    must(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
  }

  void load_kernels() {
    static const char image[64] = "\177ELF";
    must(driver_.cuModuleLoadData(&module_, image), "cuModuleLoadData");
    must(driver_.cuLibraryLoadData(&library_, image, nullptr, nullptr, 0, nullptr, nullptr, 0),
         "cuLibraryLoadData");
    for (const std::string& name : layer_kernels()) {
      Handle kernel = nullptr;
      if (kernels_.size() < 2) {
        must(driver_.cuLibraryGetKernel(&kernel, library_, name.c_str()), "cuLibraryGetKernel");
      } else {
        must(driver_.cuModuleGetFunction(&kernel, module_, name.c_str()), "cuModuleGetFunction");
      }
      kernels_.push_back(kernel);
    }
    Handle sample = nullptr;
    must(driver_.cuLibraryGetKernel(&sample, library_, kSampleKernel), "cuLibraryGetKernel");
    must(driver_.cuKernelGetFunction(&sample_, sample), "cuKernelGetFunction");
  }

  void load_weights() {
    const std::vector<char> file(weight_bytes(6));
    for (int i = 0; i < options_.weights; ++i) {
      DevicePtr weight = 0;
      must(driver_.cuMemAlloc(&weight, weight_bytes(i)), "cuMemAlloc");
      must(driver_.cuMemcpyHtoD(weight, file.data(), weight_bytes(i)), "cuMemcpyHtoD");
      weights_.push_back(weight);
    }
  }

  // What each thread does: its own stream, input and output, and all tokens.
  void generate(bool print) {
    if (print) stage("input");
    must(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
    Handle stream = nullptr, executable = nullptr;
    DevicePtr input = 0, output = 0;
    void* pinned = nullptr;
    must(driver_.cuStreamCreate(&stream, 1), "cuStreamCreate");
    must(driver_.cuMemAlloc(&input, kInputBytes), "cuMemAlloc");
    must(driver_.cuMemAlloc(&output, kOutputBytes), "cuMemAlloc");
    must(driver_.cuMemHostAlloc(&pinned, kPinnedBytes, 0), "cuMemHostAlloc");
    must(driver_.cuMemcpyHtoDAsync(input, pinned, kInputBytes, stream), "cuMemcpyHtoDAsync");
    if (print) stage("warm-up");
    round(stream, nullptr);
    must(driver_.cuStreamSynchronize(stream), "cuStreamSynchronize");
    if (options_.launch_api == LaunchApi::graph) executable = capture(stream);
    sleep_us(options_.pause_before_tokens_ms * 1000);
    if (print) stage("tokens");
    for (int token = 0; token < options_.tokens; ++token) {
      round(stream, executable);
      must(driver_.cuMemcpyDtoHAsync(pinned, output, kTokenBytes, stream), "cuMemcpyDtoHAsync");
      must(driver_.cuStreamSynchronize(stream), "cuStreamSynchronize");
      if (print) stage(("token " + std::to_string(token + 1)).c_str());
      if (options_.token_pause_us) sleep_us(options_.token_pause_us);
    }
    if (print) stage("output");
    must(driver_.cuMemcpyDtoH(pinned, output, kOutputBytes), "cuMemcpyDtoH");
    if (executable) must(driver_.cuGraphExecDestroy(executable), "cuGraphExecDestroy");
    must(driver_.cuMemFreeHost(pinned), "cuMemFreeHost");
    must(driver_.cuMemFree(output), "cuMemFree");
    must(driver_.cuMemFree(input), "cuMemFree");
    must(driver_.cuStreamDestroy(stream), "cuStreamDestroy");
  }

  // All launches of a token: one by one, or as the graph that contains them.
  void round(Handle stream, Handle executable) {
    if (executable) {
      must(driver_.cuGraphLaunch(executable, stream), "cuGraphLaunch");
      return;
    }
    for (int layer = 0; layer < options_.layers; ++layer) {
      for (uint32_t i = 0; i < kernels_.size(); ++i) launch(kernels_[i], 64 + i, 128, stream);
    }
    launch(sample_, 1, 256, stream);
  }

  Handle capture(Handle stream) {
    Handle graph = nullptr, executable = nullptr;
    must(driver_.cuStreamBeginCapture(stream, 0), "cuStreamBeginCapture");
    round(stream, nullptr);
    must(driver_.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
    must(driver_.cuGraphInstantiateWithFlags(&executable, graph, 0), "cuGraphInstantiateWithFlags");
    must(driver_.cuGraphDestroy(graph), "cuGraphDestroy");
    return executable;
  }

  void launch(Handle kernel, uint32_t grid, uint32_t block, Handle stream) {
    if (options_.launch_api == LaunchApi::ex) {
      const LaunchConfig config = {{grid, 2, 1}, {block, 1, 1}, 1024, stream, nullptr, 0};
      must(driver_.cuLaunchKernelEx(&config, kernel, nullptr, nullptr), "cuLaunchKernelEx");
    } else if (options_.launch_api == LaunchApi::cooperative) {
      must(
          driver_.cuLaunchCooperativeKernel(kernel, grid, 2, 1, block, 1, 1, 1024, stream, nullptr),
          "cuLaunchCooperativeKernel");
    } else {
      must(driver_.cuLaunchKernel(kernel, grid, 2, 1, block, 1, 1, 1024, stream, nullptr, nullptr),
           "cuLaunchKernel");
    }
  }

  void release() {
    for (const DevicePtr weight : weights_) must(driver_.cuMemFree(weight), "cuMemFree");
    must(driver_.cuLibraryUnload(library_), "cuLibraryUnload");
    must(driver_.cuModuleUnload(module_), "cuModuleUnload");
    must(driver_.cuDevicePrimaryCtxRelease(device_), "cuDevicePrimaryCtxRelease");
  }

  const Options& options_;
  const uint64_t start_ns_ = monotonic_ns();
  const Driver driver_;
  int32_t device_ = 0;
  Handle context_ = nullptr, module_ = nullptr, library_ = nullptr, sample_ = nullptr;
  std::vector<Handle> kernels_;
  std::vector<DevicePtr> weights_;
};

// The first status other than 0 of the children; 128 + the signal if one was killed.
int wait_for(const std::vector<pid_t>& children) {
  int worst = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (worst == 0) worst = code;
  }
  return worst;
}

int run(const Options& options) {
  sleep_us(options.pause_before_init_ms * 1000);
  Inference(options).run();
  return options.exit_code;
}

int run_forked(const Options& options) {
  std::vector<pid_t> children;
  for (int i = 0; i < options.processes; ++i) {
    const pid_t child = fork();
    if (child == 0) exit(run(options));
    children.push_back(child);
  }
  return wait_for(children);
}

// Starts this program anew, with the same arguments but --spawn.
int run_spawned(const Options& options, char** arguments) {
  std::vector<char*> kept;
  for (char** argument = arguments; *argument; ++argument) {
    const std::string text = *argument;
    if (text == "--spawn") {
      ++argument;
    } else if (!text.starts_with("--spawn=")) {
      kept.push_back(*argument);
    }
  }
  kept.push_back(nullptr);
  std::vector<pid_t> children;
  for (int i = 0; i < options.spawn; ++i) {
    pid_t child = 0;
    if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, kept.data(), environ) != 0) {
      perror("posix_spawn");
      return 1;
    }
    children.push_back(child);
  }
  return wait_for(children);
}

}  // namespace
}  // namespace workload

int main(int argc, char** argv) {
  using workload::LaunchApi;
  workload::Options options;
  CLI::App app("Makes the driver calls of an inference");
  app.add_option("--library,--libcuda", options.driver.library, "the driver to load");
  app.add_flag("--dlsym", options.driver.use_dlsym, "find functions by dlsym");
  app.add_flag("--per-thread-stream", options.driver.per_thread, "use the _ptsz functions");
  app.add_option("--tokens", options.tokens);
  app.add_option("--layers", options.layers, "five launches each");
  app.add_option("--weights", options.weights);
  app.add_option("--threads", options.threads, "each with its own stream and all tokens");
  app.add_option("--processes", options.processes, "fork this many, each runs the whole");
  app.add_option("--spawn", options.spawn, "start this many programs, each runs the whole");
  app.add_option("--pause-before-init", options.pause_before_init_ms, "ms");
  app.add_option("--pause-before-tokens", options.pause_before_tokens_ms, "ms");
  app.add_option("--token-pause", options.token_pause_us, "us");
  const std::map<std::string, LaunchApi> apis = {{"kernel", LaunchApi::kernel},
                                                 {"ex", LaunchApi::ex},
                                                 {"cooperative", LaunchApi::cooperative},
                                                 {"graph", LaunchApi::graph}};
  app.add_option("--launch-api", options.launch_api)->transform(CLI::CheckedTransformer(apis));
  app.add_option("--exit-code", options.exit_code);
  app.add_option("--kill-self", options.kill_self, "end by this signal, before freeing anything");
  app.add_flag("--print", options.print, "print each stage");
  CLI11_PARSE(app, argc, argv);
  if (options.spawn > 0) return workload::run_spawned(options, argv);
  return options.processes > 0 ? workload::run_forked(options) : workload::run(options);
}
