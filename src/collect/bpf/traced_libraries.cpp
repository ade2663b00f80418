#include "collect/bpf/traced_libraries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "collect/library_functions.hpp"
#include "util/console/log.hpp"
#include "util/exit_codes.hpp"
#include "util/system/clock.hpp"

namespace cudabpf {

namespace {

using std::chrono::milliseconds;

// A process that maps library after library must not keep this program from its other work.
constexpr milliseconds AT_START = std::chrono::seconds(5), AT_ONCE{200};
constexpr std::size_t MAX_PENDING = 4096;
constexpr std::size_t MAX_REFUSED = 4096;
constexpr std::size_t MAX_LOOKED_AHEAD = 256;
constexpr std::uint64_t LOOK_THROUGH_EVERY_NS = 2'000'000'000;

Error refusal_of_probes(int reason) {
  bool forbidden = reason == EPERM || reason == EACCES;
  return {fmt::format("the kernel refuses to attach uprobes: {}", std::strerror(reason)),
          forbidden ? "run it as root, or with CAP_SYS_ADMIN besides CAP_BPF and CAP_PERFMON: "
                      "kernels before 6.6 need it, and those where kernel.perf_event_paranoid is 3"
                    : "`cudabpf doctor` shows what this kernel lacks",
          forbidden ? exit_code::NOT_PERMITTED : exit_code::KERNEL_UNSUPPORTED};
}

}  // namespace

TracedLibraries::TracedLibraries(elf::Reader reader, ProbeSet& probes, FunctionNumbers& numbers,
                                 Options options)
    : reader_(std::move(reader)), probes_(probes), numbers_(numbers), options_(std::move(options)) {
  // Watching begins before the search, so that no copy can slip in between.
  if (options_.watch)
    if (auto watch = MappingWatch::open()) watch_.emplace(std::move(*watch));
}

std::uint64_t TracedLibraries::now() const {
  return begin_ns_ ? now_ns(CLOCK_MONOTONIC) - begin_ns_ : 0;
}

std::vector<int> TracedLibraries::watch_fds() const {
  return watch_ ? watch_->fds() : std::vector<int>{};
}

std::optional<MappingWatch::Code> TracedLibraries::read_code() {
  return watch_ ? std::optional(watch_->read_code()) : std::nullopt;
}

Result<> TracedLibraries::attach_known() {
  Procfs procfs;
  std::vector<LibraryFile> files;
  for (const std::string& path : options_.named) {
    auto file = open_named(path);
    if (!file) return no_such_library(path);
    files.push_back(std::move(*file));
  }
  for (auto& file : find_on_paths(options_.library_path)) files.push_back(std::move(file));
  attach_named_and_found(std::move(files));

  auto give_up = std::chrono::steady_clock::now() + AT_START;
  for (MappedLibrary& mapped : mapped_libraries(procfs, procfs.pids())) {
    if (std::chrono::steady_clock::now() > give_up) {
      queue({std::move(mapped)}, early_);
      continue;
    }
    auto file = open_mapped(procfs, mapped);
    if (file && !is_known(*file, early_)) attach(std::move(*file), early_);
  }
  // Attaching takes long if each function has a link: more may have been mapped meanwhile than the
  // watch could keep.
  if (watch_) {
    MappingsRead read = watch_->read();
    queue(std::move(read.libraries), early_);
    missed_some_ = read.unnamed;
  }
  // Files that are not a libcuda are skipped, but a kernel that has refused every probe will refuse
  // all later ones.
  if (int refused = probes_.refused(); refused && attached() == 0)
    return refusal_of_probes(refused);
  if (attached() == 0 && selects_nothing()) return nothing_selected(options_.filter);
  early_.libraries.clear();  // the header has them
  return ok();
}

// A library is there, and no library that may come could have a selected function.
bool TracedLibraries::selects_nothing() const {
  auto of_api = [&](auto condition) {
    return std::any_of(libraries_.begin(), libraries_.end(), [&](const Library& library) {
      return library.error == SELECTS_NOTHING && condition(library);
    });
  };
  return of_api([](const Library&) { return true; }) &&
         std::ranges::all_of(APIS, [&](const Api& api) {
           return !options_.filter.selects_some_of(api.id) ||
                  of_api([&](const Library& library) { return library.api == api.key; });
         });
}

void TracedLibraries::attach_named_and_found(std::vector<LibraryFile> files) {
  for (LibraryFile& file : files)
    if (!is_known(file, early_)) attach(std::move(file), early_);
}

bool TracedLibraries::is_known(const LibraryFile& file, News& news) {
  if (!options_.filter.selects(file.api->id)) return true;  // so it does not matter
  for (std::size_t i = 0; i < attached_.size(); i++) {
    Attached& known = attached_[i];
    if (!known.file.id.same_file(file.id)) continue;
    if (known.file.id.untouched_since(file.id)) return true;
    if (known.page) {
      // On overlayfs a copy made for writing has the same numbers.
      auto page = FirstPage::of(file.fd.get());
      auto same = page ? page->is_same_as(*known.page) : std::nullopt;
      if (same == false) {
        known.copied = true;
        continue;
      }
      if (same == true && known.file.id.same_content(file.id)) return true;
    } else if (known.file.id.same_content(file.id)) {
      return true;
    }
    withdraw(i--, news);
  }
  return std::any_of(refused_.begin(), refused_.end(),
                     [&](const FileId& id) { return id.untouched_since(file.id); });
}

Library TracedLibraries::attach(LibraryFile file, News& news) {
  Library library;
  library.api = file.api->key;
  library.path = file.path;
  library.device = file.id.device;
  library.inode = file.id.inode;
  std::uint64_t begin = now_ns(CLOCK_MONOTONIC);
  std::vector<PlannedProbe> planned;
  auto contents = reader_.read(file.fd, contents_wanted(*file.api));
  if (contents)
    planned = plan_probes(*file.api, *contents, file.named, options_.filter, numbers_, library);
  else
    library.error = contents.error().message;
  ProbeSet::Attachment attachment{};
  if (library.error.empty()) {
    auto done = probes_.attach(file, planned);
    if (done)
      attachment = *done;
    else
      library.error = done.error().message;
  }
  library.ts = now();
  if (library.error.empty()) {
    library.attach_ns = now_ns(CLOCK_MONOTONIC) - begin;
    if (library.left_out) {
      if (file.api->has_probes())
        log::warning("{}: places of its USDT probes that are left out, being not understood: {}",
                     library.path, library.left_out);
      else
        log::warning("{}: {} functions are left out: too many, or invalid names", library.path,
                     library.left_out);
      news.losses.push_back({Loss::left_out, std::nullopt, library.ts, library.ts, library.path});
    }
    auto page = file.id.device_varies ? FirstPage::of(file.fd.get()) : std::nullopt;
    attached_.push_back({std::move(file), std::move(page), attachment, now_ns(CLOCK_MONOTONIC)});
  } else {
    library.functions = 0;
    // Most selections name the driver's functions; of other libraries, a pattern may well select
    // none.
    if (file.api->layer == 0 || library.error != SELECTS_NOTHING)
      log::warning("{} is not traced: {}", library.path, library.error);
    if (refused_.size() == MAX_REFUSED) refused_.erase(refused_.begin());
    refused_.push_back(file.id);
  }
  libraries_.push_back(library);
  news.libraries.push_back(library);
  return library;
}

News TracedLibraries::look() {
  News news = std::exchange(early_, {});
  withdraw_changed(news);
  attach_settled(news);
  if (!watch_) return news;
  read_watch(news);
  if (std::size_t came = watch_->renew()) {
    news.losses.push_back({Loss::watch_overrun, std::nullopt, 0, now(),
                           fmt::format("{} CPUs came online and were not watched at once", came)});
    missed_some_ = true;
  }
  std::uint64_t at = now_ns(CLOCK_MONOTONIC);
  if (missed_some_ && at - looked_through_at_ >= LOOK_THROUGH_EVERY_NS) {
    looked_through_at_ = at;
    missed_some_ = false;
    look_through_processes(news);
  }
  auto give_up = std::chrono::steady_clock::now() + AT_ONCE;
  attach_pending(news, give_up);
  attach_ahead(news, give_up);
  return news;
}

void TracedLibraries::read_watch(News& news) {
  MappingsRead read = watch_->read();
  queue(std::move(read.libraries), news);
  if (read.unnamed) news.losses.push_back({Loss::watch_overrun, read.unnamed, 0, now(), {}});
  missed_some_ |= read.unnamed != 0;
  // A process that is not looked at in time loses only what is reported when it maps its copy.
  for (std::uint32_t pid : read.begun)
    if (begun_.size() < MAX_PENDING && (begun_.empty() || begun_.back() != pid))
      begun_.push_back(pid);
}

void TracedLibraries::look_through_processes(News& news) {
  Procfs procfs;
  auto mapped = mapped_libraries(procfs, procfs.pids());
  // For each file, one traced process that maps it is enough.
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::erase_if(mapped, [&](const MappedLibrary& library) {
    return !probes_.was_selected(library.pid) ||
           !seen.insert({library.device, library.inode}).second;
  });
  queue(std::move(mapped), news);
}

void TracedLibraries::queue(std::vector<MappedLibrary> mapped, News& news) {
  std::size_t room = MAX_PENDING - pending_.size(), taken = std::min(room, mapped.size());
  std::move(mapped.begin(), mapped.begin() + static_cast<long>(taken),
            std::back_inserter(pending_));
  if (taken == mapped.size()) return;
  missed_some_ = true;
  news.losses.push_back({Loss::watch_overrun, mapped.size() - taken, 0, now(), {}});
}

void TracedLibraries::attach_pending(News& news, std::chrono::steady_clock::time_point give_up) {
  while (!pending_.empty() && std::chrono::steady_clock::now() < give_up) {
    MappedLibrary mapped = std::move(pending_.front());
    pending_.pop_front();
    attach_mapped(mapped, news);
  }
}

void TracedLibraries::attach_mapped(const MappedLibrary& mapped, News& news) {
  // Pid 0: the process is outside cudabpf's own pid namespace.
  if (!mapped.pid || !probes_.was_selected(mapped.pid)) return;
  auto file = open_mapped_or_gone(Procfs(), mapped);
  if (!file) {
    // Its process has ended, and it may have another name here, or none: containers are given the
    // machine's libraries so.
    if (!is_probed(mapped))
      news.losses.push_back(missed(mapped, now(), " was gone before it could be opened"));
    return;
  }
  if (is_known(*file, news)) return note_if_ahead_was_late(*file, mapped, news);
  Library library = attach(std::move(*file), news);
  if (library.error.empty()) came_late(mapped, library.ts, news);
}

// Since before it was mapped. Where a file has several devices, its numbers do not say so.
bool TracedLibraries::is_probed(const MappedLibrary& mapped) const {
  return std::any_of(attached_.begin(), attached_.end(), [&](const Attached& known) {
    const FileId& id = known.file.id;
    auto is_now = FileId::of(known.file.fd.get());
    return !id.device_varies && id.is_mapped_as(mapped.device, mapped.inode) && is_now &&
           is_now->same_content(id) && mapped.ts >= known.probed_at;
  });
}

LossEvent TracedLibraries::missed(const MappedLibrary& mapped, std::uint64_t until,
                                  std::string_view what) const {
  return {Loss::late_library, std::nullopt, mapped.ts > begin_ns_ ? mapped.ts - begin_ns_ : 0,
          until, fmt::format("{} mapped by pid {}{}", mapped.path, mapped.pid, what)};
}

void TracedLibraries::came_late(const MappedLibrary& mapped, std::uint64_t until, News& news) {
  news.losses.push_back(missed(mapped, until, ""));
  log::hint(
      "{} was not known before pid {} loaded it: its calls until then are missing. Next time, name "
      "it with `--library {}`",
      mapped.path, mapped.pid, mapped.path);
}

// A script or an activated environment sets LD_LIBRARY_PATH after the trace has begun, and a Python
// program has libraries among its packages. The program that was started has its variables before
// it looks for a libcuda: a Python program some 20 ms.
void TracedLibraries::attach_ahead(News& news, std::chrono::steady_clock::time_point give_up) {
  Procfs procfs;
  while (!begun_.empty() && std::chrono::steady_clock::now() < give_up) {
    std::uint32_t pid = begun_.front();
    begun_.pop_front();
    if (!pid || !probes_.was_selected(pid)) continue;
    auto process = static_cast<pid_t>(pid);
    std::string folders = folders_ahead(procfs, process, options_.library_path);
    if (folders.empty()) continue;
    std::string seen = procfs.mount_namespace(process) + folders;
    if (std::find(looked_ahead_.begin(), looked_ahead_.end(), seen) != looked_ahead_.end())
      continue;
    if (looked_ahead_.size() == MAX_LOOKED_AHEAD) looked_ahead_.erase(looked_ahead_.begin());
    looked_ahead_.push_back(std::move(seen));
    for (LibraryFile& file : find_ahead(procfs, process, folders)) {
      if (is_known(file, news)) continue;
      if (attach(std::move(file), news).error.empty()) attached_.back().ahead = true;
    }
  }
}

// A copy that was found ahead may have been mapped before its probes were in place.
void TracedLibraries::note_if_ahead_was_late(const LibraryFile& file, const MappedLibrary& mapped,
                                             News& news) {
  for (Attached& known : attached_) {
    if (!known.ahead || !known.file.id.same_file(file.id) || mapped.ts >= known.probed_at) continue;
    came_late(mapped, known.probed_at - begin_ns_, news);
    known.ahead = false;  // one loss for each copy, as for those that were not found ahead
  }
}

News TracedLibraries::finish() {
  News news = std::exchange(early_, {});
  withdraw_changed(news);
  if (!watch_) return news;
  read_watch(news);
  std::set<std::pair<std::uint64_t, std::uint64_t>> reported;
  for (const MappedLibrary& mapped : pending_) {
    if (!mapped.pid || !probes_.was_selected(mapped.pid)) continue;
    auto file = open_mapped_or_gone(Procfs(), mapped);
    if (file && is_known(*file, news)) {
      note_if_ahead_was_late(*file, mapped, news);
      continue;
    }
    if (!file && is_probed(mapped)) continue;
    if (!reported.insert({mapped.device, mapped.inode}).second) continue;
    news.losses.push_back(missed(mapped, now(), " when the trace ended"));
  }
  pending_.clear();
  return news;
}

void TracedLibraries::withdraw_changed(News& news) {
  for (std::size_t i = 0; i < attached_.size(); i++) {
    Attached& known = attached_[i];
    auto id = known.copied ? std::nullopt : FileId::of(known.file.fd.get());
    if (!id || known.file.id.same_content(*id)) continue;
    if (known.page) {
      auto page = FirstPage::of(known.file.fd.get());
      known.copied = page && page->is_same_as(*known.page) == false;
    }
    if (!known.copied) withdraw(i--, news);
  }
}

// A uprobe writes back the first byte that the function had when it was attached. In a file with
// other contents that byte lands in the middle of something else and kills every process that loads
// the file.
void TracedLibraries::withdraw(std::size_t index, News& news) {
  probes_.withdraw(attached_[index].attachment);
  const std::string& path = attached_[index].file.path;
  log::warning("{} was written to while it was traced: its probes are withdrawn", path);
  news.losses.push_back({Loss::library_changed, std::nullopt, now(), now(), path});
  written_.push_back({std::move(attached_[index].file), now_ns(CLOCK_MONOTONIC)});
  attached_.erase(attached_.begin() + static_cast<long>(index));
}

// Replacing a file by writing to it takes a while.
void TracedLibraries::attach_settled(News& news) {
  constexpr std::uint64_t QUIET_NS = 1'000'000'000;
  std::uint64_t at = now_ns(CLOCK_MONOTONIC);
  for (std::size_t i = 0; i < written_.size(); i++) {
    Written& written = written_[i];
    auto id = FileId::of(written.file.fd.get());
    if (id && !id->untouched_since(written.file.id)) written.since = at;
    if (id) written.file.id = *id;
    if (id && at - written.since < QUIET_NS) continue;
    LibraryFile file = std::move(written.file);
    written_.erase(written_.begin() + static_cast<long>(i--));
    if (id && !is_known(file, news)) attach(std::move(file), news);
  }
}

}  // namespace cudabpf
