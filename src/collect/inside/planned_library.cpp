#include "collect/inside/planned_library.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include "collect/inside/taped_functions.hpp"
#include "collect/library_functions.hpp"
#include "util/detour/detour.hpp"

namespace cudabpf {

namespace {

static_assert(detour::CODE == CI_MAX_CODE && detour::JUMP == CI_JUMP && detour::STORE == CI_STORE &&
              detour::LINE == CI_STORE_LINE && detour::COPIED == CI_MAX_CODE &&
              detour::FIXED == CI_MAX_FIXED);

// A program may load library after library.
constexpr std::size_t MAX_PLANNED = 64;

// A library that is loaded later makes one of these calls early, and no program makes them often.
bool is_early(const Function& function) {
  bool makes = function.type == Type::context || function.type == Type::stream;
  return (makes && function.op == Op::create) ||
         (function.type == Type::module && function.op == Op::load);
}

// A call that does something on a GPU or with memory, or that waits. And those that look for new
// libraries: Python may be among them.
bool has_stack(const Function& function) {
  Work work = function.meaning.work;
  return gives_work(work) || work == Work::memory || work == Work::wait ||
         function.api != ApiId::cuda || is_early(function);
}

// cuBLAS's own functions that say what is set in a handle.
struct HandleFunctions {
  std::uint64_t stream_of = 0, math_of = 0;  // where in the file; 0: it has none
  bool both() const { return stream_of && math_of; }
};

HandleFunctions handle_functions_in(const elf::Contents& contents) {
  HandleFunctions found;
  for (const elf::Function& function : contents.functions) {
    if (function.name == "cublasGetStream_v2") found.stream_of = function.offset;
    if (function.name == "cublasGetMathMode") found.math_of = function.offset;
  }
  return found.both() ? found : HandleFunctions{};
}

// Programs set a handle's stream and mode before each product. Where the handle can be asked, these
// calls are recorded only if the user asks for them.
FunctionFilter without_setters(FunctionFilter filter) {
  if (filter.profile == Profile::full || !filter.only.empty()) return filter;
  for (const Function& function : cuda_functions())
    if (function.op == Op::set_stream || function.op == Op::set_math)
      filter.exclude.emplace_back(function.symbol);
  return filter;
}

abi::ci_site site_of(const Api& api, const PlannedProbe& probe, const Function* function,
                     const detour::Place& place, std::span<const std::byte> code) {
  abi::ci_site site{};
  // A program whose function got fewer words than it has arguments would compute something else, so
  // a slightly wrong table must not be enough for that.
  site.above =
      function && function->stack_words > CI_USUAL_ABOVE ? function->stack_words : CI_USUAL_ABOVE;
  site.offset = probe.offset;
  site.plan = probe.plan;
  std::ranges::copy(probe.reads, site.reads);
  site.launch = probe.launch;
  site.of_driver = api.layer == 0;
  site.looks = function && function->api == ApiId::cuda && is_early(*function);
  site.describes = function && function->op == Op::matmul;
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

const PlannedLibrary* PlannedLibraries::find(const Api& api,
                                             const elf::Reading::Taken& file) const {
  for (const PlannedLibrary& known : planned_)
    if (known.api == &api && known.id.same_file(file.id) && known.id.untouched_since(file.id) &&
        known.library.path == file.path)
      return &known;
  return nullptr;
}

elf::Wanted PlannedLibraries::contents_wanted(const Api& api) {
  elf::Wanted wanted = cudabpf::contents_wanted(api);
  wanted.code = CI_MAX_CODE;
  return wanted;
}

Result<const PlannedLibrary*> PlannedLibraries::plan(const Api& api,
                                                     const elf::Reading::Taken& file,
                                                     const Result<elf::Contents>& contents,
                                                     bool named) {
  PlannedLibrary planned = planned_from(api, file, contents, named);
  if (planned.library.error.empty()) {
    planned.sites = TRY(file_of(planned.listed));
    planned.count = static_cast<std::uint32_t>(planned.listed.size());
    planned.listed.clear();
  }
  if (planned_.size() == MAX_PLANNED) planned_.pop_front();
  planned_.push_back(std::move(planned));
  return &planned_.back();
}

PlannedLibrary PlannedLibraries::planned_from(const Api& api, const elf::Reading::Taken& file,
                                              const Result<elf::Contents>& contents, bool named) {
  PlannedLibrary planned;
  planned.id = file.id;
  planned.api = &api;
  Library& library = planned.library;
  library.api = api.key;
  library.path = file.path;
  library.device = file.id.device;
  library.inode = file.id.inode;
  if (!contents) {
    library.error = contents.error().message;
    return planned;
  }
  std::map<std::uint64_t, std::span<const std::byte>> code;  // by offset
  for (const elf::Function& function : contents->functions)
    code.try_emplace(function.offset, function.code);
  HandleFunctions of_handle = handle_functions_in(*contents);
  FunctionFilter filter = of_handle.both() ? without_setters(filter_) : filter_;
  for (const PlannedProbe& probe : plan_probes(api, *contents, named, filter, numbers_, library)) {
    const Function* function = numbers_.find(probe.plan.function);
    bool with_stack = stacks_ != abi::CI_STACK_NONE && function && has_stack(*function);
    if (stacks_ == abi::CI_STACK_ALONE && !with_stack) continue;
    std::string name = function ? std::string(function->symbol) : std::string();
    auto [place, refusal] = detour::find_place(code[probe.offset], probe.offset);
    if (refusal == detour::Refusal::none && planned.listed.size() < CI_MAX_SITES) {
      planned.listed.push_back(site_of(api, probe, function, place, code[probe.offset]));
      if (with_stack) planned.listed.back().stack = static_cast<std::uint8_t>(stacks_);
      if (function && function->type == Type::product && function->op != Op::matmul) {
        planned.listed.back().stream_of = of_handle.stream_of;
        planned.listed.back().math_of = of_handle.math_of;
      }
      if (taped_ && function) planned.listed.back().taped = taped_of(*function);
      planned.names.push_back(std::move(name));
    } else {
      planned.refused.push_back(fmt::format("{} ({})", name, to_string(refusal)));
    }
  }
  return planned;
}

}  // namespace cudabpf
