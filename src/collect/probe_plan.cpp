#include "collect/probe_plan.hpp"

namespace cudabpf {

namespace {

// What fits into a plan's fields: an argument's number, or how many there are, and a struct's
// words.
constexpr unsigned ARGS = 15, WORDS = 31;
constexpr int REGISTER_WORDS = 6;  // words that every architecture has in registers
static_assert(CB_MAX_ARGS <= ARGS && CB_NO_ARG <= ARGS && CB_MAX_STRUCT / 8 <= WORDS);

// The argument that says alone how many bytes a copy copies.
void name_size(const Function& function, abi::cb_plan& plan) {
  const SizeRule& rule = function.size;
  if (!function.copies() || rule.kind != SizeRule::Kind::product || rule.times >= 0 ||
      rule.unit != 1)
    return;
  const Argument& size = function.arguments[static_cast<std::size_t>(rule.argument)];
  if (size.word < 0 || size.word >= REGISTER_WORDS) return;
  plan.size_arg = static_cast<std::uint8_t>(size.word) & ARGS;
  plan.size_narrow = is_narrow(size.role);
}

}  // namespace

abi::cb_plan plan_for(const Function& function, std::uint16_t id) {
  abi::cb_plan plan{};
  plan.function = id;
  plan.string_arg = plan.struct_arg = plan.count_arg = CB_NO_ARG;
  plan.out0 = plan.out1 = plan.handle_arg = plan.size_arg = CB_NO_ARG;
  plan.forgets_names = function.names == NamesEffect::forget;
  unsigned nargs = 0;
  for (const Argument& argument : function.arguments) {
    if (argument.word < 0 || argument.word >= CB_MAX_ARGS) continue;
    unsigned word = static_cast<std::uint8_t>(argument.word);
    if (argument.role != Role::hidden) nargs = word + 1;
    if (argument.out) {
      if (plan.out0 == CB_NO_ARG) {
        plan.out0 = word & ARGS;
        plan.out0_narrow = is_narrow(argument.role);
      } else if (plan.out1 == CB_NO_ARG) {
        plan.out1 = word & ARGS;
        plan.out1_narrow = is_narrow(argument.role);
      }
    } else if (is_text(argument.role) && plan.string_arg == CB_NO_ARG) {
      plan.string_arg = word & ARGS;
    } else if (argument.role == Role::in_struct) {
      plan.struct_arg = word & ARGS;
      plan.struct_words = struct_words(argument.layout) & WORDS;
      plan.makes_body = argument.layout == Struct::graph_node && plan.out0 != CB_NO_ARG;
    } else if (argument.role == Role::function && function.launches_kernel()) {
      plan.handle_arg = word & ARGS;
    }
  }
  if (function.size.kind == SizeRule::Kind::sum_of_array)
    plan.count_arg = static_cast<std::uint8_t>(
                         function.arguments[static_cast<std::size_t>(function.size.times)].word) &
                     ARGS;
  name_size(function, plan);
  plan.nargs = nargs & ARGS;
  return plan;
}

abi::cb_plan plan_for_unknown(std::uint16_t id) {
  abi::cb_plan plan = plan_for(Function{}, id);
  plan.nargs = 6;
  return plan;
}

}  // namespace cudabpf
