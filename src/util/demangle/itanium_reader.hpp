// The reader behind itanium::demangle; names are in itanium.cpp, types in itanium_types.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudabpf::itanium {

constexpr std::size_t MAX_TEXT = 64u << 10;  // of one name or type
constexpr std::size_t MAX_MADE = 32u << 20;  // of all together, intermediate ones included
constexpr std::size_t MAX_TYPES = 20'000;
constexpr int MAX_DEPTH = 200;

// A code of the mangling and the text it stands for.
struct Code {
  std::string_view code, text;
};

// A type as text, split where a declarator goes: "int (*" ")(char)".
struct Type {
  enum Kind { plain, function, array, nothing };  // nothing: an empty pack

  std::string left = {}, right = {};
  Kind kind = plain;
  // What T_ stands for depends on where it is read. A type made from it is kept with the scope that
  // it belongs to, and with where its own text begins: elsewhere it is read again from there.
  int scope = 0;
  std::optional<std::size_t> begin = {};
  bool of_element = false;  // made for one element of a pack; another's would differ

  std::string text() const { return left + (kind == plain ? "" : " ") + right; }
  std::size_t size() const { return left.size() + right.size(); }
};

struct Name {
  std::string text = {};
  std::string last = {};         // its last part, without template arguments
  std::string qualifiers = {};   // " const" of a member function
  bool template_args = false;    // it ends with them, so a function's return type follows
  bool returns_nothing = false;  // a constructor, destructor or conversion has no return type
};

using Types = std::vector<Type>;

struct Argument {
  Types types = {};  // one, or one per element of a pack
  bool pack = false;
};

// A pack expansion, which is read once for each element.
struct Pack {
  std::size_t element = 0, size = 0;
  bool used = false;  // the size is known
};

std::string join(const Types& types);  // with commas

// Reads the name from left to right and builds text as it goes. Any error sets failed_, after which
// nothing more is read.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<std::string> run();

 private:
  char peek(std::size_t ahead = 0) const {
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
  bool is_structor() const {  // a constructor or destructor comes
    return peek() == 'C' || (peek() == 'D' && peek(1) >= '0' && peek(1) <= '5');
  }
  std::string_view skip_code(std::span<const Code> codes);
  std::size_t number();
  std::size_t index(bool base_36 = false);  // "_" is 0, "0_" is 1, "1_" is 2 and so on
  std::string clone();                      // ".constprop.0", ".cold"

  // For S_, S0_ and so on to refer to.
  void keep(Type type) {
    type.scope = depends_ ? scope_ : 0;
    charge(type.size());
    if (!failed_ && !again_) kept_.push_back(std::move(type));
  }
  void keep(const Name& name) { keep(Type{name.text}); }
  // Everything is made of types and names, so bounding these bounds it all.
  void charge(std::size_t size) {
    made_bytes_ += size;
    if (size > MAX_TEXT || made_bytes_ > MAX_MADE) fail();
  }

  // A function with its parameters, or a variable. A mere scope has no return type.
  std::string encoding(bool is_scope = false);
  Types types_until_end();

  // `of_function`: its template arguments are what T_ in the function's type stands for.
  Name name(bool of_function);
  Name nested_name(bool of_function);
  Name local_name(bool of_function);
  void skip_discriminator();
  Name unqualified_name(std::string_view scope);
  std::string source_name();
  void add_template_args(Name& name, bool of_function);
  Argument template_argument();

  // "Li4E" is 4, "Lm1E" 1ul, "LN2ns4EnumE2E" (ns::Enum)2. Kernels are never given functions.
  Type literal();

  // If T_ is a pack, it stands for the current element of the enclosing expansion.
  Type template_parameter(std::size_t which);

  // Reads the pattern once for each element, and once if there is none.
  Type pack_expansion();
  Type substitution();
  Type read_again(std::size_t begin);
  std::string read_qualifiers();
  Type type();
  Type plain_type();
  Type type_after_d();  // Dp and Dv: expansions and vectors
  Type named_type(std::string text);
  Type qualified_type();

  // A pointer or reference to a type: "int*", "int (*)(char)", "int (&) [4]".
  static Type declared(std::string_view symbol, Type to);
  Type function_type();
  Type array_type();
  Type member_pointer();

  // Bounds the recursion: every function that others recurse through has one on its stack.
  class Nesting {
   public:
    explicit Nesting(Reader& reader) : reader_(reader) {
      if (++reader_.depth_ > MAX_DEPTH) reader_.fail();
    }
    ~Nesting() { reader_.depth_--; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Reader& reader_;
  };

  std::string_view text_;
  std::size_t at_ = 0;
  bool failed_ = false;
  int depth_ = 0;
  std::size_t types_ = 0, made_bytes_ = 0;
  Types kept_;                       // what S_, S0_, S1_... refer to
  std::vector<Argument> arguments_;  // what T_, T0_... refer to
  int scope_ = 1, scopes_ = 1;       // the scope of these arguments; how many there have been
  bool depends_ = false;             // T_ is part of the type being read
  bool again_ = false;               // what is read is kept already
  Pack* pack_ = nullptr;             // the pack expansion being read
  bool in_lambda_ = false;           // reading a lambda's parameters, whose T_ is an "auto"
};

}  // namespace cudabpf::itanium
