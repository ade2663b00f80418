#include "script.hpp"

#include <cstdio>
#include <cstdlib>

namespace workload {
namespace {

constexpr size_t kHostBytes = 16 << 20;

[[noreturn]] void refuse_text(const std::string& text, const std::string& why) {
  fprintf(stderr, "fake_calls: %s: %s\n", text.c_str(), why.c_str());
  exit(2);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<Statement> statements(bool in_block) {
    std::vector<Statement> all;
    Statement current;
    const auto end_statement = [&] {
      if (!current.tokens.empty()) all.push_back(std::move(current));
      current = {};
    };
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' || c == ';') {
        ++at_;
        end_statement();
      } else if (c == ' ' || c == '\t') {
        ++at_;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '{') {
        const size_t start = ++at_;
        current.block = statements(true);
        current.block_text = text_.substr(start, at_ - start - 1);
        end_statement();
      } else if (c == '}') {
        if (!in_block) refuse_text("}", "no block is open here");
        ++at_;
        end_statement();
        return all;
      } else {
        current.tokens.push_back(token());
      }
    }
    if (in_block) refuse_text("{", "this block is not closed");
    end_statement();
    return all;
  }

 private:
  // A word, or a quoted text, which keeps its opening quote so that it is recognised as one.
  std::string token() {
    const bool quoted = text_[at_] == '"';
    const size_t end = std::min(
        quoted ? text_.find('"', at_ + 1) : text_.find_first_of(" \t\n;{}", at_), text_.size());
    const std::string found(text_.substr(at_, end - at_));
    at_ = std::min(end + (quoted ? 1 : 0), text_.size());
    return found;
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string joined(const Statement& statement) {
  std::string text;
  for (const std::string& token : statement.tokens) text += (text.empty() ? "" : " ") + token;
  return text;
}

// A number with an optional K, M, G or T.
bool read_number(const std::string& token, Word* number) {
  char* end = nullptr;
  *number = strtoull(token.c_str(), &end, 0);
  if (end == token.c_str()) return false;
  const std::string_view units = "KMGT";
  const size_t unit = *end ? units.find(*end) : units.npos;
  if (unit != units.npos) {
    *number <<= 10 * (unit + 1);
    ++end;
  }
  return *end == '\0';
}

}  // namespace

std::vector<Statement> parse(std::string_view text) { return Parser(text).statements(false); }

void refuse(const Statement& statement, const std::string& why) {
  refuse_text(joined(statement), why);
}

Word Variables::value(const Statement& statement, const std::string& token) const {
  Word number = 0;
  if (read_number(token, &number)) return number;
  if (token == "host") {  // memory for a copy to come from or go to
    static void* const memory = aligned_alloc(4096, kHostBytes);
    return reinterpret_cast<Word>(memory);
  }
  const auto found = words_.find(token);
  if (found == words_.end())
    refuse(statement, "'" + token + "' is no number and no name made here");
  return found->second;
}

Word Arguments::word(size_t i) const { return variables_.value(statement_, text(i)); }

Word Arguments::any(size_t i) const {
  const std::string& token = statement_.tokens[i];
  if (token[0] == '"') return reinterpret_cast<Word>(text(i));
  if (token[0] == '@') return reinterpret_cast<Word>(variables_.slot(token.substr(1)));
  return word(i);
}

const char* Arguments::text(size_t i) const {
  if (!has(i)) refuse(statement_, "more arguments are needed");
  const std::string& token = statement_.tokens[i];
  return token.c_str() + (token[0] == '"' ? 1 : 0);
}

}  // namespace workload
