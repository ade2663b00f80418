// The little language of fake_calls: one driver call per statement. README.md lists the statements.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "driver.hpp"

namespace workload {

using Word = uint64_t;

struct Statement {
  std::vector<std::string> tokens;
  std::vector<Statement> block;  // what is in { } after them
  std::string block_text;
};

// Ends the process with status 2 and a message if the script cannot be read.
std::vector<Statement> parse(std::string_view text);
[[noreturn]] void refuse(const Statement& statement, const std::string& why);

// The names that a script has given to pointers and handles. Each thread and process has its own
// copy.
class Variables {
 public:
  Word value(const Statement& statement, const std::string& token) const;  // a number or a name
  Word* slot(const std::string& name) { return &words_[name]; }

 private:
  std::map<std::string, Word> words_;
};

// One driver call's arguments, as the script gives them: token 0 is the statement's name.
class Arguments {
 public:
  Arguments(const Statement& statement, Variables& variables)
      : statement_(statement), variables_(variables) {}

  Word word(size_t i) const;
  Word word_or(size_t i, Word otherwise) const { return has(i) ? word(i) : otherwise; }
  Handle handle(size_t i) const { return reinterpret_cast<Handle>(word(i)); }
  Handle stream(size_t i) const { return reinterpret_cast<Handle>(word_or(i, 0)); }
  const char* text(size_t i) const;
  bool has(size_t i) const { return i < statement_.tokens.size(); }
  size_t count() const { return statement_.tokens.size() - 1; }
  const Statement& statement() const { return statement_; }

  // A number, a name, a "text" (its address) or @name (the address of that name's value).
  Word any(size_t i) const;

  Word* named(const std::string& name) const { return variables_.slot(name); }
  // Where a call writes the value of the name at i.
  DevicePtr* out(size_t i) const { return variables_.slot(text(i)); }
  Handle* out_handle(size_t i) const { return reinterpret_cast<Handle*>(out(i)); }

 private:
  const Statement& statement_;
  Variables& variables_;
};

// Makes the call that the statement names; false if no call has that name.
bool make_call(const Driver& driver, const Arguments& arguments, Status* status);

}  // namespace workload
