#include "trace/read/line_parser.hpp"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "trace/read/line_keys.hpp"
#include "trace/read/line_scan.hpp"
#include "util/text/json_text.hpp"
#include "util/whole_number.hpp"

namespace cudabpf::analyze {

namespace ondemand = simdjson::ondemand;

struct LineParser::Json {
  ondemand::parser parser;
};

namespace {

static_assert(LineParser::PADDING >= simdjson::SIMDJSON_PADDING);

using Value = ondemand::value;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

std::string_view token_of(Value& value) { return trimmed(value.raw_json_token()); }

std::string_view inside_quotes(std::string_view token) {
  bool quoted = token.size() >= 2 && token.front() == '"' && token.back() == '"';
  return quoted ? token.substr(1, token.size() - 2) : token.substr(0, 0);
}

// The frequent kinds. A line of any other kind is parsed again if more of it is needed.
bool is_event(LineKind kind) {
  return is_of_thread(kind) || is_of_gpu(kind) || kind == LineKind::interrupt;
}

bool is_nothing(Value& value) { return token_of(value) == "null"; }

// How line_fields.def says that a number is read.
namespace read {

template <typename Number>
bool whole(Value& value, Number& number) {
  return read_number(token_of(value), number);
}

bool nanoseconds(Value& value, std::uint64_t& ns) { return whole(value, ns); }

// Microseconds with three decimals are nanoseconds: no floating point comes between.
bool microseconds(Value& value, std::uint64_t& ns) {
  std::string_view token = token_of(value);
  std::size_t point = token.find('.');
  std::uint64_t whole = 0, part = 0;
  if (point != std::string_view::npos && token.size() == point + 4 &&
      read_number(token.substr(0, point), whole) && read_number(token.substr(point + 1), part) &&
      whole < std::numeric_limits<std::uint64_t>::max() / 2000) {
    ns = whole * 1000 + part;
    return true;
  }
  double other = 0;  // written by another program
  if (value.get_double().get(other) || !(other >= 0) || other > 9e15) return false;
  ns = static_cast<std::uint64_t>(std::llround(other * 1000));
  return true;
}

// An address is a hexadecimal string; a plain number is accepted, too.
bool address(Value& value, std::uint64_t& number) {
  std::string_view token = token_of(value);
  if (token.size() > 4 && token.starts_with("\"0x") && token.back() == '"')
    return read_number(token.substr(3, token.size() - 4), number, 16);
  return whole(value, number);
}

bool dimensions(Value& value, Dimensions& to) {
  ondemand::array array;
  if (value.get_array().get(array)) return false;
  std::size_t count = 0;
  for (auto element : array) {
    std::uint64_t number = 0;
    if (count == 3 || element.get_uint64().get(number) ||
        number > std::numeric_limits<std::uint32_t>::max())
      return false;
    to[count++] = static_cast<std::uint32_t>(number);
  }
  return count == 3;
}

}  // namespace read

void reset(Line& line, std::string_view text) {
  std::uint64_t number = line.number;
  line = {};
  line.number = number;
  line.text = text;
}

// A kernel's name and a command line may be longer than any other.
constexpr std::size_t longest_of(std::string_view key) {
  return key == "kernel" || key == "cmdline" ? Names::LONGEST : LineParser::MAX_NAME;
}

}  // namespace

LineParser::LineParser() : json_(std::make_unique<Json>()) {
  words_ = {names_.add("trace"),   names_.add("end"),       names_.add("process"),
            names_.add("library"), names_.add("lost"),      names_.add("error"),
            names_.add("kernel"),  names_.add("interrupt"), names_.add("content"),
            names_.add("gpu"),     names_.add("sample"),    names_.add("copy"),
            names_.add("set"),     names_.add("graph"),     names_.add("times"),
            names_.add("window"),  names_.add("comm"),      names_.add("range"),
            names_.add("name"),    names_.add("stack"),     names_.add("python")};
}
LineParser::~LineParser() = default;

bool LineParser::scan(std::string_view text, Line& line, LinePatterns& patterns) const {
  auto known = [&](std::string_view key, std::string_view raw, Name& to) {
    if (raw.size() > longest_of(key)) return false;
    to = recent_.find(raw, names_);
    return static_cast<bool>(to);
  };
  return LineScan(text, line, patterns, known).object() && finish(line) &&
         line.kind != LineKind::header && line.kind != LineKind::end;
}

bool LineParser::read_any(std::string_view text, Line& line) {
  reset(line, text);
  ondemand::document document;
  ondemand::object object;
  if (json_->parser.iterate(text.data(), text.size(), text.size() + PADDING).get(document) ||
      document.get_object().get(object))
    return false;
  for (auto result : object) {
    if (result.error()) return false;
    // Not copied: reading what was just written in other sizes would cost a third of the time.
    ondemand::field& found = result.value_unsafe();
    Key key = key_named(key_at(found.key().raw(), text.data() + text.size()));
    if (!field(key, &found.value(), line)) return false;
  }
  // An error says that nothing follows the object.
  return document.current_location().error() != simdjson::SUCCESS && finish(line) &&
         read_ends_of_file(line);
}

bool LineParser::read_ends_of_file(Line& line) {
  if (line.kind == LineKind::header) {
    header_ = header_in(line.text);
    line.header = header_ ? &*header_ : nullptr;
    return header_.has_value();
  }
  if (line.kind != LineKind::end) return true;
  end_ = end_in(line.text);
  line.ending = end_ ? &*end_ : nullptr;
  return end_.has_value();
}

bool LineParser::finish(Line& line) const {
  line.kind = kind_of(line);
  drop_others_fields(line);
  if (line.kind == LineKind::call) {
    line.meaning = &meaning_of_call(line.type, line.op);
    line.work = line.meaning->work;
    if (line.library) line.api = api_of_key(names_.text(line.library));
  }
  if (!is_event(line.kind) && nests_too_deep(line.text)) return false;
  constexpr std::uint64_t LATEST = std::numeric_limits<std::int64_t>::max();
  return line.ts <= LATEST && line.duration <= LATEST - line.ts;  // end() does not wrap around
}

// A name that lines repeat is known by its raw text: it is neither unescaped nor wholly hashed.
bool LineParser::name(void* of, std::size_t longest, Name& to) {
  Value& value = *static_cast<Value*>(of);
  std::string_view raw = inside_quotes(token_of(value)), text;
  Name known = recent_.find(raw, names_);
  if (known && raw.size() <= longest) {
    to = known;
    return !value.get_raw_json_string().error();  // passed as if it had been read
  }
  if (value.get_string().get(text)) return is_nothing(value);
  to = text.size() <= longest ? names_.add(text) : Names::NOT_KEPT;
  if (text == raw && to != Names::NOT_KEPT)  // it has no escapes
    recent_.add(raw, to);
  return true;
}

bool LineParser::word(void* of, Name& to) {
  std::string_view token = token_of(*static_cast<Value*>(of));
  std::int64_t number = 0;
  if (!read_number(token, number)) return name(of, MAX_NAME, to);
  to = names_.add(token);
  return true;
}

// A field with a type that it should not have makes the line a bad one; null stands for nothing,
// and unknown fields are passed over.
bool LineParser::field(Key key, void* of, Line& line) {
  Value& value = *static_cast<Value*>(of);
  auto number = [&](auto read, Field present, auto& to) {
    if (!read(value, to)) return is_nothing(value);
    line.set(present);
    return true;
  };

  switch (key) {
#define NUMBER(name, member, type, how, shown)                             \
  case Key::member: {                                                      \
    auto read = [](Value& from, auto& to) { return read::how(from, to); }; \
    return number(read, Field::member, line.member);                       \
  }
#define NAME(key_, member, shown) \
  case Key::member:               \
    return name(of, longest_of(#key_), line.member);
#define WORD(key_, member, shown) \
  case Key::member:               \
    return word(of, line.member);
#define FLAG(key_, member, shown)            \
  case Key::member:                          \
    line.member = token_of(value) == "true"; \
    return true;
#include "trace/read/line_fields.def"
    case Key::args: {
      ondemand::object object;
      if (value.get_object().get(object)) return is_nothing(value);
      if (object.raw_json().get(line.args)) return false;
      line.args = trimmed(line.args);
      return line.args.ends_with('}');  // simdjson takes {9 for an object
    }
    case Key::unknown:
      break;
  }
  return true;
}

LineKind LineParser::kind_of(const Line& line) const {
  if (line.has(Field::id)) return line.type == Type::block ? LineKind::block : LineKind::call;
  if (line.type == words_.kernel)
    return line.op == words_.interrupt ? LineKind::interrupt : LineKind::driver;
  if (line.type == Type::graph && line.op == words_.content) return LineKind::graph;
  if (line.type == Type::collective && line.op == words_.comm) return LineKind::communicator;
  if (line.type == words_.range)
    return line.op == words_.name ? LineKind::range_name : LineKind::range;
  if (line.type == words_.stack) return LineKind::stack;
  if (line.type == words_.python) return LineKind::python;
  if (line.type == words_.trace) return LineKind::header;
  if (line.type == words_.end) return LineKind::end;
  if (line.type == words_.process) return LineKind::process;
  if (line.type == words_.library) return LineKind::library;
  if (line.type == words_.lost) return LineKind::lost;
  if (line.type == words_.error) return LineKind::gpu_error;
  if (line.type == words_.gpu) {
    if (line.op == words_.sample) return LineKind::gpu_sample;
    if (line.op == words_.times) return LineKind::gpu_times;
    if (line.op == words_.window) return LineKind::gpu_window;
    if (line.op == words_.copy && line.direction == Op::HtoH) return LineKind::host_copy;
    if (line.op == words_.kernel || line.op == words_.copy || line.op == words_.set ||
        line.op == words_.graph)
      return LineKind::gpu_operation;
  }
  return LineKind::other;
}

// Drops fields that lines of this kind do not have, as if they were unknown, so that no analysis
// has to check whether an interrupt has a process.
void LineParser::drop_others_fields(Line& line) {
  if (line.kind == LineKind::interrupt) {
    for (Field field : {Field::pid, Field::tid, Field::call}) line.unset(field);
    line.pid = line.tid = 0;
    line.call = 0;
  }
  bool has_op = is_event(line.kind) || line.kind == LineKind::process ||
                line.kind == LineKind::gpu_error || line.kind == LineKind::graph ||
                line.kind == LineKind::communicator || line.kind == LineKind::gpu_sample ||
                line.kind == LineKind::gpu_times || line.kind == LineKind::gpu_window ||
                line.kind == LineKind::range || line.kind == LineKind::range_name;
  if (!has_op) line.op = {};
}

}  // namespace cudabpf::analyze
