#include "collect/probe_plan.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cudabpf/call_class.hpp"

namespace cudabpf {

namespace {

constexpr unsigned ARGS = 15;     // what fits into a plan's field for an argument
constexpr unsigned CLASSES = 15;  // and for a class of calls
static_assert(CALL_CLASSES <= CLASSES + 1);
constexpr int MAX_PENDING = 15;    // and for the result of what is under way
constexpr int REGISTER_WORDS = 6;  // words that every architecture has in registers

template <typename Number>
std::uint8_t byte(Number value) {
  return static_cast<std::uint8_t>(value);
}

// How many words the argument takes itself.
unsigned own_words(const Argument& argument) {
  return argument.by_value ? struct_words(argument.layout) : 1;
}

bool is_recorded(const Argument& argument) {
  return argument.word >= 0 &&
         static_cast<unsigned>(argument.word) + own_words(argument) <= CB_MAX_ARGS;
}

// A function's rows. What does not fit into its record is left out.
class Reads {
 public:
  Reads(const Function& function, unsigned words) : function_(function), words_(words) {
    // What is read at return comes first: reading ends at the first row that fails.
    for (const Argument& argument : function.arguments)
      if (argument.out && is_recorded(argument) && returned_ < CB_MAX_OUTS) add_out(argument);
    bool has_struct = false;
    for (const Argument& argument : function.arguments)
      if (argument.role == Role::in_struct && !argument.by_value)
        has_struct |= add_struct(argument);
    auto text =
        std::ranges::find_if(function.arguments, [](const auto& a) { return is_text(a.role); });
    if (text != function.arguments.end() && is_recorded(*text) && !has_struct)
      add({abi::CB_READ_STRING, byte(text->word), byte(words), 0, 0, 0});
  }

  std::vector<abi::cb_read> take() && { return std::move(reads_); }
  bool at_return() const { return returned_ > 0; }

 private:
  bool add(const abi::cb_read& read) {
    bool fits = reads_.size() < CB_MAX_READS && abi::cb_read_fits(&read);
    if (fits) reads_.push_back(read);
    return fits;
  }

  void add_out(const Argument& argument) {
    if (argument.count < 0)
      return add_return(byte(argument.word), 0, is_narrow(argument.role) ? 4 : 8);
    add({abi::CB_READ_LIST, byte(argument.word), 0, word_of_count(argument), 0, CB_MAX_LISTED * 8});
    returned_ = CB_MAX_RETURNED;  // nothing else has room
  }

  std::uint8_t word_of_count(const Argument& argument) const {
    return byte(function_.arguments[static_cast<std::size_t>(argument.count)].word);
  }

  void add_return(std::uint8_t base, std::uint16_t offset, std::uint16_t size) {
    add({abi::CB_READ_RETURN, base, byte(returned_++), 0, offset, size});
  }

  bool add_struct(const Argument& argument) {
    unsigned before = struct_words_before(function_, argument);
    abi::cb_read read{abi::CB_READ_STRUCT, byte(argument.word), byte(words_ + before), 0, 0, 0};
    read.size = static_cast<std::uint16_t>(struct_words(argument.layout) * 8);
    if (argument.holder >= 0) {
      const Argument& holder = function_.arguments[static_cast<std::size_t>(argument.holder)];
      read.base = byte(words_ + struct_words_before(function_, holder) + argument.pointer_at / 8U);
    }
    if (argument.count >= 0) {
      read.kind = abi::CB_READ_INTS;
      read.count = word_of_count(argument);
    }
    const SizeRule& rule = function_.size;
    if (rule.kind == SizeRule::Kind::sum_of_array) {
      read.kind = abi::CB_READ_ARRAY;
      read.count = byte(function_.arguments[static_cast<std::size_t>(rule.times)].word);
    }
    if (before * 8 + read.size > CB_MAX_STRUCT || !add(read)) return false;
    if (argument.layout == Struct::graph_node && at_return()) add_body(read.base);
    return true;
  }

  void add_body(std::uint8_t node) {
    add_return(node, 0, 4);
    add({abi::CB_READ_ONLY, byte(CB_RETURNED + returned_ - 1), 0, 0, 0, CB_NODE_CONDITIONAL});
    add_return(node, CB_NODE_BODIES_AT, 8);
    add_return(byte(CB_RETURNED + returned_ - 1), 0, 8);
  }

  const Function& function_;
  unsigned words_;
  unsigned returned_ = 0;
  std::vector<abi::cb_read> reads_;
};

// Names the argument that alone says how many bytes a copy copies.
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

Plan plan_for(const Function& function, std::uint16_t id) {
  Plan made;
  abi::cb_plan& plan = made.plan;
  plan.function = id;
  plan.handle_arg = plan.config_arg = plan.size_arg = CB_NO_ARG;
  plan.call_class = static_cast<std::uint8_t>(class_of(function)) & CLASSES;
  if (int pending = api(function.api).pending; pending <= MAX_PENDING)
    plan.pending = static_cast<std::uint8_t>(pending) & MAX_PENDING;
  plan.forgets_names = function.names == NamesEffect::forget;
  unsigned words = 0;
  for (const Argument& argument : function.arguments) {
    if (!is_recorded(argument)) continue;
    auto word = byte(argument.word);
    if (argument.role != Role::hidden) words = std::max(words, word + own_words(argument));
    if (!function.launches_kernel()) continue;
    if (argument.role == Role::function) plan.handle_arg = word & ARGS;
    if (argument.role == Role::in_struct) {
      plan.config_arg = word & ARGS;
      plan.config_words = struct_words(argument.layout) & ARGS;
    }
  }
  plan.nargs = words & 31U;
  name_size(function, plan);
  Reads reads(function, words);
  plan.returns = reads.at_return();
  made.reads = std::move(reads).take();
  return made;
}

Plan plan_for_unknown(std::uint16_t id) {
  Plan made = plan_for(Function{}, id);
  made.plan.nargs = REGISTER_WORDS;
  return made;
}

bool is_plain(const Plan& made) {
  return made.reads.empty() && made.plan.nargs <= CB_PLAIN_ARGS && !made.plan.forgets_names &&
         !made.plan.begins_capture;
}

std::optional<unsigned> ReadTable::place(std::span<const abi::cb_read> reads) {
  if (reads.empty()) return 0;
  std::vector<abi::cb_read> whole(reads.begin(), reads.end());
  whole.push_back({});  // CB_READ_NOTHING
  auto same = [](const abi::cb_read& a, const abi::cb_read& b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
  };
  auto used = rows_.first(used_);
  auto found = std::search(used.begin(), used.end(), whole.begin(), whole.end(), same);
  auto at = static_cast<unsigned>(found - used.begin());
  if (found != used.end()) return at;
  if (whole.size() > rows_.size() - used_) return std::nullopt;
  std::ranges::copy(whole, rows_.begin() + static_cast<std::ptrdiff_t>(used_));
  used_ += whole.size();
  return at;
}

}  // namespace cudabpf
