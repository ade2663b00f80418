#include "replay/gpu/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "util/console/terminal.hpp"

namespace cudabpf::replay {

namespace {

constexpr std::size_t HOST_ALIGNMENT = 4096;

template <typename Work>
Result<> for_each_page(const std::vector<Range>& ranges, Work work) {
  for (const Range& range : ranges)
    for (std::uint64_t address = range.begin / PAGE * PAGE; address < range.end; address += PAGE)
      TRY(work(address));
  return ok();
}

}  // namespace

char* at_host(std::uint64_t address) {
  return reinterpret_cast<char*>(address);  // NOLINT(performance-no-int-to-ptr)
}

std::uint64_t host_memory() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

Result<std::vector<Addresses>> GpuMemory::take(const Layout& layout) {
  layout_ = layout;
  std::vector<Addresses> moved;
  for (const Range& range : layout_.reserved) {
    DevicePtr given = 0;
    Status status = driver_->reserve.status_of(&given, range.size(), 0, range.begin, 0);
    if (status.succeeded() && given == range.begin) continue;
    if (!status.succeeded() && !status.is_out_of_memory()) TRY(status.result());
    moved.push_back({{range.begin}, range.size()});
  }
  TRY(take_host(moved));
  return moved;
}

Result<> GpuMemory::take_host(std::vector<Addresses>& moved) {
  if (size_of(layout_.host) > host_memory())
    return Error{fmt::format("the capture has {} of pinned memory, more than this machine has",
                             human_bytes(size_of(layout_.host))),
                 {}};
  for (const Range& range : layout_.host) {
    void* mapped = mmap(at_host(range.begin), range.size(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped == at_host(range.begin)) continue;
    if (mapped != MAP_FAILED) munmap(mapped, range.size());  // by a kernel that takes it for a wish
    moved.push_back({{range.begin}, range.size()});
  }
  return ok();
}

Result<> GpuMemory::back_range(const Range& range, int device, const MemoryProperties& properties) {
  MemoryAccess access;
  access.device = device;
  std::uint64_t memory = 0;
  TRY(driver_->create(&memory, range.size(), &properties, 0));
  TRY(driver_->map(range.begin, range.size(), 0, memory, 0));
  TRY(driver_->set_access(range.begin, range.size(), &access, 1));
  progress_->beat();
  return ok();
}

// Drivers before CUDA 12.2 put only a GPU's memory at chosen addresses.
Result<> GpuMemory::back_pinned(const Range& range, int device) {
  MemoryProperties on_host, on_device;
  on_host.location_type = MemoryProperties::HOST;
  on_device.device = device;
  if (back_range(range, device, on_host)) return ok();
  are_moved_to_gpu_ = true;
  return back_range(range, device, on_device);
}

Result<> GpuMemory::back(int device) {
  MemoryProperties properties;
  properties.device = device;
  for (const Range& range : layout_.device) {
    std::vector<Range> own{range};
    for (const Range& pinned : parts_in(layout_.pinned, range)) {
      own = without(own, pinned);
      TRY(back_pinned(pinned, device));
    }
    for (const Range& part : own) TRY(back_range(part, device, properties));
  }
  for (const Range& range : layout_.host)
    TRY(driver_->register_host(at_host(range.begin), range.size(), 0));
  staging_.reset(static_cast<char*>(std::aligned_alloc(HOST_ALIGNMENT, PAGE)));
  if (!staging_) return errno_error("allocate memory");
  return driver_->register_host(staging_.get(), PAGE, 0);
}

Result<> GpuMemory::load_page(const bundle::Folder& folder, std::uint64_t address,
                              unsigned char unknown) {
  progress_->beat();
  auto content = PageContents(folder.manifest().before).at(address);
  if (!content || !content->page) return driver_->fill(address, content ? 0 : unknown, PAGE);
  std::string bytes = TRY(folder.page(*content->page));
  std::memcpy(staging_.get(), bytes.data(), PAGE);
  return driver_->copy_to_device(address, staging_.get(), PAGE);
}

// Pages of it may have other memory of this process, too.
Result<> GpuMemory::load_host(const bundle::Folder& folder, unsigned char unknown) {
  PageContents before(folder.manifest().before);
  return for_each_page(layout_.host, [&](std::uint64_t address) -> Result<> {
    progress_->beat();
    auto content = before.at(address);
    std::string bytes;
    if (content && content->page) bytes = TRY(folder.page(*content->page));
    for (const Range& part : parts_in(layout_.host, {address, address + PAGE}))
      if (bytes.empty())
        std::memset(at_host(part.begin), content ? 0 : unknown, part.size());
      else
        std::memcpy(at_host(part.begin), bytes.data() + (part.begin - address), part.size());
    return ok();
  });
}

Result<> GpuMemory::load(const bundle::Folder& folder, unsigned char unknown) {
  TRY(for_each_page(layout_.device,
                    [&](std::uint64_t address) { return load_page(folder, address, unknown); }));
  return load_host(folder, unknown);
}

Result<> GpuMemory::restore(const bundle::Folder& folder, unsigned char unknown) {
  for (const bundle::PageRun& run : folder.manifest().after) {
    Range pages{run.address.value, run.address.value + run.pages * PAGE};
    TRY(for_each_page(parts_in(layout_.device, pages),
                      [&](std::uint64_t address) { return load_page(folder, address, unknown); }));
  }
  for (const Range& range : layout_.unsettled)
    TRY(for_each_page(parts_in(layout_.device, range),
                      [&](std::uint64_t address) { return load_page(folder, address, unknown); }));
  return load_host(folder, unknown);
}

Result<std::string_view> GpuMemory::page(std::uint64_t address) {
  progress_->beat();
  TRY(driver_->copy_to_host(staging_.get(), address, PAGE));
  return std::string_view(staging_.get(), PAGE);
}

}  // namespace cudabpf::replay
