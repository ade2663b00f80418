// The statements of fake_calls about modules and launches.
#include <array>

#include "calls.hpp"

namespace workload {
namespace {

const char kImage[64] = "\177ELF";

// Grid, block and shared memory: the seven numbers after the function.
std::array<uint32_t, 7> shape_of(A a) {
  std::array<uint32_t, 7> shape;
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = static_cast<uint32_t>(a.word(i + 2));
  return shape;
}

Status launch(D d, A a) {
  const auto n = shape_of(a);
  return d.cuLaunchKernel(a.handle(1), n[0], n[1], n[2], n[3], n[4], n[5], n[6], a.stream(9),
                          nullptr, nullptr);
}

Status launch_cooperative(D d, A a) {
  const auto n = shape_of(a);
  return d.cuLaunchCooperativeKernel(a.handle(1), n[0], n[1], n[2], n[3], n[4], n[5], n[6],
                                     a.stream(9), nullptr);
}

Status launch_ex(D d, A a) {
  const auto n = shape_of(a);
  const LaunchConfig config = {
      {n[0], n[1], n[2]}, {n[3], n[4], n[5]}, n[6], a.stream(9), nullptr, 0};
  return d.cuLaunchKernelEx(&config, a.handle(1), nullptr, nullptr);
}

}  // namespace

const std::map<std::string, Make>& launch_calls() {
  static const std::map<std::string, Make> calls = {
      {"module", [](D d, A a) { return d.cuModuleLoadData(a.out_handle(1), kImage); }},
      {"module-ex",
       [](D d, A a) { return d.cuModuleLoadDataEx(a.out_handle(1), kImage, 0, nullptr, nullptr); }},
      {"module-file", [](D d, A a) { return d.cuModuleLoad(a.out_handle(1), a.text(2)); }},
      {"unload", [](D d, A a) { return d.cuModuleUnload(a.handle(1)); }},
      {"function",
       [](D d, A a) { return d.cuModuleGetFunction(a.out_handle(1), a.handle(2), a.text(3)); }},
      {"library",
       [](D d, A a) {
         return d.cuLibraryLoadData(a.out_handle(1), kImage, nullptr, nullptr, 0, nullptr, nullptr,
                                    0);
       }},
      {"library-file",
       [](D d, A a) {
         return d.cuLibraryLoadFromFile(a.out_handle(1), a.text(2), nullptr, nullptr, 0, nullptr,
                                        nullptr, 0);
       }},
      {"unload-library", [](D d, A a) { return d.cuLibraryUnload(a.handle(1)); }},
      {"kernel",
       [](D d, A a) { return d.cuLibraryGetKernel(a.out_handle(1), a.handle(2), a.text(3)); }},
      {"kernel-function",
       [](D d, A a) { return d.cuKernelGetFunction(a.out_handle(1), a.handle(2)); }},
      {"launch", launch},
      {"launch-ex", launch_ex},
      {"launch-cooperative", launch_cooperative},
  };
  return calls;
}

}  // namespace workload
