#include "kernels.hpp"

#include <stdio.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "../objects.hpp"
#include "../state.hpp"

namespace fake {
namespace {

constexpr uint32_t kSharedWithoutAsking = 48 << 10;

float* floats(uint64_t at) { return reinterpret_cast<float*>(at); }

bool is_array(uint64_t at, uint64_t count, uint64_t element_size) {
  const std::lock_guard lock(state_mutex());
  return is_memory(at, count * element_size) || is_pinned(at, count * element_size);
}

// (float* out, uint32_t count, float value)
Status fill(const KernelRun& run) {
  const auto out = run.parameter<uint64_t>(0);
  const auto count = run.parameter<uint32_t>(8);
  if (!is_array(out, count, 4)) return kIllegalAddress;
  std::fill_n(floats(out), count, run.parameter<float>(12));
  return kSuccess;
}

// (const float* a, const float* b, float* out, uint32_t count)
Status add(const KernelRun& run) {
  const auto a = run.parameter<uint64_t>(0), b = run.parameter<uint64_t>(8),
             out = run.parameter<uint64_t>(16);
  const auto count = run.parameter<uint32_t>(24);
  if (!is_array(a, count, 4) || !is_array(b, count, 4) || !is_array(out, count, 4))
    return kIllegalAddress;
  for (uint32_t i = 0; i < count; ++i) floats(out)[i] = floats(a)[i] + floats(b)[i];
  return kSuccess;
}

// (float* a, uint32_t count, float by): its output is its input
Status scale(const KernelRun& run) {
  const auto a = run.parameter<uint64_t>(0);
  const auto count = run.parameter<uint32_t>(8);
  if (!is_array(a, count, 4)) return kIllegalAddress;
  for (uint32_t i = 0; i < count; ++i) floats(a)[i] *= run.parameter<float>(12);
  return kSuccess;
}

// (float* const* table, uint32_t rows, uint32_t columns, float* out): pointers lie in memory
Status sum_rows(const KernelRun& run) {
  const auto table = run.parameter<uint64_t>(0), out = run.parameter<uint64_t>(16);
  const auto rows = run.parameter<uint32_t>(8), columns = run.parameter<uint32_t>(12);
  if (!is_array(table, rows, 8) || !is_array(out, columns, 4)) return kIllegalAddress;
  std::fill_n(floats(out), columns, 0.F);
  for (uint32_t row = 0; row < rows; ++row) {
    const uint64_t from = reinterpret_cast<const uint64_t*>(table)[row];
    if (!is_array(from, columns, 4)) return kIllegalAddress;
    for (uint32_t i = 0; i < columns; ++i) floats(out)[i] += floats(from)[i];
  }
  return kSuccess;
}

// (struct { char kind; float* out; uint32_t count; } packed): an address that is not aligned
Status fill_packed(const KernelRun& run) {
  const auto out = run.parameter<uint64_t>(1);
  const auto count = run.parameter<uint32_t>(9);
  if (!is_array(out, count, 4)) return kIllegalAddress;
  std::fill_n(floats(out), count, static_cast<float>(run.parameter<uint8_t>(0)));
  return kSuccess;
}

// (float* a, uint32_t count): by what the variable `factor` holds
Status scale_by_variable(const KernelRun& run) {
  const auto a = run.parameter<uint64_t>(0);
  const auto count = run.parameter<uint32_t>(8);
  if (!run.variable || !is_array(a, count, 4)) return kIllegalAddress;
  for (uint32_t i = 0; i < count; ++i) floats(a)[i] *= *floats(run.variable);
  return kSuccess;
}

// (uint32_t* out): how often it has run, by the variable `runs`
Status count_runs(const KernelRun& run) {
  const auto out = run.parameter<uint64_t>(0);
  if (!run.variable || !is_array(out, 1, 4)) return kIllegalAddress;
  *reinterpret_cast<uint32_t*>(out) = ++*reinterpret_cast<uint32_t*>(run.variable);
  return kSuccess;
}

// (uint64_t* out, uint32_t count): the time, which is never the same
Status not_deterministic(const KernelRun& run) {
  const auto out = run.parameter<uint64_t>(0);
  const auto count = run.parameter<uint32_t>(8);
  if (!is_array(out, count, 8)) return kIllegalAddress;
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  std::fill_n(
      reinterpret_cast<uint64_t*>(out), count,
      static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec));
  return kSuccess;
}

// (uint64_t* out, uint32_t count): zeroes when a process runs it for the first two times
Status seldom_deterministic(const KernelRun& run) {
  static std::atomic<unsigned> runs;
  if (++runs > 2) return not_deterministic(run);
  const auto out = run.parameter<uint64_t>(0);
  const auto count = run.parameter<uint32_t>(8);
  if (!is_array(out, count, 8)) return kIllegalAddress;
  std::fill_n(reinterpret_cast<uint64_t*>(out), count, 0);
  return kSuccess;
}

// (uint64_t* place, uint64_t by): reads where the address at `place` leads, and moves it on
Status advance(const KernelRun& run) {
  const auto place = run.parameter<uint64_t>(0);
  if (!is_array(place, 1, 8)) return kIllegalAddress;
  auto& address = *reinterpret_cast<uint64_t*>(place);
  if (!is_array(address, 1, 8)) return kIllegalAddress;
  address += run.parameter<uint64_t>(8);
  return kSuccess;
}

// (float* out, uint32_t count, float value, uint64_t* turn): fills, and counts turns, of which
// there are two
Status fill_in_turn(const KernelRun& run) {
  const auto place = run.parameter<uint64_t>(16);
  if (!is_array(place, 1, 8)) return kIllegalAddress;
  auto& turn = *reinterpret_cast<uint64_t*>(place);
  if (turn > 1) return kIllegalAddress;
  turn = 1 - turn;
  return fill(run);
}

// (float* out, uint32_t count, float value, uint64_t* counter): takes its time, and fills, unless
// the counter says that this was done
Status fill_by_counter(const KernelRun& run) {
  constexpr timespec kLong = {0, 300'000};
  const auto place = run.parameter<uint64_t>(16);
  if (!is_array(place, 1, 8)) return kIllegalAddress;
  auto& counter = *reinterpret_cast<uint64_t*>(place);
  if (counter) return kSuccess;
  counter = 1;
  nanosleep(&kLong, nullptr);
  return fill(run);
}

// As printf does in a kernel.
Status print(const KernelRun& run) {
  static_cast<void>(run);
  puts("from a kernel");
  fflush(stdout);
  return kSuccess;
}

// ----- what other code for `add` may be

Status add_slowly(const KernelRun& run) {
  constexpr timespec kLong = {0, 300'000};
  nanosleep(&kLong, nullptr);
  return add(run);
}

// By the smallest step that a float can be off.
Status add_off(const KernelRun& run) {
  if (const Status bad = add(run)) return bad;
  ++reinterpret_cast<uint32_t*>(run.parameter<uint64_t>(16))[run.parameter<uint32_t>(24) / 2];
  return kSuccess;
}

Status add_half(const KernelRun& run) {
  std::vector<unsigned char> half(run.parameters, run.parameters + 28);
  const uint32_t count = run.parameter<uint32_t>(24) / 2;
  memcpy(half.data() + 24, &count, sizeof count);
  return add({half.data(), run.grid, run.block, run.variable});
}

// It has its inputs as room for what it computes.
Status add_over_inputs(const KernelRun& run) {
  if (const Status bad = add(run)) return bad;
  for (const uint32_t input : {0, 8}) floats(run.parameter<uint64_t>(input))[0] = -1.F;
  return kSuccess;
}

// Computes once, and gives the same answer from then on.
Status add_cached(const KernelRun& run) {
  static std::vector<float> answer;
  const auto out = run.parameter<uint64_t>(16);
  const auto count = run.parameter<uint32_t>(24);
  if (!answer.empty()) {
    if (!is_array(out, count, 4)) return kIllegalAddress;
    std::copy_n(answer.begin(), std::min<size_t>(count, answer.size()), floats(out));
    return kSuccess;
  }
  if (const Status bad = add(run)) return bad;
  answer.assign(floats(out), floats(out) + count);
  return kSuccess;
}

Status fault(const KernelRun&) { return kIllegalAddress; }

Status hang(const KernelRun&) {
  gpu_hangs();
  return kSuccess;
}

const Kernel kKernels[] = {
    {"fill", {{0, 8}, {8, 4}, {12, 4}}, fill},
    {"fill_in_cluster", {{0, 8}, {8, 4}, {12, 4}}, fill, nullptr, true},
    {"add", {{0, 8}, {8, 8}, {16, 8}, {24, 4}}, add},
    {"scale", {{0, 8}, {8, 4}, {12, 4}}, scale},
    {"sum_rows", {{0, 8}, {8, 4}, {12, 4}, {16, 8}}, sum_rows},
    {"fill_packed", {{0, 13}}, fill_packed},
    {"scale_by_variable", {{0, 8}, {8, 4}}, scale_by_variable, "factor"},
    {"count_runs", {{0, 8}}, count_runs, "runs"},
    {"not_deterministic", {{0, 8}, {8, 4}}, not_deterministic},
    {"seldom_deterministic", {{0, 8}, {8, 4}}, seldom_deterministic},
    {"advance", {{0, 8}, {8, 8}}, advance},
    {"fill_in_turn", {{0, 8}, {8, 4}, {12, 4}, {16, 8}}, fill_in_turn},
    {"fill_by_counter", {{0, 8}, {8, 4}, {12, 4}, {16, 8}}, fill_by_counter},
    {"print", {}, print},
    {"add_slowly", {{0, 8}, {8, 8}, {16, 8}, {24, 4}}, add_slowly},
    {"add_off", {{0, 8}, {8, 8}, {16, 8}, {24, 4}}, add_off},
    {"add_over_inputs", {{0, 8}, {8, 8}, {16, 8}, {24, 4}}, add_over_inputs},
    {"add_half", {{0, 8}, {8, 8}, {16, 8}, {24, 4}}, add_half},
    {"add_cached", {{0, 8}, {8, 8}, {16, 8}, {24, 4}}, add_cached},
    {"fault", {}, fault},
    {"hang", {}, hang},
};

uint32_t size_of(const Kernel& kernel) {
  return kernel.parameters.empty()
             ? 0u
             : kernel.parameters.back().offset + kernel.parameters.back().size;
}

// As kernelParams, or in one buffer, whose size and place are in a list that ends with null.
bool read_parameters(const Launch& launch, const Kernel& kernel, std::vector<unsigned char>& into) {
  into.resize(size_of(kernel));
  if (into.empty()) return true;
  if (launch.parameters) {
    for (size_t i = 0; i < kernel.parameters.size(); ++i)
      memcpy(into.data() + kernel.parameters[i].offset, launch.parameters[i],
             kernel.parameters[i].size);
    return true;
  }
  constexpr uint64_t kBuffer = 1, kSize = 2;  // CU_LAUNCH_PARAM_BUFFER_POINTER, …_SIZE
  const void* buffer = nullptr;
  uint64_t size = 0;
  for (void* const* at = launch.extra; at && *at; at += 2) {
    if (reinterpret_cast<uint64_t>(*at) == kBuffer) buffer = at[1];
    if (reinterpret_cast<uint64_t>(*at) == kSize) size = *static_cast<const uint64_t*>(at[1]);
  }
  if (!buffer || size < into.size()) return false;
  memcpy(into.data(), buffer, into.size());
  return true;
}

}  // namespace

const Kernel* find_kernel(const char* name) {
  const auto* found =
      std::find_if(std::begin(kKernels), std::end(kKernels),
                   [&](const Kernel& kernel) { return !strcmp(kernel.name, name); });
  return found == std::end(kKernels) ? nullptr : found;
}

Status check_launch(const Launch& launch) {
  const char* name = what_it_does(launch.function);
  const Kernel* kernel = computes() && name ? find_kernel(name) : nullptr;
  if (!kernel) return kSuccess;
  if (launch.shared > std::max(kSharedWithoutAsking, most_shared_of(launch.function)))
    return kInvalidValue;
  if (kernel->needs_cluster && !launch.has_cluster) return kClusterMisconfiguration;
  std::vector<unsigned char> parameters;
  return read_parameters(launch, *kernel, parameters) ? kSuccess : kInvalidValue;
}

std::vector<unsigned char> parameters_of(const Launch& launch, std::vector<void*>& pointers) {
  const char* name = what_it_does(launch.function);
  const Kernel* kernel = name ? find_kernel(name) : nullptr;
  std::vector<unsigned char> parameters;
  if (!kernel || !read_parameters(launch, *kernel, parameters)) return {};
  for (const Parameter& one : kernel->parameters)
    pointers.push_back(parameters.data() + one.offset);
  return parameters;
}

Action run_action(const Launch& launch) {
  const char* name = what_it_does(launch.function);
  const Kernel* kernel = computes() && name ? find_kernel(name) : nullptr;
  std::vector<unsigned char> parameters;
  if (!kernel || !read_parameters(launch, *kernel, parameters)) return {};
  const DevicePtr variable = kernel->variable ? variable_of(launch.function, kernel->variable) : 0;
  return [kernel, variable, parameters = std::move(parameters),
          grid = std::vector(launch.grid, launch.grid + 3),
          block = std::vector(launch.block, launch.block + 3)] {
    return kernel->run({parameters.data(), grid.data(), block.data(), variable});
  };
}

}  // namespace fake
