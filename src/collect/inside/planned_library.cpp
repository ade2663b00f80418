#include "collect/inside/planned_library.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collect/library_functions.hpp"
#include "util/detour/detour.hpp"

namespace cudabpf {

namespace {

static_assert(detour::CODE == CI_MAX_CODE && detour::JUMP == CI_JUMP && detour::STORE == CI_STORE &&
              detour::LINE == CI_STORE_LINE && detour::COPIED == CI_MAX_CODE &&
              detour::FIXED == CI_MAX_FIXED);

// A program may bring library after library.
constexpr std::size_t MOST_PLANNED = 64;

abi::ci_site site_of(const PlannedProbe& probe, const detour::Place& place,
                     std::span<const std::byte> code) {
  abi::ci_site site{};
  site.offset = probe.offset;
  site.plan = probe.plan;
  site.launch = probe.launch;
  site.kept = place.kept;
  site.moved = place.moved;
  site.copied = place.copied;
  site.stored = place.stored;
  site.pushed = place.pushed;
  std::memcpy(site.fix_at, place.fix_at.data(), sizeof(site.fix_at));
  std::memcpy(site.copy, place.copy.data(), sizeof(site.copy));
  std::memcpy(site.code, code.data(), std::min(code.size(), sizeof(site.code)));
  return site;
}

Result<Fd> file_of(const std::vector<abi::ci_site>& sites) {
  Fd file(memfd_create("cudabpf-sites", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  std::size_t size = sites.size() * sizeof(abi::ci_site);
  // Writing might stop at a limit on the size of files, without an error.
  if (!file || ftruncate(file.get(), static_cast<off_t>(size)) != 0 ||
      write(file.get(), sites.data(), size) != static_cast<ssize_t>(size) ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
    return errno_error("writing down what is to be recorded");
  return file;
}

}  // namespace

const PlannedLibrary& PlannedLibraries::of(const Fd& file, const FileId& id,
                                           const std::string& path, bool named) {
  for (const PlannedLibrary& known : planned_)
    if (known.id.same_file(id) && known.id.untouched_since(id) && known.library.path == path)
      return known;
  if (planned_.size() == MOST_PLANNED) planned_.pop_front();
  planned_.push_back(plan(file, id, path, named));
  return planned_.back();
}

PlannedLibrary PlannedLibraries::plan(const Fd& file, const FileId& id, const std::string& path,
                                      bool named) const {
  PlannedLibrary planned;
  planned.id = id;
  Library& library = planned.library;
  library.path = path;
  library.device = id.device;
  library.inode = id.inode;
  auto contents = reader_.read(file, LIBRARY_CONTENTS);
  if (!contents) {
    library.error = contents.error().message;
    return planned;
  }
  std::vector<abi::ci_site> sites;
  for (const PlannedProbe& probe : plan_probes(*contents, named, filter_, numbers_, library)) {
    const Function* function = numbers_.find(probe.plan.function);
    std::string name = function ? std::string(function->symbol) : std::string();
    std::byte code[CI_MAX_CODE];
    ssize_t got = pread(file.get(), code, sizeof(code), static_cast<off_t>(probe.offset));
    std::span<const std::byte> bytes(code, got > 0 ? static_cast<std::size_t>(got) : 0);
    auto [place, refusal] = detour::find_place(bytes, probe.offset);
    if (refusal == detour::Refusal::none && sites.size() < CI_MAX_SITES) {
      sites.push_back(site_of(probe, place, bytes));
      planned.names.push_back(std::move(name));
    } else {
      planned.refused.push_back(fmt::format("{} ({})", name, to_string(refusal)));
    }
  }
  if (!library.error.empty()) return planned;
  auto made = file_of(sites);
  if (made) {
    planned.sites = std::move(*made);
    planned.count = static_cast<std::uint32_t>(sites.size());
  } else {
    library.error = made.error().message;
  }
  return planned;
}

}  // namespace cudabpf
