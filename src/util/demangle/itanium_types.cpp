#include <fmt/format.h>

#include "util/demangle/itanium_reader.hpp"

namespace cudabpf::itanium {

namespace {

// clang-format off
constexpr Code BUILTINS[] = {
    {"v", "void"}, {"w", "wchar_t"}, {"b", "bool"}, {"c", "char"}, {"a", "signed char"},
    {"h", "unsigned char"}, {"s", "short"}, {"t", "unsigned short"}, {"i", "int"},
    {"j", "unsigned int"}, {"l", "long"}, {"m", "unsigned long"}, {"x", "long long"},
    {"y", "unsigned long long"}, {"n", "__int128"}, {"o", "unsigned __int128"}, {"f", "float"},
    {"d", "double"}, {"e", "long double"}, {"g", "__float128"}, {"z", "..."}, {"Da", "auto"},
    {"Dc", "decltype(auto)"}, {"Dn", "decltype(nullptr)"}, {"Di", "char32_t"}, {"Ds", "char16_t"},
    {"Du", "char8_t"}, {"Dh", "half"},
};
// clang-format on
constexpr Code STANDARD[] = {
    {"Sa", "std::allocator"}, {"Sb", "std::basic_string"}, {"Ss", "std::string"},
    {"Si", "std::istream"},   {"So", "std::ostream"},      {"Sd", "std::iostream"},
};
constexpr Code QUALIFIERS[] = {{"r", " restrict"}, {"V", " volatile"}, {"K", " const"}};
// The types whose literals take only a suffix; other literals have their type in front.
constexpr Code SUFFIXES[] = {
    {"int", ""},         {"unsigned int", "u"},         {"long", "l"}, {"unsigned long", "ul"},
    {"long long", "ll"}, {"unsigned long long", "ull"},
};

}  // namespace

std::string join(const Types& types) {
  std::string joined;
  for (const Type& type : types) {
    if (type.kind == Type::nothing) continue;
    if (!joined.empty()) joined += ", ";
    joined += type.text();
  }
  return joined;
}

void Reader::add_template_args(Name& name, bool of_function) {
  // In a function's own arguments, T_ would refer to what is still being read.
  if (of_function) arguments_.clear();
  std::vector<Argument> arguments;
  Types flat;
  expect("I");
  while (!failed_ && !skip("E")) {
    arguments.push_back(template_argument());
    flat.insert(flat.end(), arguments.back().types.begin(), arguments.back().types.end());
  }
  std::string text = join(flat);
  name.text += name.text.ends_with('<') ? " <" : "<";
  name.text += text + (text.ends_with('>') ? " >" : ">");
  name.template_args = true;
  if (!of_function) return;
  arguments_ = std::move(arguments);
  scope_ = ++scopes_;
}

Argument Reader::template_argument() {
  Nesting nesting(*this);
  if (failed_) return {};
  if (peek() == 'L') return {{literal()}};
  if (!skip("J")) return {{type()}};
  Argument pack{{}, true};
  while (!failed_ && !skip("E")) {
    Types element = template_argument().types;
    pack.types.insert(pack.types.end(), element.begin(), element.end());
  }
  return pack;
}

Type Reader::literal() {
  expect("L");
  if (peek() == '_' || peek() == 'Z') fail();
  std::string of = type().text();
  std::string value = skip("n") ? "-" : "";
  std::size_t begin = at_;
  while (!failed_ && peek() != 'E') {
    if (at_ == text_.size()) fail();
    at_++;
  }
  if (failed_ || at_ == begin) {
    fail();
    return {};
  }
  value += text_.substr(begin, at_ - begin);
  expect("E");
  if (of == "bool" && (value == "0" || value == "1")) return {value == "1" ? "true" : "false"};
  for (const Code& suffix : SUFFIXES) {
    if (of == suffix.code) return {value.append(suffix.text)};
  }
  bool real = of == "float" || of == "double" || of == "long double" || of == "__float128";
  return {real ? fmt::format("({})[{}]", of, value) : fmt::format("({}){}", of, value)};
}

Type Reader::template_parameter(std::size_t which) {
  depends_ = true;
  if (in_lambda_) return {.left = fmt::format("auto:{}", which + 1)};
  bool known = which < arguments_.size();
  if (known && !arguments_[which].pack) return arguments_[which].types[0];
  std::size_t size = known ? arguments_[which].types.size() : 0;
  if (!known || !pack_ || (pack_->used && pack_->size != size)) {
    fail();
    return {};
  }
  pack_->used = true;
  pack_->size = size;
  if (size == 0) return {.kind = Type::nothing};
  return arguments_[which].types[pack_->element];
}

Type Reader::pack_expansion() {
  Pack pack;
  Pack* outer = std::exchange(pack_, &pack);
  std::size_t begin = at_, kept = kept_.size();
  Types elements;
  do {
    at_ = begin;
    kept_.resize(kept);
    Type element = type();
    if (!pack.used) fail();
    if (pack.size > 0) elements.push_back(std::move(element));
  } while (!failed_ && ++pack.element < pack.size);
  pack_ = outer;
  for (std::size_t i = kept; i < kept_.size(); i++) kept_[i].of_element = true;
  return {.left = join(elements), .kind = elements.empty() ? Type::nothing : Type::plain};
}

Type Reader::substitution() {
  if (std::string_view standard = skip_code(STANDARD); !standard.empty()) {
    return {std::string(standard)};
  }
  expect("S");
  std::size_t which = index(true);
  if (failed_ || which >= kept_.size()) {
    fail();
    return {};
  }
  Type found = kept_[which];
  depends_ |= found.scope != 0;
  if (!found.of_element && (found.scope == 0 || found.scope == scope_)) return found;
  if (!found.begin) fail();
  return found.begin ? read_again(*found.begin) : Type{};
}

// With what T_ stands for here.
Type Reader::read_again(std::size_t begin) {
  std::size_t at = std::exchange(at_, begin);
  bool outer = std::exchange(again_, true);
  Type made = type();
  again_ = outer;
  at_ = at;
  return made;
}

std::string Reader::read_qualifiers() {
  std::string qualifiers;
  for (std::string_view text; !(text = skip_code(QUALIFIERS)).empty();) {
    qualifiers.insert(0, text);
  }
  return qualifiers;
}

Type Reader::type() {
  Nesting nesting(*this);
  if (++types_ > MAX_TYPES) fail();
  if (failed_) return {};
  bool outer_depends = std::exchange(depends_, false);
  Type made = plain_type();
  charge(made.size());
  depends_ |= outer_depends;
  return made;
}

Type Reader::plain_type() {
  if (std::string_view builtin = skip_code(BUILTINS); !builtin.empty()) {
    return {std::string(builtin)};
  }
  Type made;
  std::size_t begin = at_;
  switch (peek()) {
    case 'r':
    case 'V':
    case 'K':
      made = qualified_type();
      break;
    case 'P':
      at_++;
      made = declared("*", type());
      break;
    case 'R':
      at_++;
      made = declared("&", type());
      break;
    case 'O':
      at_++;
      made = declared("&&", type());
      break;
    case 'F':
      made = function_type();
      break;
    case 'A':
      made = array_type();
      break;
    case 'M':
      made = member_pointer();
      break;
    case 'T':
      at_++;
      made = template_parameter(index());
      if (peek() == 'I') fail();  // a template as argument
      break;
    case 'S':
      if (peek(1) == 't') {
        made = {name(false).text};
        break;
      }
      made = substitution();
      if (peek() != 'I') return made;  // it is kept already
      made = named_type(made.text());
      break;
    case 'D':
      made = type_after_d();
      break;
    default:
      made = {name(false).text};
      break;
  }
  made.begin = begin;
  keep(made);
  return made;
}

Type Reader::type_after_d() {
  if (skip("Dp")) return pack_expansion();
  Type made;
  if (skip("Dv")) {
    std::size_t lanes = number();
    expect("_");
    made = type();
    made.left += fmt::format(" __vector({})", lanes);
  } else {
    fail();
  }
  return made;
}

Type Reader::named_type(std::string text) {
  Name found{.text = std::move(text)};
  add_template_args(found, false);
  return {found.text};
}

Type Reader::qualified_type() {
  std::string qualifiers = read_qualifiers();
  bool of_function = peek() == 'F';
  Type made = of_function ? function_type() : type();
  if (made.kind == Type::nothing) return made;
  // A member function's qualifiers follow its parameters.
  std::string& where = of_function ? made.right : made.left;
  if (!where.ends_with(qualifiers)) where += qualifiers;  // T_ may be const already
  return made;
}

Type Reader::declared(std::string_view symbol, Type to) {
  if (to.kind == Type::nothing) return to;
  if (to.kind != Type::plain) {
    std::string_view gap = to.kind == Type::array ? " " : "";
    return {to.left + " (" + std::string(symbol), fmt::format("){}{}", gap, to.right)};
  }
  // References collapse: if either is "&", the result is "&".
  if (symbol.starts_with('&') && to.left.ends_with('&')) {
    if (symbol == "&" && to.left.ends_with("&&")) to.left.pop_back();
    return to;
  }
  to.left += symbol;
  return to;
}

Type Reader::function_type() {
  expect("F");
  skip("Y");  // extern "C"
  Type made = type();
  Types parameters;
  while (!failed_ && peek() != 'E' && peek(1) != '\0') {
    if ((peek() == 'R' || peek() == 'O') && peek(1) == 'E') break;
    parameters.push_back(type());
  }
  std::string qualifier = skip("R") ? " &" : skip("O") ? " &&" : "";
  expect("E");
  if (made.kind != Type::plain || !made.right.empty()) fail();  // returns a function pointer
  if (parameters.size() == 1 && parameters[0].left == "void") parameters.clear();
  made.right = fmt::format("({}){}", join(parameters), qualifier);
  made.kind = Type::function;
  return made;
}

Type Reader::array_type() {
  expect("A");
  std::string size = peek() == '_' ? "" : std::to_string(number());
  expect("_");
  Type made = type();
  if (made.kind == Type::function || made.kind == Type::nothing) fail();
  if (made.kind == Type::plain && !made.right.empty()) fail();  // of function pointers
  made.right = fmt::format("[{}]{}", size, made.right);
  made.kind = Type::array;
  return made;
}

Type Reader::member_pointer() {
  expect("M");
  std::string scope = type().text();
  Type member = type();
  if (member.kind == Type::plain) return {member.left + " " + scope + "::*", member.right};
  return declared(scope + "::*", std::move(member));
}

}  // namespace cudabpf::itanium
