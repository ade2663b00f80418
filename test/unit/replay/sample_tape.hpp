// A tape that is written into a folder and read back.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bundle/folder.hpp"
#include "replay/tape.hpp"

namespace cudabpf::replay {

constexpr std::uint64_t SAMPLE_BASE = 0x7f0000000000;

inline Manifest sample_replay() {
  Manifest manifest;
  manifest.devices = {{"Simulated H200", "GPU-1", "580.159.04", 9, 0, std::uint64_t{1} << 34}};
  manifest.streams = {{}};
  manifest.graphs = 1;
  manifest.modules = {{}};
  manifest.kernels = {{"_Z3addPfS_", 0, {}, {}, std::nullopt}, {"nccl", 0, {}, {}, "a collective"}};
  manifest.blocks = {{{SAMPLE_BASE}, 4096, bundle::BlockKind::device, 0},
                     {{SAMPLE_BASE + (1 << 20)}, 4096, bundle::BlockKind::device, 0}};
  manifest.before = {{{SAMPLE_BASE}, 2, 0}, {{SAMPLE_BASE + 4 * bundle::PageRun::PAGE}, 1, {}}};
  manifest.after = {{{SAMPLE_BASE + bundle::PageRun::PAGE}, 1, 2}};
  return manifest;
}

inline bundle::Launch sample_launch_of(std::uint32_t kernel, std::uint32_t grid) {
  bundle::Launch launch;
  launch.kernel = kernel;
  launch.grid = {grid, 1, 1};
  launch.block = {32, 1, 1};
  return launch;
}

inline bundle::Operation sample_step(Action action) {
  bundle::Operation operation;
  operation.action = action;
  return operation;
}

inline bundle::Operation launch_step(std::uint32_t kernel, std::uint32_t grid) {
  bundle::Operation operation = sample_step(Action::launch);
  operation.launch = sample_launch_of(kernel, grid);
  return operation;
}

inline bundle::Operation memory_step(Action action, std::uint64_t address, std::uint64_t size) {
  bundle::Operation operation = sample_step(action);
  operation.memory = {{address}, size, bundle::BlockKind::device, 0};
  return operation;
}

inline bundle::Operation graph_step(std::vector<bundle::Launch> launches) {
  bundle::Operation operation = sample_step(Action::graph);
  operation.graph = 0;
  for (bundle::Launch& launch : launches) operation.nodes.push_back({std::move(launch), {}, {}});
  return operation;
}

// In a folder of its own, which is gone afterwards.
class SampleTape {
 public:
  // `extents`: what the operations' are of.
  SampleTape(const std::vector<bundle::Operation>& operations, Manifest captured = sample_replay(),
             std::string extents = {})
      : manifest(std::move(captured)), data(std::move(extents)), tape(read(operations)) {}

  Manifest manifest;
  std::string data;
  Result<Tape> tape;

 private:
  Result<Tape> read(const std::vector<bundle::Operation>& operations) {
    std::string path = std::filesystem::temp_directory_path() / "cudabpf-replay-XXXXXX";
    if (!mkdtemp(path.data())) return errno_error("make a folder");
    auto result = read_in(path, operations);
    std::filesystem::remove_all(path);
    return result;
  }

  Result<Tape> read_in(const std::string& path, const std::vector<bundle::Operation>& operations) {
    auto writer = TRY(bundle::FolderWriter::create(path));
    std::string page(bundle::PageRun::PAGE, 'x');
    for (int i = 0; i < 3; i++) TRY(writer.add_page(page));
    if (!data.empty()) TRY(writer.add_data(data));
    Manifest written = manifest;
    written.modules[0].image = TRY(writer.add_image(bundle::ImageKind::cubin, "code"));
    for (const bundle::Operation& operation : operations) TRY(writer.add(operation));
    TRY(writer.finish(std::move(written)));
    auto folder = TRY(bundle::Folder::open(path));
    return Tape::read(folder);
  }
};

}  // namespace cudabpf::replay
