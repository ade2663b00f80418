// What may stand at the cursor of a command line. It is read from the parser, so that completion
// has every subcommand, option and value that the program has, and no other.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "analyze/diff/measure.hpp"
#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/flags/recorder_flags.hpp"
#include "collect/bpf/features.hpp"
#include "util/system/procfs.hpp"
#include "util/text/printable.hpp"

namespace cudabpf::cli {

namespace {

constexpr std::string_view COMPLETE = "__complete";
constexpr std::size_t SHOWN_OF_PROCESS = 200;  // columns of its command line

struct Word {
  std::string text, description;
};
using Words = std::vector<Word>;

struct Offer {
  // words: those that follow. Anything else the shell knows better: files, folders, traces (files,
  // most likely *.jsonl or *.jsonl.zst), users, command (another program with its own arguments).
  std::string_view kind = "words";
  // So many characters of the word at the cursor stay as they are; of a command: the number of its
  // first word, counted from "cudabpf".
  std::size_t at = 0;
  std::string what = {};  // as --help calls it
  Words words = {};
};

Words all_of(const std::vector<std::string>& texts) {
  Words words;
  for (const std::string& text : texts) words.push_back({text, {}});
  return words;
}

// What comes first, on one line: up to the first full stop, semicolon or colon outside of brackets.
std::string in_short(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); i++) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    bool ends = text[i] == '.' || text[i] == ';' || text[i] == ':';
    if (ends && depth == 0 && (i + 1 == text.size() || text[i + 1] == ' '))
      return text.substr(0, i);
  }
  return text;
}

Words subcommands_of(const CLI::App& app) {
  Words words;
  for (const CLI::App* sub : app.get_subcommands({}))
    words.push_back({sub->get_name(), in_short(sub->get_description())});
  return words;
}

// Processes that run, with what they run; threads of the kernel have no arguments.
Words processes() {
  Words words;
  Procfs procfs;
  for (pid_t pid : procfs.pids())
    if (std::string runs = procfs.process(pid).cmdline(); !runs.empty() && pid != ::getpid())
      words.push_back({std::to_string(pid), shortened(printable(runs), SHOWN_OF_PROCESS)});
  return words;
}

Words programs() {
  std::set<std::string> names;
  Procfs procfs;
  for (pid_t pid : procfs.pids())
    if (auto process = procfs.process(pid); !process.args.empty() && pid != ::getpid())
      if (printable(process.comm) == process.comm) names.insert(process.comm);
  return all_of({names.begin(), names.end()});
}

// What can be given for a TYPE, as --help calls it. Words in small letters, as in
// light|default|full, are themselves what can be given.
struct Type {
  std::string_view kind;
  Words (*words)() = nullptr;
};
const std::map<std::string, Type, std::less<>> TYPES = {
    {"A B", {"traces"}},
    {"ADDRESS", {"words"}},
    {"B", {"traces"}},
    {"CMD", {"command"}},
    {"CONDITION",
     {"words", [] { return all_of(analyze::measure_names()); }}},  // it begins with one
    {"DIR", {"folders"}},
    {"FEATURE", {"words", [] { return all_of(feature_names()); }}},
    {"FILE", {"files"}},
    {"HOST", {"words"}},
    {"ID|CGROUP", {"folders"}},  // below /sys/fs/cgroup
    {"MS", {"words"}},
    {"N", {"words"}},
    {"NAME", {"words"}},
    {"N|TIME", {"words"}},
    {"PATH", {"files"}},
    {"PATTERN", {"words"}},
    {"PHASE", {"words"}},
    {"PID", {"words", processes}},
    {"PROGRAM", {"words", programs}},
    {"SIZE", {"words"}},
    {"SUBCOMMAND", {"words"}},
    {"TID", {"words"}},
    {"TIME", {"words"}},
    {"TIME/TIME", {"words"}},
    {"TRACE", {"traces"}},
    {"TRIGGER", {"words", [] { return all_of(trigger_words()); }}},
    {"URL", {"words"}},
    {"USER", {"users"}},
    {"graphs|TIME/TIME", {"words", [] { return all_of({"graphs"}); }}},
};

const Type* type_of(const CLI::Option& option) {
  const std::string& name = option.get_type_name();
  if (std::none_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
    return nullptr;
  auto type = TYPES.find(name);
  if (type == TYPES.end()) throw std::logic_error("completion does not know what " + name + " is");
  return &type->second;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }
bool takes_several(const CLI::Option& option) {
  return option.get_items_expected_max() > 1 && option.get_allow_extra_args();
}

const CLI::Option* argument_of(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) return option;
  return nullptr;
}

bool is_of_kind(const CLI::Option* argument, std::string_view kind) {
  const Type* type = argument ? type_of(*argument) : nullptr;
  return type && type->kind == kind;
}

// A command line, word by word.
class TypedLine {
 public:
  explicit TypedLine(const CLI::App& app)
      : app_(app), command_(&app), argument_(argument_of(app)) {}

  // A word before the cursor.
  void add(const std::string& word);
  Offer at_cursor(std::string word) const;

 private:
  const CLI::Option* option_of(const std::string& name) const {
    return command_ ? command_->get_option_no_throw(name) : nullptr;
  }
  bool is_option(const std::string& word) const {
    return !options_end_ && word.size() > 1 && word.front() == '-';
  }
  void add_option(const std::string& word);
  void add_argument(const std::string& word);
  Offer options() const;
  Offer argument(const std::string& typed) const;
  // `begin`: where in the word at the cursor the value begins.
  Offer values(const CLI::Option& option, const std::string& typed, std::size_t begin) const;

  const CLI::App& app_;
  const CLI::App* command_;  // null: there is none of that name
  const CLI::Option* argument_;
  const CLI::Option* before_ = nullptr;  // the word before is this option
  const CLI::Option* taking_ = nullptr;  // the next word is a value of this option
  std::set<const CLI::Option*> given_;
  std::size_t words_ = 1, arguments_ = 0;
  std::optional<std::size_t> other_;  // where another program's words begin
  bool options_end_ = false;
};

void TypedLine::add(const std::string& word) {
  std::size_t at = words_++;
  if (other_) return;
  const CLI::Option* before = std::exchange(before_, nullptr);
  if (word == "=") {  // bash makes three words of --option=value
    taking_ = before;
  } else if (word == "--" && !options_end_) {
    options_end_ = true;
    taking_ = nullptr;
  } else if (is_option(word)) {
    add_option(word);
  } else if (taking_) {
    if (!takes_several(*taking_)) taking_ = nullptr;
  } else if (!before || !is_value_of(before->get_name(), word)) {
    if (is_of_kind(argument_, "command")) other_ = at;
    add_argument(word);
  }
}

void TypedLine::add_option(const std::string& word) {
  std::size_t equals = word.find('=');
  before_ = option_of(word.substr(0, equals));
  taking_ = before_ && takes_value(*before_) && equals == std::string::npos ? before_ : nullptr;
  given_.insert(before_);
}

void TypedLine::add_argument(const std::string& word) {
  if (command_ != &app_) {
    arguments_++;
    return;
  }
  command_ = nullptr;
  for (const CLI::App* sub : app_.get_subcommands({}))
    if (sub->get_name() == word) command_ = sub;
  argument_ = command_ ? argument_of(*command_) : nullptr;
}

Offer TypedLine::at_cursor(std::string word) const {
  if (other_) return {.kind = "command", .at = *other_};
  const CLI::Option* taking = taking_;
  if (word == "=") {
    taking = before_;
    word.clear();
  }
  if (is_option(word)) {
    std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      const CLI::Option* option = option_of(word.substr(0, equals));
      return option ? values(*option, word, equals + 1) : Offer();
    }
  }
  bool own = !options_end_ && (!taking || takes_several(*taking));
  if (own && word.starts_with("-")) return options();
  if (taking) return values(*taking, word, 0);
  if (command_ == &app_) return {.what = "subcommand", .words = subcommands_of(app_)};
  Offer offer = argument(word);
  bool nothing = offer.kind == "words" && offer.words.empty();
  return nothing && own && word.empty() ? options() : offer;
}

Offer TypedLine::options() const {
  if (!command_) return {};
  Offer offer{.what = "option"};
  for (const CLI::Option* option : command_->get_options()) {
    bool again = option->get_items_expected_max() > 1;
    if (option->get_positional() || (given_.count(option) && !again)) continue;
    std::string description = in_short(option->get_description());
    for (const std::string& name : option->get_lnames())
      offer.words.push_back({"--" + name, description});
    for (const std::string& name : option->get_snames())
      offer.words.push_back({"-" + name, description});
  }
  return offer;
}

Offer TypedLine::argument(const std::string& typed) const {
  if (!argument_ || (arguments_ > 0 && !takes_several(*argument_))) return {};
  return values(*argument_, typed, 0);
}

Offer TypedLine::values(const CLI::Option& option, const std::string& typed,
                        std::size_t begin) const {
  Offer offer{.at = begin, .what = option.get_type_name()};
  const Type* type = type_of(option);
  if (!type) {
    offer.words = all_of(CLI::detail::split(offer.what, '|'));
    return offer;
  }
  offer.kind = type->kind;
  if (type->kind == "command") offer.at = words_;
  // The processes of a trace need not run now, and may have run elsewhere.
  bool is_past = offer.what == "PID" && is_of_kind(argument_, "traces");
  if (type->words && !is_past) offer.words = type->words();
  if (offer.what == "SUBCOMMAND") offer.words = subcommands_of(app_);
  if (offer.what == "ID|CGROUP" && typed.find('/', begin) != begin) {
    offer.kind = "words";
    if (typed.size() == begin) offer.words = {{"/sys/fs/cgroup/", {}}};
  }
  std::size_t comma =
      option.get_delimiter() ? typed.rfind(option.get_delimiter()) : std::string::npos;
  if (comma != std::string::npos) offer.at = std::max(begin, comma + 1);
  return offer;
}

}  // namespace

bool is_completion(int argc, const char* const* argv) { return argc > 1 && argv[1] == COMPLETE; }

void complete(const CLI::App& app, int argc, const char* const* argv) {
  TypedLine line(app);
  for (int i = 2; i + 1 < argc; i++) line.add(argv[i]);
  Offer offer = line.at_cursor(argc > 2 ? argv[argc - 1] : "");
  fmt::print("{} {} {}\n", offer.kind, offer.at, offer.what);
  for (const Word& word : offer.words)
    fmt::print("{}{}{}\n", word.text, word.description.empty() ? "" : "\t", word.description);
}

}  // namespace cudabpf::cli
