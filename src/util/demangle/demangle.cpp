#include "util/demangle/demangle.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "util/demangle/itanium.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t MAX_MANGLED = 16u << 10;
constexpr std::size_t MAX_FULL = 64u << 10;
constexpr std::size_t MAX_GROWTH = 64u << 20;  // on the way, in the C++ library's demangler

// An operator comes before its own prefixes.
constexpr std::array<std::string_view, 43> OPERATORS = {
    "<=>", "->*", "<<=", ">>=", "()", "[]", "<<",   ">>",     "<=",        ">=",  "==",
    "!=",  "&&",  "||",  "++",  "--", "+=", "-=",   "*=",     "/=",        "%=",  "^=",
    "&=",  "|=",  "->",  "<",   ">",  "=",  "+",    "-",      "*",         "/",   "%",
    "^",   "&",   "|",   "~",   "!",  ",",  "\"\"", " new[]", " delete[]", " new"};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || (c & 0x80) != 0;
}

// One past the bracket that closes the one at `begin`, or npos.
std::size_t end_of_bracket(std::string_view text, std::size_t begin) {
  std::string open;  // brackets not closed yet
  for (std::size_t i = begin; i < text.size(); i++) {
    char c = text[i], before = i > 0 ? text[i - 1] : '\0';
    switch (c) {
      case '(':
      case '[':
      case '{':
        open += c;
        break;
      case '<':
        // "(a)<(b)" in parentheses is a comparison; a template's name directly precedes its '<'.
        if (i == begin || is_word(before) || before == '}' || before == ' ') open += c;
        break;
      case '>':
        if (before != '-' && open.back() == '<') open.pop_back();
        break;
      case ')':
      case ']':
      case '}': {
        char opening = c == ')' ? '(' : c == ']' ? '[' : '{';
        while (!open.empty() && open.back() != opening) open.pop_back();
        if (open.empty()) return text.npos;
        open.pop_back();
        break;
      }
      default:
        break;
    }
    if (open.empty()) return i + 1;
  }
  return text.npos;
}

// One part of a qualified name.
struct Part {
  std::string name = {};                // without template arguments and parameters
  std::string_view template_args = {};  // including the brackets
  bool lambda = false;

  bool is_call() const { return name == "operator()" || name == "_FUN"; }
  bool is_operator() const {
    return name.starts_with("operator") && name.size() > 8 && !is_word(name[8]);
  }
};

// Reads a demangled name from the left. What comes before a blank is a return type and is dropped;
// what remains at the parameter list or at the end is the name.
class Signature {
 public:
  explicit Signature(std::string_view text) : text_(text) {}

  // Empty if the text is not a signature.
  std::string short_name() { return read() ? compose() + clones() : std::string{}; }

  // The last part's arguments, without the brackets.
  std::string_view template_args() {
    if (!read() || parts_.back().template_args.size() < 2) return {};
    std::string_view args = parts_.back().template_args;
    return args.substr(1, args.size() - 2);
  }

 private:
  bool read() {
    while (at_ < text_.size() && !done_) {
      if (!step()) return false;
    }
    finish_part();
    return !parts_.empty();
  }

  bool starts(std::string_view word) const { return text_.substr(at_).starts_with(word); }

  bool step() {
    char c = text_[at_];
    switch (c) {
      case ' ':
        return read_blank();
      case ':':
        at_++;
        finish_part();
        return true;
      case '<':
        return skip_bracket(current_.template_args);
      case '[':
        return skip_abi_tag();
      case '{':
        return read_braces();
      case '(':
        return read_parenthesis();
      default:
        break;
    }
    // "operators" and "operator_x" are names like any other.
    constexpr std::string_view OPERATOR = "operator";
    bool word = at_ + OPERATOR.size() < text_.size() && is_word(text_[at_ + OPERATOR.size()]);
    if (current_.name.empty() && starts(OPERATOR) && !word) return read_operator();
    current_.name += c;
    at_++;
    return true;
  }

  bool read_blank() {
    at_++;
    // "foo (int)", as some tools print it, but "void (anonymous namespace)::foo()".
    bool function_type = starts("(*") || starts("(&") || starts("(anonymous namespace)");
    if (starts("(") && !function_type) return true;
    parts_.clear();
    current_ = {};
    return true;
  }

  bool skip_bracket(std::string_view& content) {
    std::size_t end = end_of_bracket(text_, at_);
    if (end == text_.npos) return false;
    content = text_.substr(at_, end - at_);
    at_ = end;
    return true;
  }

  bool skip_abi_tag() {
    std::string_view tag;
    return skip_bracket(tag);
  }

  // "{lambda(int)#1}" -> "{lambda#1}"; "{unnamed type#1}" stays.
  bool read_braces() {
    std::string_view braces;
    if (!skip_bracket(braces)) return false;
    std::size_t number = braces.rfind('#');
    current_.lambda = braces.starts_with("{lambda(") && number != braces.npos;
    if (current_.lambda) {
      current_.name.append("{lambda").append(braces.substr(number));
    } else {
      current_.name += braces;
    }
    return true;
  }

  bool read_parenthesis() {
    std::string_view group;
    if (!skip_bracket(group)) return false;
    if (group == "(anonymous namespace)") return true;
    if (current_.name == "decltype") {
      current_ = {};
      return true;
    }
    if (current_.name.empty()) {
      // "void (*foo(int))(char)": the name is inside, before its own parameters.
      if (inside_ || (!group.starts_with("(*") && !group.starts_with("(&"))) return true;
      inside_ = true;
      text_ = group.substr(2, group.size() - 3);
      at_ = 0;
      parts_.clear();
      return true;
    }
    // Parameters of the function itself, or of one that encloses a local name.
    std::size_t after = at_;
    for (std::string_view word : {" const", " volatile", " &&", " &"}) {
      if (text_.substr(after).starts_with(word)) after += word.size();
    }
    done_ = !text_.substr(after).starts_with("::");
    if (!done_) at_ = after;
    return true;
  }

  bool read_operator() {
    current_.name = "operator";
    at_ += current_.name.size();
    for (std::string_view symbol : OPERATORS) {
      if (!starts(symbol)) continue;
      current_.name += symbol;
      at_ += symbol.size();
      if (symbol == "\"\"") read_literal_suffix();
      if (starts(" <")) at_++;  // "operator< <int>"
      return true;
    }
    // A conversion: its type ends at the parameters. Also "operator delete", "operator co_await".
    while (at_ < text_.size() && text_[at_] != '(') {
      if (text_[at_] == '<') {
        if (!skip_bracket(current_.template_args)) return false;
      } else {
        current_.name += text_[at_++];
      }
    }
    return true;
  }

  // operator"" _km
  void read_literal_suffix() {
    while (at_ < text_.size() && (text_[at_] == ' ' || is_word(text_[at_]))) {
      current_.name += text_[at_++];
    }
  }

  void finish_part() {
    if (!current_.name.empty()) {
      current_.lambda |= current_.name.starts_with("'lambda");  // as LLVM writes it
      parts_.push_back(std::move(current_));
    }
    current_ = {};
  }

  // The last part; an operator with its class; a lambda with its enclosing function.
  std::string compose() {
    if (parts_.size() > 1 && parts_.back().is_call() && parts_[parts_.size() - 2].lambda) {
      parts_.pop_back();
    }
    if (std::string name = cutlass_name(); !name.empty()) return name;
    std::string name = parts_.back().name;
    bool needs_scope = parts_.back().lambda || parts_.back().is_operator();
    for (std::size_t i = parts_.size() - 1; needs_scope && i-- > 0;) {
      // A lambda's call operator adds nothing to the lambda.
      if (parts_[i].is_call() && i > 0 && parts_[i - 1].lambda) continue;
      name.insert(0, parts_[i].name + "::");
      needs_scope = parts_[i].lambda;
    }
    return name;
  }

  // cutlass::Kernel2<cutlass_80_wmma_...>: the only argument is the kernel's real name.
  std::string cutlass_name() const {
    const Part& last = parts_.back();
    if (parts_.front().name != "cutlass") return {};
    if (last.name != "Kernel" && last.name != "Kernel2") return {};
    std::string_view args = last.template_args;
    if (args.size() < 3) return {};
    args = args.substr(1, args.size() - 2);
    return std::all_of(args.begin(), args.end(), is_word) ? std::string(args) : std::string{};
  }

  // " [clone .constprop.0] [clone .cold]" -> ".constprop.0.cold", as in the symbol.
  std::string clones() const {
    constexpr std::string_view CLONE = "[clone ";
    std::string suffix;
    for (std::size_t at = at_; (at = text_.find(CLONE, at)) != text_.npos;) {
      at += CLONE.size();
      std::size_t end = std::min(text_.find(']', at), text_.size());
      suffix += text_.substr(at, end - at);
    }
    return suffix;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool done_ = false;    // the parameters have been read
  bool inside_ = false;  // text_ is what stands in a function pointer's parentheses
  std::vector<Part> parts_;
  Part current_;
};

// "DpRKT_" prints each element of a pack once, as "T_" alone may. Any other pattern is printed
// again for each element, with the expansions that are in it.
bool repeats_its_pattern(std::string_view pattern) {
  std::size_t begin = std::min(pattern.find_first_not_of("RPOKV"), pattern.size());
  if (begin > 3 || !pattern.substr(begin).starts_with('T')) return true;
  std::size_t end = pattern.find_first_not_of("0123456789", begin + 1);
  return end == pattern.npos || pattern[end] != '_' || pattern.substr(end + 1).starts_with('I');
}

// Whether the C++ library's demangler could make too much of a name: each reference to an earlier
// part ("S_", "T0_") may repeat everything before it, and each expansion of a pack repeats what is
// in it once for each element. Elements and pattern share the name's length.
bool may_grow_beyond_bounds(std::string_view mangled) {
  std::size_t bound = mangled.size();
  for (std::size_t i = 0; i + 1 < mangled.size() && bound <= MAX_GROWTH; i++) {
    std::string_view rest = mangled.substr(i);
    if (rest.starts_with("Dp") || rest.starts_with("sp")) {
      if (repeats_its_pattern(rest.substr(2))) bound *= mangled.size() / 2;
      continue;
    }
    if (mangled[i] != 'S' && mangled[i] != 'T') continue;
    std::size_t end = mangled.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", i + 1);
    if (end != mangled.npos && mangled[end] == '_') bound *= 2;
  }
  return bound > MAX_GROWTH;
}

// "_ZN2at6native3fooILi4EEEvi" -> "foo": the last plain name before template arguments or types.
std::string short_mangled_name(std::string_view mangled) {
  bool nested = mangled.starts_with("_ZN");
  std::size_t at = mangled.find_first_not_of("NrVKL", 2);
  if (mangled.substr(std::min(at, mangled.size())).starts_with("St")) at += 2;
  std::string_view last = mangled;
  while (at < mangled.size() && mangled[at] >= '0' && mangled[at] <= '9') {
    std::size_t length = 0;
    for (; at < mangled.size() && mangled[at] >= '0' && mangled[at] <= '9'; at++) {
      length = std::min(length * 10 + static_cast<std::size_t>(mangled[at] - '0'), mangled.size());
    }
    if (length == 0 || length > mangled.size() - at) break;
    last = mangled.substr(at, length);
    at += length;
    if (!nested) break;  // the parameters follow
    if (at < mangled.size() && mangled[at] == 'L') at++;
  }
  return std::string(last);
}

}  // namespace

std::string demangle(std::string_view mangled) {
  std::string name(mangled);
  // Without the prefix, the demangler would take a kernel called "i" for the type int.
  if (!name.starts_with("_Z") || name.size() > MAX_MANGLED) return name;
  if (std::optional<std::string> full = itanium::demangle(name)) return *full;
  if (may_grow_beyond_bounds(name)) return name;
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> full(
      ::abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return full && std::strlen(full.get()) <= MAX_FULL ? std::string(full.get()) : name;
}

std::string short_name(std::string_view full) {
  if (full.starts_with("_Z")) return short_mangled_name(full);
  if (full.find_first_of("(<:") == full.npos) return std::string(full);
  std::string name = Signature(full).short_name();
  return name.empty() ? std::string(full) : name;
}

std::vector<std::string_view> template_arguments(std::string_view full) {
  std::vector<std::string_view> arguments;
  std::string_view rest = Signature(full).template_args();
  std::size_t begin = 0;
  for (std::size_t i = 0; i < rest.size(); i++) {
    char c = rest[i];
    if (c == ',') {
      arguments.push_back(rest.substr(begin, i - begin));
      begin = i + 1;
      while (begin < rest.size() && rest[begin] == ' ') begin++;
    } else if (c == '(' || c == '{' || c == '[' || (c == '<' && i > 0 && is_word(rest[i - 1]))) {
      std::size_t end = end_of_bracket(rest, i);
      if (end == rest.npos) break;
      i = end - 1;
    }
  }
  std::string_view last = rest.substr(begin);
  while (last.ends_with(' ')) last.remove_suffix(1);
  if (!last.empty()) arguments.push_back(last);
  return arguments;
}

}  // namespace cudabpf
