#include "replay/gpu/bench.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <array>

#include "replay/compare.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf::replay {

namespace {

constexpr int MAJOR = 75, MINOR = 76;  // CUdevice_attributes: of the compute capability

// Large blocks come from where programs' memory on GPUs is, too, and what is mapped when the driver
// is initialised is in the way for good. While this lives, they come from the heap.
class NothingMapped {
 public:
  NothingMapped() { mallopt(M_MMAP_MAX, 0); }
  ~NothingMapped() { mallopt(M_MMAP_MAX, USUAL); }
  NothingMapped(const NothingMapped&) = delete;
  NothingMapped& operator=(const NothingMapped&) = delete;

 private:
  static constexpr int USUAL = 65536;
};

Result<> check_device(const Manifest& manifest, const Tape& tape) {
  std::vector<bool> used(manifest.devices.size());
  for (const bundle::Block& block : manifest.blocks) used[block.device] = true;
  for (const bundle::Operation& operation : tape.operations()) used[operation.device] = true;
  if (std::count(used.begin(), used.end(), true) < 2) return ok();
  return Error{"the capture is of work on several GPUs, which is not replayed yet",
               "capture one process of those that use one GPU each"};
}

}  // namespace

Result<int> first_device(const Driver& driver) {
  TRY(driver.init(0));
  int count = 0, device = 0;
  TRY(driver.device_count(&count));
  if (!count) return Error{"the driver shows no GPU", "see CUDA_VISIBLE_DEVICES"};
  TRY(driver.device(&device, 0));
  return device;
}

Result<Gpu> gpu_of(const Driver& driver, int device) {
  constexpr int MAJOR_UNIT = 1000, MINOR_UNIT = 10;
  std::array<char, 256> name{};
  int version = 0, major = 0, minor = 0;
  std::size_t memory = 0;
  TRY(driver.version(&version));
  TRY(driver.device_name(name.data(), static_cast<int>(name.size()) - 1, device));
  TRY(driver.device_attribute(&major, MAJOR, device));
  TRY(driver.device_attribute(&minor, MINOR, device));
  TRY(driver.device_memory(&memory, device));
  return Gpu{name.data(),
             fmt::format("{}.{}", version / MAJOR_UNIT, version % MAJOR_UNIT / MINOR_UNIT),
             static_cast<std::uint32_t>(major), static_cast<std::uint32_t>(minor), memory};
}

Result<std::unique_ptr<Bench>> Bench::set_up(const Driver& driver, Progress& progress,
                                             const Request& request, Answer& answer) {
  std::optional<NothingMapped> at_first(std::in_place);
  auto folder = TRY(bundle::Folder::open(request.folder));
  auto tape = TRY(Tape::read(folder));
  TRY(check_device(folder.manifest(), tape));
  std::unique_ptr<Bench> bench(new Bench(driver, progress, std::move(folder), std::move(tape)));
  int device = bench->device_ = TRY(first_device(driver));
  answer.moved = TRY(bench->memory_.take(layout_of(bench->folder_.manifest(), bench->tape_)));
  if (!answer.moved.empty()) return std::unique_ptr<Bench>();
  at_first.reset();
  answer.gpu = TRY(gpu_of(driver, device));
  std::uint64_t needed = size_of(bench->memory_.layout().device);
  if (needed > answer.gpu->memory)
    return Error{fmt::format("the capture has {} of GPU memory, and {} has {}", human_bytes(needed),
                             answer.gpu->name, human_bytes(answer.gpu->memory)),
                 {}};
  TRY(bench->make_context(device, answer));
  TRY(bench->memory_.back(device));
  TRY(bench->code_.load(bench->folder_, bench->tape_, device));
  if (!request.candidate.empty())
    TRY(bench->code_.replace(bench->folder_.manifest(), request.candidate_for, request.candidate));
  TRY(bench->player_.prepare());
  bench->player_.leave_out(request.left_out, request.left_steps);
  if (bench->memory_.are_moved_to_gpu())
    answer.notes.push_back(
        "pinned memory that lay between a GPU's is on the GPU now, where it is faster");
  auto notes = bench->player_.notes();
  answer.notes.insert(answer.notes.end(), notes.begin(), notes.end());
  return bench;
}

Result<> Bench::make_context(int device, Answer& answer) {
  Handle context = nullptr;
  TRY(driver_->retain_context(&context, device));
  TRY(driver_->set_context(context));
  for (const bundle::Limit& limit : folder_.manifest().limits)
    if (Status status = driver_->set_limit.status_of(static_cast<int>(limit.limit), limit.value);
        !status.succeeded())
      answer.notes.push_back(fmt::format("the limit {} could not be set to {}: {}", limit.limit,
                                         limit.value, status.text()));
  return ok();
}

// Without contents, zeroes are the safest: as indices they are valid everywhere.
unsigned char Bench::unknown(unsigned run) const {
  return folder_.manifest().contents ? UNKNOWN[run] : 0;
}

// The host need not wait for a fill, and streams need not wait for each other.
Result<> Bench::load(unsigned run) {
  TRY(memory_.load(folder_, unknown(run)));
  TRY(code_.restore_variables(player_.data()));
  return driver_->synchronize();
}

Result<> Bench::restore() {
  TRY(memory_.restore(folder_, unknown(0)));
  TRY(code_.restore_variables(player_.data()));
  return driver_->synchronize();
}

}  // namespace cudabpf::replay
