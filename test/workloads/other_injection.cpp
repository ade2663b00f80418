// A library for CUDA_INJECTION64_PATH and NVTX_INJECTION64_PATH, such as profilers have one. It
// writes its process's id to the file that OTHER_INJECTION_MARKS names, whenever libcuda calls it,
// and the names of pushed ranges to the one that OTHER_NVTX_MARKS names.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "nvtx.hpp"

namespace {

bool add_line(const char* variable, const std::string& line) {
  const char* path = getenv(variable);
  if (!path) return false;
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const bool written = write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(file);
  return written;
}

// This tool's handles mean nothing to others.
std::string texts[64];
uintptr_t count;
void* keep(const char* text) {
  texts[++count] = text;
  return reinterpret_cast<void*>(count * 0x1111);
}
std::string text_of(const void* handle) {
  return texts[reinterpret_cast<uintptr_t>(handle) / 0x1111 % 64];
}

void* make_domain(const char* name) { return keep(name); }
void* register_string(void*, const char* text) { return keep(text); }
int push(const char* name) {
  add_line("OTHER_NVTX_MARKS", std::string(name) + "\n");
  return 0;
}
int push_in_domain(void* domain, const workload::nvtx::Event* event) {
  const std::string name =
      event->message_type == 3 ? text_of(event->message) : static_cast<const char*>(event->message);
  add_line("OTHER_NVTX_MARKS", text_of(domain) + ":" + name + "\n");
  return 0;
}
int pop_with_payload(void* domain, const void*, size_t) {
  add_line("OTHER_NVTX_MARKS", text_of(domain) + ":pop\n");
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  return add_line("OTHER_INJECTION_MARKS", std::to_string(getpid()) + "\n");
}

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    const void* (*table)(uint32_t)) {
  using workload::nvtx::Function;
  const auto* callbacks = static_cast<const workload::nvtx::Callbacks*>(table(1));
  Function** places = nullptr;
  unsigned places_count = 0;
  callbacks->functions(workload::nvtx::kCore, &places, &places_count);
  *places[9] = reinterpret_cast<Function>(push);
  callbacks->functions(workload::nvtx::kCore2, &places, &places_count);
  *places[4] = reinterpret_cast<Function>(push_in_domain);
  *places[10] = reinterpret_cast<Function>(register_string);
  *places[12] = reinterpret_cast<Function>(make_domain);
  return 1;
}

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    workload::nvtx::Extension* extension) {
  if (extension->module != 2) return 0;
  extension->segment->functions[4] = reinterpret_cast<workload::nvtx::Function>(pop_with_payload);
  return 1;
}
