#include "collect/bpf/uprobe_multi.hpp"

#include <bpf/bpf.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <span>
#include <thread>

namespace cudabpf {

bpf_attach_type attach_type_of(UprobeEnd end) {
  return end == UprobeEnd::both ? ATTACH_UPROBE_SESSION : ATTACH_UPROBE_MULTI;
}

// Not by libbpf's bpf_link_create(), which before 1.6 refuses attach types that it does not know.
Fd link_uprobes(int program, const std::string& path, UprobeEnd end, const UprobePlaces& places,
                std::uint32_t pid) {
  UprobeMultiAttributes attributes{};
  attributes.program = static_cast<std::uint32_t>(program);
  attributes.type = attach_type_of(end);
  attributes.path = reinterpret_cast<std::uintptr_t>(path.c_str());
  attributes.offsets = reinterpret_cast<std::uintptr_t>(places.offsets.data());
  if (!places.cookies.empty())
    attributes.cookies = reinterpret_cast<std::uintptr_t>(places.cookies.data());
  if (!places.semaphores.empty())
    attributes.semaphores = reinterpret_cast<std::uintptr_t>(places.semaphores.data());
  attributes.count = static_cast<std::uint32_t>(places.offsets.size());
  attributes.multi_flags = end == UprobeEnd::at_return ? UPROBE_MULTI_AT_RETURN : 0;
  attributes.pid = pid;
  return Fd(static_cast<int>(syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes))));
}

namespace {

Fd load(std::span<const bpf_insn> program, bpf_attach_type type) {
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = type);
  return Fd(bpf_prog_load(BPF_PROG_TYPE_KPROBE, "cb_trial", "GPL", program.data(), program.size(),
                          &options));
}

}  // namespace

// No link can be made on the root folder: a kernel that knows such links answers EBADF, one that
// does not answers EINVAL.
bool kernel_links_uprobes(UprobeEnd end) {
  const bpf_insn nothing[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
  };
  Fd program = load(nothing, attach_type_of(end));
  if (!program) return false;
  Fd link = link_uprobes(program.get(), "/", end, {{0}, {}});
  return !link && errno == EBADF;
}

namespace {

// The trial's target: an instruction that can be probed and is not optimized away.
[[gnu::noinline]] void tried_function() { asm volatile("nop" ::: "memory"); }

// The file offset of a function of this program.
std::optional<unsigned long> offset_in_file(std::uintptr_t address) {
  struct Search {
    std::uintptr_t address;
    std::optional<unsigned long> offset;
  } wanted{address, {}};
  auto look = [](dl_phdr_info* object, std::size_t, void* data) {
    auto& search = *static_cast<Search*>(data);
    for (int i = 0; i < object->dlpi_phnum; i++) {
      const auto& segment = object->dlpi_phdr[i];
      std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
      if (segment.p_type == PT_LOAD && search.address - begin < segment.p_filesz)
        search.offset = search.address - begin + segment.p_offset;
    }
    return 1;  // the first object is the program itself
  };
  dl_iterate_phdr(look, &wanted);
  return wanted.offset;
}

}  // namespace

bool links_see_all_threads() {
  Fd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "cb_trial", 4, 8, 1, nullptr));
  const bpf_insn count_up[] = {
      {.code = BPF_LD | BPF_DW | BPF_IMM,
       .dst_reg = BPF_REG_1,
       .src_reg = BPF_PSEUDO_MAP_VALUE,
       .off = 0,
       .imm = map.get()},
      {.code = 0, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .src_reg = 0, .off = 0, .imm = 1},
      {.code = BPF_STX | BPF_DW | BPF_ATOMIC,
       .dst_reg = BPF_REG_1,
       .src_reg = BPF_REG_2,
       .off = 0,
       .imm = BPF_ADD},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
  };
  Fd program = load(count_up, ATTACH_UPROBE_MULTI);
  auto offset = offset_in_file(reinterpret_cast<std::uintptr_t>(&tried_function));
  if (!map || !program || !offset) return false;
  Fd link = link_uprobes(program.get(), "/proc/self/exe", UprobeEnd::entry, {{*offset}, {}},
                         static_cast<std::uint32_t>(getpid()));
  if (!link) return false;
  std::thread(tried_function).join();
  std::uint32_t key = 0;
  std::uint64_t seen = 0;
  bpf_map_lookup_elem(map.get(), &key, &seen);
  return seen == 1;
}

}  // namespace cudabpf
