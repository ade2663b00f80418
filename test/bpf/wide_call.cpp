// Calls functions of its own of which all is read that rows can say (wide_function.hpp; and one
// that fills in an array), in every way in which this kernel attaches probes, and compares their
// records with what they were given.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "collect/bpf/features.hpp"
#include "collect/bpf/probe_set.hpp"
#include "cudabpf/record.hpp"
#include "support/wide_function.hpp"

using namespace cudabpf;

namespace {

constexpr int FAILED = 1, SKIPPED = 77;
constexpr std::uint64_t MADE = 77;

using Words = std::vector<std::uint64_t>;

}  // namespace

// It takes its arguments as the ABI has them, whatever the compiler sees of its callers.
#ifdef __clang__
#define BY_ABI __attribute__((noinline, optnone))
#else
#define BY_ABI __attribute__((noipa))
#endif

extern "C" BY_ABI int wide(std::uint64_t* made, const WideOuter*, std::uint64_t, std::uint64_t,
                           std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                           std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                           std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                           std::uint64_t, std::uint64_t, std::uint64_t, const WideConfig*) {
  *made = MADE;
  asm volatile("" ::: "memory");
  return 0;
}

// As ncclCommInitAll.
extern "C" BY_ABI int fill(std::uint64_t* handles, int count, const int*) {
  for (int i = 0; i < count; i++) handles[i] = MADE + static_cast<std::uint64_t>(i);
  asm volatile("" ::: "memory");
  return 0;
}

namespace {

// Where a function of this program is in its file.
std::uint64_t file_offset(const void* function) {
  struct Search {
    std::uint64_t address, offset;
  } search{reinterpret_cast<std::uint64_t>(function), 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* of) {
        auto& wanted = *static_cast<Search*>(of);
        for (int i = 0; i < info->dlpi_phnum; i++) {
          const auto& part = info->dlpi_phdr[i];
          std::uint64_t from = wanted.address - info->dlpi_addr - part.p_vaddr;
          if (part.p_type == PT_LOAD && from < part.p_filesz) wanted.offset = part.p_offset + from;
        }
        return 1;  // the program itself comes first
      },
      &search);
  return search.offset;
}

struct Seen {
  std::vector<Words> words;
  std::vector<unsigned> flags;
};

int take(void* to, void* data, std::size_t size) {
  auto& seen = *static_cast<Seen*>(to);
  auto record = parse_record({static_cast<const std::byte*>(data), size});
  if (!record) return 0;
  Words words(record->words.begin(), record->words.end());
  for (std::size_t at = 0; at + 8 <= record->structure.size(); at += 8)
    memcpy(&words.emplace_back(), record->structure.data() + at, 8);
  seen.words.push_back(std::move(words));
  seen.flags.push_back(record->head->flags);
  return 0;
}

// Calls it, with its inner struct at this address, and says what its records should be.
std::vector<Words> call(const std::uint64_t* inner, bool readable) {
  static std::uint64_t made;
  static WideOuter outer;
  static const WideConfig CONFIG{61, 62, 63, 64, 65, 66, 67};
  made = 0;
  outer = {{41, 42, 43}, inner};
  auto address = [](const void* at) { return reinterpret_cast<std::uint64_t>(at); };
  wide(&made, &outer, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, &CONFIG);
  Words entry{address(&made), address(&outer)};
  for (std::uint64_t i = 2; i < WIDE_WORDS - 1; i++) entry.push_back(i);
  entry.push_back(address(&CONFIG));
  entry.insert(entry.end(), {41, 42, 43, address(inner)});
  if (readable) {
    entry.insert(entry.end(), inner, inner + 5);
    entry.insert(entry.end(), CONFIG.begin(), CONFIG.end());
  }
  return {entry, {MADE}};
}

// The same, of an array of this many, with devices or none.
std::vector<Words> call_fill(int count, const std::array<int, 4>* devices) {
  static std::uint64_t handles[CB_MAX_LISTED + 1];
  const int* list = devices ? devices->data() : nullptr;
  fill(handles, count, list);
  auto address = [](const void* at) { return reinterpret_cast<std::uint64_t>(at); };
  Words entry{address(handles), static_cast<std::uint64_t>(count), address(list)}, ret;
  if (devices) {
    entry.resize(entry.size() + sizeof(*devices) / sizeof(std::uint64_t));
    memcpy(&entry[3], list, sizeof(*devices));
  }
  for (int i = 0; i < CB_MAX_LISTED; i++)
    ret.push_back(i < count ? MADE + static_cast<std::uint64_t>(i) : 0);
  return {entry, ret};
}

std::string trace_it(const Features& features) {
  ProbeSet::Options options;
  options.ring_size = 64 << 10;
  auto probes = ProbeSet::load(features, options);
  if (!probes) return probes.error().message;
  ProbeSet& set = **probes;
  LibraryFile file{Fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), {}, {}, nullptr};
  PlannedProbe probe{plan_for(wide_function(), 1),
                     file_offset(reinterpret_cast<const void*>(&wide)), false, false};
  PlannedProbe filling{plan_for(*find_function("ncclCommInitAll"), 2),
                       file_offset(reinterpret_cast<const void*>(&fill)), false, false};
  auto attached = set.attach(file, {probe, filling});
  if (!attached) return attached.error().message;
  set.select_process(static_cast<std::uint32_t>(getpid()));

  static const WideInner INNER{51, 52, 53, 54, 55};
  static const auto* NOWHERE = reinterpret_cast<const std::uint64_t*>(8);
  std::vector<Words> wanted = call(INNER.data(), true);
  for (Words& words : call(NOWHERE, false)) wanted.push_back(std::move(words));
  static const std::array<int, 4> DEVICES{3, 1, 0, 2};
  for (auto& records : {call_fill(4, &DEVICES), call_fill(CB_MAX_LISTED + 1, nullptr)})
    wanted.insert(wanted.end(), records.begin(), records.end());
  Seen seen;
  ring_buffer* ring = ring_buffer__new(bpf_map__fd(set.ring()), take, &seen, nullptr);
  if (!ring) return "the ring cannot be read";
  ring_buffer__consume(ring);
  ring_buffer__free(ring);
  if (seen.words != wanted) return "its records have other words";
  if (seen.flags != std::vector<unsigned>{0, 0, abi::CB_READ_FAULT, 0, 0, 0, 0, 0})
    return "other flags";
  return {};
}

}  // namespace

int main() {
  if (!check_permissions() || !check_kernel()) {
    printf("SKIPPED: cudabpf cannot trace here\n");
    return SKIPPED;
  }
  bool failed = false;
  using Names = std::vector<std::string>;
  for (const Names& without :
       {Names{}, Names{feature::UPROBE_SESSION}, Names{feature::UPROBE_MULTI},
        Names{feature::SLEEPABLE}, Names{feature::UPROBE_SESSION, feature::SLEEPABLE}}) {
    auto features = Features::detect(without, {});
    std::string wrong = features ? trace_it(*features) : features.error().message;
    std::string way = "all features";
    for (const std::string& name : without) way += " but " + name;
    printf("%s: %s\n", way.c_str(), wrong.empty() ? "as given" : wrong.c_str());
    failed |= !wrong.empty();
  }
  return failed ? FAILED : 0;
}
