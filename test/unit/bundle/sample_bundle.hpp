// A manifest and operations with everything that they may have.
#pragma once

#include "bundle/tape.hpp"

namespace cudabpf::bundle {

inline Manifest sample_manifest() {
  Manifest manifest;
  manifest.cudabpf = "0.1.0";
  manifest.host = "node7";
  manifest.unix_ns = 1'790'000'000'123'456'789;
  manifest.command = {"python3", "bloom.py", "--tokens", "8"};
  manifest.rank = "1";
  manifest.iteration = {12, 4242, 4243, 5'000'000, 9'000'000};
  manifest.contents = true;
  manifest.devices = {{"NVIDIA H200", "GPU-1", "580.159.04", 9, 0, std::uint64_t{141} << 30}};
  manifest.limits = {{0, 1024}};
  manifest.streams = {{0, 0, false}, {0, -5, true}};
  manifest.events = 2;
  manifest.graphs = 1;
  manifest.images = {{std::string(64, 'a'), ImageKind::cubin, 4096},
                     {std::string(64, 'b'), ImageKind::ptx, 100}};
  manifest.modules = {{0, true, {}, {{"factor", {0x7f0000200000}, 4, Extent{0, 4}, Extent{4, 4}}}},
                      {1, false, {{9, {90}}}, {}}};
  manifest.kernels = {{"_Z3addPfS_", 0, {{8, 232448}}, {{0, 8}, {8, 8}}, std::nullopt},
                      {"ncclDevKernel_AllReduce", 1, {}, {{0, 4096}}, "a collective"}};
  manifest.blocks = {{{0x7f0000000000}, 1 << 20, BlockKind::device, 0},
                     {{0x7f0000200000}, 4096, BlockKind::pinned, 0}};
  manifest.before = {{{0x7f0000000000}, 2, 0}, {{0x7f0000400000}, 1, std::nullopt}};
  manifest.after = {{{0x7f0000000000}, 1, 2}};
  manifest.operations = 3;
  manifest.data_size = 1000;
  manifest.memory_pages = 3;
  manifest.refused = {{"ncclAllReduce", "a collective", 3}};
  return manifest;
}

inline Launch sample_launch() {
  return {0, {4, 1, 1}, {256, 1, 1}, 49152, false, {0, 16}, Extent{16, 72}};
}

inline Copy sample_copy() {
  return {{64, 2, 1}, {Address{0x7f0000000000}, 128, 0}, {std::nullopt, 64, 0}, Extent{100, 128}};
}

inline Operation sample_operation(Action action) {
  Operation operation;
  operation.action = action;
  operation.call = 77;
  operation.stream = 1;
  if (action == Action::launch) operation.launch = sample_launch();
  if (action == Action::copy) operation.copy = sample_copy();
  if (action == Action::set)
    operation.set = {{1024, 1, 1}, {Address{0x7f0000000000}, 0, 0}, 0xff, 1};
  if (action == Action::record || action == Action::wait || action == Action::await)
    operation.event = 1;
  if (action == Action::alloc || action == Action::free)
    operation.memory = {{0x7f0000000000}, 512, BlockKind::device, 0};
  if (action == Action::graph) {
    operation.graph = 0;
    operation.nodes = {{sample_launch(), {}, {}}, {{}, sample_copy(), {}}};
  }
  return operation;
}

}  // namespace cudabpf::bundle
