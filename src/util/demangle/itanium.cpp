#include "util/demangle/itanium.hpp"

#include <fmt/format.h>

#include "util/demangle/itanium_reader.hpp"

namespace cudabpf::itanium {

namespace {

constexpr Code OPERATORS[] = {
    {"nw", " new"}, {"na", " new[]"}, {"dl", " delete"}, {"da", " delete[]"}, {"ps", "+"},
    {"ng", "-"},    {"ad", "&"},      {"de", "*"},       {"co", "~"},         {"pl", "+"},
    {"mi", "-"},    {"ml", "*"},      {"dv", "/"},       {"rm", "%"},         {"an", "&"},
    {"or", "|"},    {"eo", "^"},      {"aS", "="},       {"pL", "+="},        {"mI", "-="},
    {"mL", "*="},   {"dV", "/="},     {"rM", "%="},      {"aN", "&="},        {"oR", "|="},
    {"eO", "^="},   {"ls", "<<"},     {"rs", ">>"},      {"lS", "<<="},       {"rS", ">>="},
    {"eq", "=="},   {"ne", "!="},     {"lt", "<"},       {"gt", ">"},         {"le", "<="},
    {"ge", ">="},   {"ss", "<=>"},    {"nt", "!"},       {"aa", "&&"},        {"oo", "||"},
    {"pp", "++"},   {"mm", "--"},     {"cm", ","},       {"pm", "->*"},       {"pt", "->"},
    {"cl", "()"},   {"ix", "[]"},
};
// What their constructors and destructors are of, which have the template's name.
constexpr Code SPELLED_OUT[] = {
    {"std::string", "std::basic_string<char, std::char_traits<char>, std::allocator<char> >"},
    {"std::istream", "std::basic_istream<char, std::char_traits<char> >"},
    {"std::ostream", "std::basic_ostream<char, std::char_traits<char> >"},
    {"std::iostream", "std::basic_iostream<char, std::char_traits<char> >"},
};

}  // namespace

std::optional<std::string> Reader::run() {
  if (!skip("_Z")) return {};
  std::string name = encoding();
  while (peek() == '.') name += clone();
  if (failed_ || at_ != text_.size() || name.size() > MAX_TEXT) return {};
  return name;
}

std::string_view Reader::skip_code(std::span<const Code> codes) {
  for (const Code& code : codes) {
    if (skip(code.code)) return code.text;
  }
  return {};
}

std::size_t Reader::number() {
  std::size_t value = 0;
  if (peek() < '0' || peek() > '9') fail();
  while (peek() >= '0' && peek() <= '9' && value < text_.size()) {
    value = value * 10 + static_cast<std::size_t>(text_[at_++] - '0');
  }
  return value;
}

std::size_t Reader::index(bool base_36) {
  if (skip("_")) return 0;
  std::size_t value = 0;
  for (; peek() != '_' && !failed_; at_++) {
    char c = peek();
    std::size_t digit = c >= '0' && c <= '9'              ? static_cast<std::size_t>(c - '0')
                        : c >= 'A' && c <= 'Z' && base_36 ? static_cast<std::size_t>(c - 'A' + 10)
                                                          : 99;
    if (digit == 99 || value > text_.size()) fail();
    value = value * (base_36 ? 36 : 10) + digit;
  }
  expect("_");
  return value + 1;
}

std::string Reader::clone() {
  std::size_t begin = at_++;
  while (peek() == '_' || (peek() >= 'a' && peek() <= 'z')) at_++;
  while (peek() == '.' && peek(1) >= '0' && peek(1) <= '9') {
    at_++;
    number();
  }
  if (at_ == begin + 1) fail();
  return fmt::format(" [clone {}]", text_.substr(begin, at_ - begin));
}

std::string Reader::encoding(bool is_scope) {
  Nesting nesting(*this);
  Name function = name(true);
  if (failed_ || at_ == text_.size() || peek() == 'E' || peek() == '.') return function.text;
  Type result;
  bool has_result = function.template_args && !function.returns_nothing;
  if (has_result) result = type();
  Types parameters = types_until_end();
  if (parameters.empty()) fail();
  if (parameters.size() == 1 && parameters[0].left == "void") parameters.clear();
  std::string text = fmt::format("{}({}){}", function.text, join(parameters), function.qualifiers);
  if (!has_result || is_scope) return text;
  return result.left + (result.right.empty() ? " " : "") + text + result.right;
}

Types Reader::types_until_end() {
  Types types;
  while (!failed_ && at_ < text_.size() && peek() != 'E' && peek() != '.') {
    types.push_back(type());
  }
  return types;
}

Name Reader::name(bool of_function) {
  Nesting nesting(*this);
  if (failed_) return {};
  switch (peek()) {
    case 'N':
      return nested_name(of_function);
    case 'Z':
      return local_name(of_function);
    default:
      break;
  }
  Name found;
  if (peek() == 'S' && peek(1) != 't') {
    found.text = substitution().text();
    if (peek() != 'I' && of_function) fail();
  } else {
    std::string scope = skip("St") ? "std::" : "";
    found = unqualified_name({});
    found.text = scope + found.text;
    if (peek() == 'I') keep(found);
  }
  if (peek() == 'I') add_template_args(found, of_function);
  return found;
}

Name Reader::nested_name(bool of_function) {
  expect("N");
  std::string qualifiers = read_qualifiers();
  if (skip("R")) qualifiers += " &";
  if (skip("O")) qualifiers += " &&";
  Name found;
  while (!failed_ && !skip("E")) {
    if (peek() == 'I') {
      if (found.text.empty()) fail();
      add_template_args(found, of_function);
    } else if (peek() == 'S' && found.text.empty()) {
      if (skip("St")) {
        found.text = "std";
      } else {
        Type prefix = substitution();
        found.text = prefix.text();
        for (const Code& code : SPELLED_OUT)
          if (is_structor() && found.text == code.code) found.text = code.text;
        found.last = found.text.substr(0, found.text.find('<'));
        std::size_t scope = found.last.rfind("::");
        if (scope != found.last.npos) found.last.erase(0, scope + 2);
      }
      continue;  // what it refers to is kept already
    } else if (peek() == 'T') {
      at_++;
      found = {.text = template_parameter(index()).text()};
    } else {
      Name part = unqualified_name(found.last);
      if (!found.text.empty()) part.text = found.text + "::" + part.text;
      found = std::move(part);
    }
    charge(found.text.size());
    if (peek() != 'E') keep(found);
  }
  if (found.text.empty()) fail();
  found.qualifiers = qualifiers;
  return found;
}

Name Reader::local_name(bool of_function) {
  // A local name within a type starts afresh: its T_ refer to its own function's arguments.
  std::vector<Argument> outer_arguments = std::exchange(arguments_, {});
  int outer_scope = std::exchange(scope_, ++scopes_);
  bool outer_lambda = std::exchange(in_lambda_, false);
  bool outer_depends = depends_;
  Pack* outer_pack = std::exchange(pack_, nullptr);
  expect("Z");
  std::string scope = encoding(true);
  expect("E");
  // What is kept from here on is named without its scope, and so depends on nothing in that.
  depends_ = false;
  Name found;
  if (skip("s")) {
    found.text = "string literal";
  } else {
    found = name(of_function);
  }
  skip_discriminator();
  found.text = scope + "::" + found.text;
  if (!of_function) {
    arguments_ = std::move(outer_arguments);
    scope_ = outer_scope;
  }
  depends_ = outer_depends;
  in_lambda_ = outer_lambda;
  pack_ = outer_pack;
  return found;
}

void Reader::skip_discriminator() {
  if (!skip("_")) return;
  bool long_form = skip("_");
  number();
  if (long_form) expect("_");
}

Name Reader::unqualified_name(std::string_view scope) {
  skip("L");  // internal linkage
  Name found;
  if (peek() >= '0' && peek() <= '9') {
    found.text = source_name();
  } else if (is_structor()) {
    found.text = (peek() == 'D' ? "~" : "") + std::string(scope);
    found.returns_nothing = true;
    at_++;
    if (peek() < '0' || peek() > '5' || scope.empty()) fail();
    at_++;
  } else if (skip("Ut")) {
    found.text = fmt::format("{{unnamed type#{}}}", index() + 1);
    keep(found);
  } else if (skip("Ul")) {
    bool outer = std::exchange(in_lambda_, true);
    int outer_scope = std::exchange(scope_, ++scopes_);
    Types parameters = types_until_end();
    in_lambda_ = outer;
    scope_ = outer_scope;
    expect("E");
    if (parameters.size() == 1 && parameters[0].left == "void") parameters.clear();
    found.text = fmt::format("{{lambda({})#{}}}", join(parameters), index() + 1);
  } else if (skip("cv")) {
    // The T_ of a conversion with template arguments are those, which are told after its type.
    bool outer_depends = std::exchange(depends_, false);
    found.text = "operator " + type().text();
    if (depends_ && peek() == 'I') fail();
    depends_ |= outer_depends;
    found.returns_nothing = true;
  } else if (skip("li")) {
    found.text = "operator\"\" " + source_name();
  } else if (std::string_view symbol = skip_code(OPERATORS); !symbol.empty()) {
    found.text = "operator" + std::string(symbol);
  } else {
    fail();
  }
  found.last = found.text;
  while (skip("B")) found.text += fmt::format("[abi:{}]", source_name());
  return found;
}

std::string Reader::source_name() {
  std::size_t length = number();
  if (failed_ || length == 0 || length > text_.size() - at_) {
    fail();
    return {};
  }
  std::string_view name = text_.substr(at_, length);
  at_ += length;
  bool anonymous = name.size() > 9 && name.starts_with("_GLOBAL_") && name[9] == 'N';
  return std::string(anonymous ? "(anonymous namespace)" : name);
}

std::optional<std::string> demangle(std::string_view mangled) { return Reader(mangled).run(); }

}  // namespace cudabpf::itanium
