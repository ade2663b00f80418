#include "util/itanium.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

namespace cudabpf::itanium {

namespace {

constexpr size_t kMaxText = 64 * 1024;         // of one name or type
constexpr size_t kMaxKept = 16 * 1024 * 1024;  // of all that later parts may refer to
constexpr size_t kMaxTypes = 20'000;
constexpr int kMaxDepth = 200;

struct Code {
  std::string_view code, text;
};
// clang-format off
constexpr Code kBuiltins[] = {
    {"v", "void"},
    {"w", "wchar_t"},
    {"b", "bool"},
    {"c", "char"},
    {"a", "signed char"},
    {"h", "unsigned char"},
    {"s", "short"},
    {"t", "unsigned short"},
    {"i", "int"},
    {"j", "unsigned int"},
    {"l", "long"},
    {"m", "unsigned long"},
    {"x", "long long"},
    {"y", "unsigned long long"},
    {"n", "__int128"},
    {"o", "unsigned __int128"},
    {"f", "float"},
    {"d", "double"},
    {"e", "long double"},
    {"g", "__float128"},
    {"z", "..."},
    {"Da", "auto"},
    {"Dc", "decltype(auto)"},
    {"Dn", "decltype(nullptr)"},
    {"Di", "char32_t"},
    {"Ds", "char16_t"},
    {"Du", "char8_t"},
    {"Dh", "half"},
};
constexpr Code kOperators[] = {
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
constexpr Code kStandard[] = {
    {"Sa", "std::allocator"}, {"Sb", "std::basic_string"}, {"Ss", "std::string"},
    {"Si", "std::istream"},   {"So", "std::ostream"},      {"Sd", "std::iostream"},
};
// The types whose literals are written with a suffix alone; of others, the type stands before.
constexpr Code kSuffixes[] = {
    {"int", ""},         {"unsigned int", "u"},         {"long", "l"}, {"unsigned long", "ul"},
    {"long long", "ll"}, {"unsigned long long", "ull"},
};

// A type as text, with the place where a declarator goes: "int (*" ")(char)".
struct Type {
  enum Kind { plain, function, array, nothing };  // nothing: an empty pack

  std::string left = {}, right = {};
  Kind kind = plain;
  // What T_ stands for depends on where it is read. What was made with it is kept with the scope
  // that it belongs to; T_ itself also with its number, as it can be read anew.
  int scope = 0;
  std::optional<size_t> parameter = {};
  bool of_element = false;  // made for one element of a pack: not what it would be for another

  std::string text() const { return left + (kind == plain ? "" : " ") + right; }
  size_t size() const { return left.size() + right.size(); }
};

struct Name {
  std::string text = {};
  std::string last = {};         // its last part, without template arguments
  std::string qualifiers = {};   // " const" of a member function
  bool template_args = false;    // it ends with some, so a function's return type follows
  bool returns_nothing = false;  // a constructor, destructor or conversion has no return type
};

using Types = std::vector<Type>;

struct Argument {
  Types types = {};  // one, or as many as a pack has elements
  bool pack = false;
};

// A pack expansion, which is read once for each element.
struct Pack {
  size_t element = 0, size = 0;
  bool used = false;  // the size is known
};

std::string join(const Types& types) {
  std::string joined;
  for (const Type& type : types) {
    if (type.kind == Type::nothing) continue;
    if (!joined.empty()) joined += ", ";
    joined += type.text();
  }
  return joined;
}

// Reads the name from left to right and builds text as it goes. Whatever goes wrong sets failed_,
// after which nothing is read any more.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<std::string> run() {
    if (!skip("_Z")) return {};
    std::string name = encoding();
    while (peek() == '.') name += clone();
    if (failed_ || at_ != text_.size() || name.size() > kMaxText) return {};
    return name;
  }

 private:
  char peek(size_t ahead = 0) const {
    return !failed_ && at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool skip(std::string_view word) {
    if (failed_ || !text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void fail() { failed_ = true; }
  void expect(std::string_view word) {
    if (!skip(word)) fail();
  }
  std::string_view skip_code(std::span<const Code> codes) {
    for (const Code& code : codes) {
      if (skip(code.code)) return code.text;
    }
    return {};
  }
  size_t number() {
    size_t value = 0;
    if (peek() < '0' || peek() > '9') fail();
    while (peek() >= '0' && peek() <= '9' && value < text_.size()) {
      value = value * 10 + static_cast<size_t>(text_[at_++] - '0');
    }
    return value;
  }
  // "_" is 0, "0_" is 1, "1_" is 2 and so on.
  size_t index(bool base_36 = false) {
    if (skip("_")) return 0;
    size_t value = 0;
    for (; peek() != '_' && !failed_; at_++) {
      char c = peek();
      size_t digit = c >= '0' && c <= '9'              ? static_cast<size_t>(c - '0')
                     : c >= 'A' && c <= 'Z' && base_36 ? static_cast<size_t>(c - 'A' + 10)
                                                       : 99;
      if (digit == 99 || value > text_.size()) fail();
      value = value * (base_36 ? 36 : 10) + digit;
    }
    expect("_");
    return value + 1;
  }
  // ".constprop.0", ".cold"
  std::string clone() {
    size_t begin = at_++;
    while (peek() == '_' || (peek() >= 'a' && peek() <= 'z')) at_++;
    while (peek() == '.' && peek(1) >= '0' && peek(1) <= '9') {
      at_++;
      number();
    }
    if (at_ == begin + 1) fail();
    return fmt::format(" [clone {}]", text_.substr(begin, at_ - begin));
  }
  void keep(Type type) {
    type.scope = depends_ ? scope_ : 0;
    kept_bytes_ += type.size();
    if (type.size() > kMaxText || kept_bytes_ > kMaxKept) return fail();
    kept_.push_back(std::move(type));
  }
  void keep(const Name& name) { keep(Type{name.text}); }

  // A function with its parameters, or a variable. Without its return type where it is but the
  // scope of something local.
  std::string encoding(bool is_scope = false) {
    Nesting nesting(*this);
    Name function = name(true);
    if (failed_ || at_ == text_.size() || peek() == 'E' || peek() == '.') return function.text;
    Type result;
    bool has_result = function.template_args && !function.returns_nothing;
    if (has_result) result = type();
    Types parameters = types_until_end();
    if (parameters.empty()) fail();
    if (parameters.size() == 1 && parameters[0].left == "void") parameters.clear();
    std::string text =
        fmt::format("{}({}){}", function.text, join(parameters), function.qualifiers);
    if (!has_result || is_scope) return text;
    return result.left + (result.right.empty() ? " " : "") + text + result.right;
  }

  Types types_until_end() {
    Types types;
    while (!failed_ && at_ < text_.size() && peek() != 'E' && peek() != '.') {
      types.push_back(type());
    }
    return types;
  }

  // `of_function`: its template arguments are what T_ in the function's type stands for.
  Name name(bool of_function) {
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

  Name nested_name(bool of_function) {
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
          found.last = found.text.substr(0, found.text.find('<'));
          size_t scope = found.last.rfind("::");
          if (scope != found.last.npos) found.last.erase(0, scope + 2);
        }
        continue;  // what is referred to is kept already
      } else if (peek() == 'T') {
        at_++;
        found = {.text = template_parameter(index()).text()};
      } else {
        Name part = unqualified_name(found.last);
        if (!found.text.empty()) part.text = found.text + "::" + part.text;
        found = std::move(part);
      }
      if (found.text.size() > kMaxText) fail();
      if (peek() != 'E') keep(found);
    }
    if (found.text.empty()) fail();
    found.qualifiers = qualifiers;
    return found;
  }

  Name local_name(bool of_function) {
    // As part of a type, it is a world of its own: its T_ are its own function's.
    std::vector<Argument> outer_arguments = std::exchange(arguments_, {});
    int outer_scope = std::exchange(scope_, ++scopes_);
    bool outer_lambda = std::exchange(in_lambda_, false);
    Pack* outer_pack = std::exchange(pack_, nullptr);
    expect("Z");
    std::string scope = encoding(true);
    expect("E");
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
    in_lambda_ = outer_lambda;
    pack_ = outer_pack;
    return found;
  }

  void skip_discriminator() {
    if (!skip("_")) return;
    bool long_form = skip("_");
    number();
    if (long_form) expect("_");
  }

  Name unqualified_name(std::string_view scope) {
    skip("L");  // internal linkage
    Name found;
    if (peek() >= '0' && peek() <= '9') {
      found.text = source_name();
    } else if (peek() == 'C' || (peek() == 'D' && peek(1) >= '0' && peek(1) <= '5')) {
      found.text = (peek() == 'D' ? "~" : "") + std::string(scope);
      found.returns_nothing = true;
      at_ += 2;
      if (scope.empty()) fail();
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
      found.text = "operator " + type().text();
      found.returns_nothing = true;
    } else if (skip("li")) {
      found.text = "operator\"\" " + source_name();
    } else if (std::string_view symbol = skip_code(kOperators); !symbol.empty()) {
      found.text = "operator" + std::string(symbol);
    } else {
      fail();
    }
    found.last = found.text;
    while (skip("B")) found.text += fmt::format("[abi:{}]", source_name());
    return found;
  }

  std::string source_name() {
    size_t length = number();
    if (failed_ || length == 0 || length > text_.size() - at_) {
      fail();
      return {};
    }
    std::string_view name = text_.substr(at_, length);
    at_ += length;
    bool anonymous = name.size() > 9 && name.starts_with("_GLOBAL_") && name[9] == 'N';
    return std::string(anonymous ? "(anonymous namespace)" : name);
  }

  void add_template_args(Name& name, bool of_function) {
    // In a function's own arguments, T_ would refer to what is only being read.
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

  Argument template_argument() {
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

  // "Li4E" is 4, "Lm1E" 1ul, "LN2ns4EnumE2E" (ns::Enum)2. Functions are what no kernel is given.
  Type literal() {
    expect("L");
    if (peek() == '_' || peek() == 'Z') fail();
    std::string of = type().text();
    std::string value = skip("n") ? "-" : "";
    size_t begin = at_;
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
    for (const Code& suffix : kSuffixes) {
      if (of == suffix.code) return {value.append(suffix.text)};
    }
    bool real = of == "float" || of == "double" || of == "long double" || of == "__float128";
    return {real ? fmt::format("({})[{}]", of, value) : fmt::format("({}){}", of, value)};
  }

  // T_ of a pack stands for the element that the expansion around it is at.
  Type template_parameter(size_t which) {
    Type made = {.parameter = which};
    depends_ = true;
    if (in_lambda_) {
      made.left = fmt::format("auto:{}", which + 1);
    } else if (which >= arguments_.size()) {
      fail();
    } else if (const Argument& argument = arguments_[which]; !argument.pack) {
      made = argument.types[0];
      made.parameter = which;
    } else if (!pack_ || (pack_->used && pack_->size != argument.types.size())) {
      fail();
    } else {
      pack_->used = true;
      pack_->size = argument.types.size();
      if (pack_->size == 0) return {.kind = Type::nothing};
      made = argument.types[pack_->element];
    }
    return made;
  }

  // The pattern is read once for each element, and once if there is none.
  Type pack_expansion() {
    Pack pack;
    Pack* outer = std::exchange(pack_, &pack);
    size_t begin = at_, kept = kept_.size();
    Types elements;
    do {
      at_ = begin;
      kept_.resize(kept);
      Type element = type();
      if (!pack.used) fail();
      if (pack.size > 0) elements.push_back(std::move(element));
    } while (!failed_ && ++pack.element < pack.size);
    pack_ = outer;
    for (size_t i = kept; i < kept_.size(); i++) kept_[i].of_element = true;
    return {.left = join(elements), .kind = elements.empty() ? Type::nothing : Type::plain};
  }

  Type substitution() {
    if (std::string_view standard = skip_code(kStandard); !standard.empty()) {
      return {std::string(standard)};
    }
    expect("S");
    size_t which = index(true);
    // What was kept of one element of a pack would be wrong for another.
    if (failed_ || which >= kept_.size() || kept_[which].of_element) {
      fail();
      return {};
    }
    Type found = kept_[which];
    if (found.scope == 0) return found;
    depends_ = true;
    if (found.scope == scope_) return found;
    if (!found.parameter) fail();
    return found.parameter ? template_parameter(*found.parameter) : Type{};
  }

  std::string read_qualifiers() {
    std::string qualifiers;
    for (bool more = true; more;) {
      more = true;
      if (skip("r")) {
        qualifiers = " restrict" + qualifiers;
      } else if (skip("V")) {
        qualifiers = " volatile" + qualifiers;
      } else if (skip("K")) {
        qualifiers = " const" + qualifiers;
      } else {
        more = false;
      }
    }
    return qualifiers;
  }

  Type type() {
    Nesting nesting(*this);
    if (++types_ > kMaxTypes) fail();
    if (failed_) return {};
    bool outer_depends = std::exchange(depends_, false);
    Type made = plain_type();
    depends_ |= outer_depends;
    return made;
  }

  Type plain_type() {
    if (std::string_view builtin = skip_code(kBuiltins); !builtin.empty()) {
      return {std::string(builtin)};
    }
    Type made;
    bool parameter = peek() == 'T';
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
        if (skip("Dp")) {
          made = pack_expansion();
        } else if (skip("Dv")) {
          size_t lanes = number();
          expect("_");
          made = type();
          made.left += fmt::format(" __vector({})", lanes);
        } else {
          fail();
        }
        break;
      default:
        made = {name(false).text};
        break;
    }
    if (!parameter) made.parameter.reset();  // it is made from one, but is none
    keep(made);
    return made;
  }

  Type named_type(std::string text) {
    Name found{.text = std::move(text)};
    add_template_args(found, false);
    return {found.text};
  }

  Type qualified_type() {
    std::string qualifiers = read_qualifiers();
    bool of_function = peek() == 'F';
    Type made = of_function ? function_type() : type();
    if (made.kind == Type::nothing) return made;
    // A member function's qualifiers stand behind its parameters.
    std::string& where = of_function ? made.right : made.left;
    if (!where.ends_with(qualifiers)) where += qualifiers;  // T_ may be const already
    return made;
  }

  // A pointer or reference to a type: "int*", "int (*)(char)", "int (&) [4]".
  static Type declared(std::string_view symbol, Type to) {
    if (to.kind == Type::nothing) return to;
    if (to.kind != Type::plain) {
      std::string_view gap = to.kind == Type::array ? " " : "";
      return {to.left + " (" + std::string(symbol), fmt::format("){}{}", gap, to.right)};
    }
    // A reference to a reference is the one or the other: with "&" in either, it is "&".
    if (symbol.starts_with('&') && to.left.ends_with('&')) {
      if (symbol == "&" && to.left.ends_with("&&")) to.left.pop_back();
      return to;
    }
    to.left += symbol;
    return to;
  }

  Type function_type() {
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

  Type array_type() {
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

  Type member_pointer() {
    expect("M");
    std::string scope = type().text();
    Type member = type();
    if (member.kind == Type::plain) return {member.left + " " + scope + "::*", member.right};
    return declared(scope + "::*", std::move(member));
  }

  class Nesting {
   public:
    explicit Nesting(Reader& reader) : reader_(reader) {
      if (++reader_.depth_ > kMaxDepth) reader_.fail();
    }
    ~Nesting() { reader_.depth_--; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Reader& reader_;
  };

  std::string_view text_;
  size_t at_ = 0;
  bool failed_ = false;
  int depth_ = 0;
  size_t types_ = 0;
  Types kept_;  // what S_, S0_, S1_... refer to
  size_t kept_bytes_ = 0;
  std::vector<Argument> arguments_;  // what T_, T0_... refer to
  int scope_ = 1, scopes_ = 1;       // which arguments these are; how many there have been
  bool depends_ = false;             // T_ is part of the type being read
  Pack* pack_ = nullptr;             // the pack expansion being read
  bool in_lambda_ = false;           // reading its parameters, whose T_ is an "auto"
};

}  // namespace

std::optional<std::string> demangle(std::string_view mangled) { return Reader(mangled).run(); }

}  // namespace cudabpf::itanium
