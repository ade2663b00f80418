#include "common.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace fake_cublas {
namespace {

constexpr uint64_t TILE = 128;
constexpr const char* KERNEL = "nvjet_sm90_hsh_128x128_64x4_1x1_v_bz_TNT";

thread_local int depth = 0;  // of calls

// The program's own kernel, which products launch instead of the simulated library's.
Handle programs_kernel = nullptr;
void** programs_parameters = nullptr;

// The program has loaded the driver.
template <typename... Arguments>
bool driver(const char* symbol, Arguments... arguments) {
  auto* function = reinterpret_cast<uint32_t (*)(Arguments...)>(dlsym(RTLD_DEFAULT, symbol));
  return function && function(arguments...) == 0;
}

Handle kernel() {
  static Handle found = [] {
    Handle module = nullptr, kernel = nullptr;
    const void* image = "cublas";
    if (driver("cuModuleLoadData", &module, image))
      driver("cuModuleGetFunction", &kernel, module, KERNEL);
    return kernel;
  }();
  return found;
}

void log(const std::string& line) {
  const char* folder = std::getenv("FAKE_CUDA_LOG");
  if (!folder) return;
  std::string path = std::string(folder) + "/cublas." + std::to_string(getpid()) + ".jsonl";
  int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0 || write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    std::abort();
  close(file);
}

}  // namespace

uint32_t launch(uint64_t m, uint64_t n, uint64_t batch, uint64_t stream) {
  auto tiles = [](uint64_t size) { return static_cast<uint32_t>((size + TILE - 1) / TILE); };
  auto* on = reinterpret_cast<void*>(stream);
  void** none = nullptr;
  return driver("cuLaunchKernel", programs_kernel ? programs_kernel : kernel(), tiles(m), tiles(n),
                static_cast<uint32_t>(batch), 384U, 1U, 1U, 0U, on, programs_parameters, none)
             ? SUCCESS
             : EXECUTION_FAILED;
}

uint32_t called(const char* symbol, const Words& words) {
  int nested = depth++;
  uint32_t result = does(symbol, words);
  depth--;
  std::string line =
      "{\"symbol\":\"" + std::string(symbol) + "\",\"ret\":" + std::to_string(result) +
      ",\"nested\":" + std::to_string(nested) + ",\"tid\":" + std::to_string(gettid());
  for (const auto& [name, value] : words)
    line += ",\"" + std::string(name) + "\":" + std::to_string(value);
  log(line + "}\n");
  return result;
}

extern "C" __attribute__((visibility("default"))) void fake_cublas_launches(Handle kernel,
                                                                            void** parameters) {
  programs_kernel = kernel;
  programs_parameters = parameters;
}

}  // namespace fake_cublas
