#include "collect/bpf/program_copy.hpp"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace cudabpf {

namespace {

// Where the program and the functions that it calls begin.
std::vector<std::uint32_t> function_starts(std::span<const bpf_insn> code) {
  std::vector<std::uint32_t> starts{0};
  for (std::size_t i = 0; i < code.size(); i++)
    if (code[i].code == (BPF_JMP | BPF_CALL) && code[i].src_reg == BPF_PSEUDO_CALL)
      starts.push_back(static_cast<std::uint32_t>(static_cast<std::int64_t>(i) + 1 + code[i].imm));
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return starts;
}

// The types of its functions, in the order of the code, as the kernel has them. It has moved the
// code, so where they begin is known from the code that was loaded.
Result<std::vector<bpf_func_info>> functions_of(const bpf_program& program) {
  auto starts = function_starts({bpf_program__insns(&program), bpf_program__insn_cnt(&program)});
  std::vector<bpf_func_info> functions(starts.size());
  bpf_prog_info information{};
  std::uint32_t size = sizeof(information);
  information.func_info = reinterpret_cast<std::uintptr_t>(functions.data());
  information.nr_func_info = static_cast<std::uint32_t>(functions.size());
  information.func_info_rec_size = sizeof(bpf_func_info);
  if (bpf_obj_get_info_by_fd(bpf_program__fd(&program), &information, &size) != 0)
    return errno_error("asking for a program's functions");
  if (information.nr_func_info != functions.size())
    return Error{"a program's functions are not as many as it calls", {}};
  for (std::size_t i = 0; i < functions.size(); i++) functions[i].insn_off = starts[i];
  return functions;
}

}  // namespace

// With the types of its functions. Without, the verifier would follow each into those that are
// checked once where it is known what they are; and Linux 6.1 then takes what it saw in memory that
// is handed to a function for all that there will ever be, and removes the code for the rest.
Result<Fd> load_copy(const bpf_object& object, const bpf_program& program, bpf_attach_type at,
                     KernelBtf::Function function) {
  auto functions = TRY(functions_of(program));
  LIBBPF_OPTS(bpf_prog_load_opts, load, .expected_attach_type = at);
  load.attach_btf_obj_fd = static_cast<std::uint32_t>(function.object);
  load.attach_btf_id = function.id;
  load.prog_btf_fd = static_cast<std::uint32_t>(bpf_object__btf_fd(&object));
  load.func_info = functions.data();
  load.func_info_cnt = static_cast<std::uint32_t>(functions.size());
  load.func_info_rec_size = sizeof(bpf_func_info);
  Fd copy(bpf_prog_load(BPF_PROG_TYPE_TRACING, bpf_program__name(&program), "Dual BSD/GPL",
                        bpf_program__insns(&program), bpf_program__insn_cnt(&program), &load));
  if (!copy) return errno_error("loading a program");
  return copy;
}

}  // namespace cudabpf
