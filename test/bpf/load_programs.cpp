// Loads every program of compiled BPF objects, in every way that cudabpf loads it, so that the
// running kernel's verifier judges each. Nothing is attached. usage: load_programs [--fewest-ways]
// OBJECT...
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collect/bpf/uprobe_multi.hpp"

namespace {

constexpr int FAILED = 1, USAGE = 2, SKIPPED = 77;
constexpr const char* SOME_FUNCTION = "vfs_fsync";  // of the kernel's own, for fentry and fexit

// A way of loading: how the call programs attach, and whose pids are recorded.
struct Way {
  const char* name;
  bpf_attach_type attach_type;
  bool sleepable;
  bool pid_namespace;
};

constexpr auto SINGLE = bpf_attach_type{};
constexpr auto MULTI = cudabpf::ATTACH_UPROBE_MULTI;
constexpr auto SESSION = cudabpf::ATTACH_UPROBE_SESSION;
constexpr std::size_t FEWEST_WAYS = 2;  // the first ones: they cover every line of a program
constexpr Way WAYS[] = {
    {"single links", SINGLE, false, false},
    {"single links, sleepable, in a pid namespace", SINGLE, true, true},
    {"single links, sleepable", SINGLE, true, false},
    {"uprobe_multi", MULTI, false, false},
    {"uprobe_multi, sleepable", MULTI, true, false},
    {"uprobe_multi, sleepable, in a pid namespace", MULTI, true, true},
    {"sessions", SESSION, false, false},
    {"sessions, sleepable", SESSION, true, false},
    {"sessions, sleepable, in a pid namespace", SESSION, true, true},
};

struct CloseObject {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};
using Object = std::unique_ptr<bpf_object, CloseObject>;

std::string g_messages;  // libbpf's messages from the last load

int keep_message(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG) return 0;
  char* text = nullptr;
  if (vasprintf(&text, format, arguments) < 0) return 0;
  g_messages += text;
  free(text);
  return 0;
}

bool is_call(const bpf_program* program) {
  std::string_view section = bpf_program__section_name(program);
  return section.find("uprobe") != section.npos || section.find("uretprobe") != section.npos;
}

bool is_session(const bpf_program* program) {
  return std::string_view(bpf_program__name(program)).ends_with("_session");
}

bool is_of_types(const bpf_program* program) {  // fentry and fexit depend on the function's types
  return bpf_program__type(program) == BPF_PROG_TYPE_TRACING;
}

// Sets a constant of the object by name, as the skeleton does.
bool set_constant(bpf_object* object, std::string_view name, std::uint64_t value) {
  std::size_t size = 0;
  bpf_map* map = bpf_object__find_map_by_name(object, ".rodata");
  auto* data = map ? static_cast<char*>(bpf_map__initial_value(map, &size)) : nullptr;
  btf* types = bpf_object__btf(object);
  std::int32_t section = btf__find_by_name_kind(types, ".rodata", BTF_KIND_DATASEC);
  if (!data || section < 0) return false;
  const btf_type* constants = btf__type_by_id(types, static_cast<std::uint32_t>(section));
  const btf_var_secinfo* variable = btf_var_secinfos(constants);
  for (unsigned i = 0; i < btf_vlen(constants); i++, variable++) {
    const btf_type* type = btf__type_by_id(types, variable->type);
    if (name != btf__name_by_offset(types, type->name_off)) continue;
    if (variable->offset + variable->size > size || variable->size > sizeof(value)) return false;
    memcpy(data + variable->offset, &value, variable->size);
    return true;
  }
  return false;
}

// Opens the object as cudabpf would, with the programs that `wanted` names.
Object open_object(const char* path, const Way& way,
                   const std::function<bool(const bpf_program*)>& wanted) {
  Object object(bpf_object__open_file(path, nullptr));
  if (!object) return object;
  bool set = set_constant(object.get(), "driver_traced", 1) &&
             set_constant(object.get(), "can_sleep", way.sleepable) &&
             set_constant(object.get(), "pidns_dev", way.pid_namespace ? 4 : 0) &&
             set_constant(object.get(), "pidns_ino", way.pid_namespace ? 0xf0000001 : 0);
  bpf_map* ring = bpf_object__find_map_by_name(object.get(), "ring");
  if (!set || !ring) {
    errno = ENOENT;
    return nullptr;
  }
  bpf_map__set_max_entries(ring, 65536);
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    bpf_program__set_autoload(program, wanted(program));
    if (is_of_types(program)) bpf_program__set_attach_target(program, 0, SOME_FUNCTION);
    if (!is_call(program)) continue;
    bpf_program__set_expected_attach_type(program, way.attach_type);
    if (way.sleepable)
      bpf_program__set_flags(program, bpf_program__flags(program) | BPF_F_SLEEPABLE);
  }
  return object;
}

// Whether the kernel accepts even the smallest program of that type.
bool kernel_takes(bpf_prog_type type, bpf_attach_type attach_type, std::uint32_t flags,
                  std::int32_t function = 0) {
  const bpf_insn program[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
  };
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = attach_type,
              .prog_flags = flags);
  options.attach_btf_id = static_cast<std::uint32_t>(function);
  int loaded = bpf_prog_load(type, "smallest", "GPL", program, std::size(program), &options);
  if (loaded >= 0) close(loaded);
  return loaded >= 0;
}

bool kernel_takes_calls(const Way& way) {
  if (way.attach_type != SESSION)
    return kernel_takes(BPF_PROG_TYPE_KPROBE, way.attach_type, way.sleepable ? BPF_F_SLEEPABLE : 0);
  return cudabpf::kernel_links_uprobes(cudabpf::UprobeEnd::both);
}

std::string last_lines(const std::string& text) {
  constexpr std::size_t KEEP = 2000;
  return text.size() <= KEEP ? text : "…" + text.substr(text.find('\n', text.size() - KEEP));
}

// Loads all programs at once, which is quick; if that fails, each alone, to say which one fails.
int load(const char* path, const Way& way, const std::function<bool(const bpf_program*)>& wanted) {
  g_messages.clear();
  Object all = open_object(path, way, wanted);
  if (!all) {
    printf("FAILED  %s: cannot be opened: %s\n%s", path, strerror(errno), g_messages.c_str());
    return 1;
  }
  if (bpf_object__load(all.get()) == 0) return 0;
  int failures = 0;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, all.get()) {
    if (!wanted(program)) continue;
    std::string_view name = bpf_program__name(program);
    Object one = open_object(
        path, way, [&](const bpf_program* other) { return name == bpf_program__name(other); });
    g_messages.clear();
    if (one && bpf_object__load(one.get()) == 0) continue;
    failures++;
    printf("FAILED  %s: %s, %s\n%s\n", path, bpf_program__name(program), way.name,
           last_lines(g_messages).c_str());
  }
  if (!failures)
    printf("FAILED  %s: each program loads alone, all of them do not: %s\n%s\n", path, way.name,
           last_lines(g_messages).c_str());
  return failures ? failures : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<const char*> objects(argv + 1, argv + argc);
  std::span<const Way> wanted_ways = WAYS;
  if (!objects.empty() && std::string_view(objects.front()) == "--fewest-ways") {
    wanted_ways = wanted_ways.first(FEWEST_WAYS);
    objects.erase(objects.begin());
  }
  if (objects.empty()) {
    fprintf(stderr, "usage: load_programs [--fewest-ways] OBJECT...\n");
    return USAGE;
  }
  libbpf_set_print(keep_message);
  if (!kernel_takes(BPF_PROG_TYPE_KPROBE, SINGLE, 0)) {
    printf("SKIPPED: no BPF program can be loaded here: %s\n", strerror(errno));
    return SKIPPED;
  }
  btf* kernel = btf__load_vmlinux_btf();
  std::int32_t function =
      kernel ? btf__find_by_name_kind(kernel, SOME_FUNCTION, BTF_KIND_FUNC) : -ENOENT;
  bool typed = function > 0 && kernel_takes(BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, 0, function);
  btf__free(kernel);
  if (!typed) printf("without fentry and fexit: this kernel takes none\n");

  int failures = 0, ways = 0;
  for (const Way& way : wanted_ways) {
    if (!kernel_takes_calls(way)) {
      printf("without %s: this kernel takes none\n", way.name);
      continue;
    }
    ways++;
    // The way in which calls are traced does not matter to the other programs.
    bool others = way.attach_type == SINGLE && way.sleepable == way.pid_namespace;
    for (const char* object : objects)
      failures += load(object, way, [&](const bpf_program* program) {
        if (is_call(program)) return is_session(program) == (way.attach_type == SESSION);
        return others && (typed || !is_of_types(program));
      });
  }
  printf("%zu objects in %d ways: %d failures\n", objects.size(), ways, failures);
  return failures ? FAILED : 0;
}
