#include "analyze/trace/line_parser.hpp"

#include <simdjson.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "analyze/trace/json_text.hpp"

namespace cudabpf::analyze {

namespace ondemand = simdjson::ondemand;

struct LineParser::Json {
  ondemand::parser parser;
};

namespace {

static_assert(LineParser::PADDING >= simdjson::SIMDJSON_PADDING);

using Value = ondemand::value;

// A key's first eight bytes as a number, which a switch can tell apart.
constexpr std::uint64_t packed(std::string_view key) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < key.size() && i < 8; i++)
    bytes |= std::uint64_t{static_cast<unsigned char>(key[i])} << (8 * i);
  return bytes;
}

// What stands before the next quote: keys with escapes are none of ours. Eight bytes can be read
// everywhere, for a line has PADDING behind it.
std::string_view key_at(const char* raw, const char* end) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, raw, sizeof(bytes));
  std::uint64_t others = bytes ^ 0x2222222222222222;  // a quote is a zero byte
  std::uint64_t quotes = (others - 0x0101010101010101) & ~others & 0x8080808080808080;
  if (quotes) return {raw, static_cast<std::size_t>(std::countr_zero(quotes)) / 8};
  std::string_view rest(raw, static_cast<std::size_t>(end - raw));
  return rest.substr(0, rest.find('"'));
}

// packed(), in a few instructions.
static_assert(std::endian::native == std::endian::little);
std::uint64_t packed_at(std::string_view key) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, key.data(), sizeof(bytes));
  return key.size() < 8 ? bytes & ((std::uint64_t{1} << 8 * key.size()) - 1) : bytes;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

std::string_view token_of(Value& value) { return trimmed(value.raw_json_token()); }

std::string_view inside_quotes(std::string_view token) {
  bool quoted = token.size() >= 2 && token.front() == '"' && token.back() == '"';
  return quoted ? token.substr(1, token.size() - 2) : token.substr(0, 0);
}

// A hash of a few of its bytes: names often begin, or end, alike. As for a key, there is more to
// read.
std::size_t slot_of(std::string_view raw) {
  std::uint64_t first = 0, middle = 0;
  std::memcpy(&first, raw.data(), sizeof(first));
  std::memcpy(&middle, raw.data() + raw.size() / 2, sizeof(middle));
  return (first * 0x9e3779b97f4a7c15 + middle * 0xff51afd7ed558ccd +
          raw.size() * 0xc2b2ae3d27d4eb4f) >>
         48;
}

// The many; of all others the text is read once more, by whoever wants what else is in it.
bool is_event(LineKind kind) {
  return kind == LineKind::call || kind == LineKind::driver || kind == LineKind::interrupt;
}

bool is_nothing(Value& value) { return token_of(value) == "null"; }

// All of the text is that number.
template <typename Number>
bool read_number(std::string_view text, Number& number, int base = 10) {
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return bad == std::errc() && end == text.data() + text.size();
}

constexpr auto WHOLE = [](Value& value, auto& number) {
  return read_number(token_of(value), number);
};

// Microseconds with three decimals are nanoseconds: no floating point comes between.
bool read_microseconds(Value& value, std::uint64_t& ns) {
  std::string_view token = token_of(value);
  std::size_t point = token.find('.');
  std::uint64_t whole = 0, part = 0;
  if (point != std::string_view::npos && token.size() == point + 4 &&
      read_number(token.substr(0, point), whole) && read_number(token.substr(point + 1), part) &&
      whole < std::numeric_limits<std::uint64_t>::max() / 2000) {
    ns = whole * 1000 + part;
    return true;
  }
  double other = 0;  // somebody else's writer
  if (value.get_double().get(other) || !(other >= 0) || other > 9e15) return false;
  ns = static_cast<std::uint64_t>(std::llround(other * 1000));
  return true;
}

// An address is a string in hexadecimal; a plain number is taken too.
bool address(Value& value, std::uint64_t& number) {
  std::string_view token = token_of(value);
  if (token.size() > 4 && token.starts_with("\"0x") && token.back() == '"')
    return read_number(token.substr(3, token.size() - 4), number, 16);
  return WHOLE(value, number);
}

// The end has a number of that name.
bool truth(Value& value, bool& flag) {
  flag = token_of(value) == "true";
  return true;
}

bool read_dimensions(Value& value, std::array<std::uint32_t, 3>& to) {
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

}  // namespace

LineParser::LineParser() : json_(std::make_unique<Json>()) {
  words_ = {names_.add("trace"),   names_.add("end"),      names_.add("process"),
            names_.add("library"), names_.add("lost"),     names_.add("error"),
            names_.add("kernel"),  names_.add("interrupt")};
}
LineParser::~LineParser() = default;
LineParser::LineParser(LineParser&&) noexcept = default;
LineParser& LineParser::operator=(LineParser&&) noexcept = default;

bool LineParser::parse(std::string_view text, Line& line) {
  std::uint64_t number = line.number;
  line = {};
  line.number = number;
  line.text = text;
  ondemand::document document;
  ondemand::object object;
  if (json_->parser.iterate(text.data(), text.size(), text.size() + PADDING).get(document) ||
      document.get_object().get(object))
    return false;
  for (auto result : object) {
    if (result.error()) return false;
    // Not copied: copies of what was written just now in other sizes cost a third of the time.
    ondemand::field& found = result.value_unsafe();
    if (!field(key_at(found.key().raw(), text.data() + text.size()), &found.value(), line))
      return false;
  }
  if (!document.current_location().error()) return false;  // something comes after it
  line.kind = kind_of(line);
  drop_others_fields(line);
  if (!is_event(line.kind) && nests_too_deep(text)) return false;
  constexpr std::uint64_t LATEST = std::numeric_limits<std::int64_t>::max();
  return line.ts <= LATEST && line.duration <= LATEST - line.ts;  // end() does not wrap around
}

// A field of a type that it should not have makes the line a bad one; null stands for nothing, and
// fields that are not known are passed over.
bool LineParser::field(std::string_view key, void* of, Line& line) {
  Value& value = *static_cast<Value*>(of);
  auto name = [&](Name& to, std::size_t longest) {
    // What lines repeat is known by its raw text: neither unescaped nor hashed as a whole.
    std::string_view raw = inside_quotes(token_of(value)), text;
    Name& recent = recent_[slot_of(raw) % recent_.size()];
    if (!raw.empty() && raw.size() <= longest && names_.text(recent) == raw) {
      to = recent;
      return !value.get_raw_json_string().error();  // passed as if it had been read
    }
    if (value.get_string().get(text)) return is_nothing(value);
    to = text.size() <= longest ? names_.add(text) : Names::NOT_KEPT;
    if (text == raw && to != Names::NOT_KEPT) recent = to;  // it has no escapes
    return true;
  };
  auto as = [&](std::string_view wanted, Field present, auto read, auto& to) {
    if (key != wanted) return true;
    if (!read(value, to)) return is_nothing(value);
    line.set(present);
    return true;
  };
  auto flag = [&](std::string_view wanted, bool& to) { return key != wanted || truth(value, to); };
  auto text_of = [&](std::string_view wanted, Name& to, std::size_t longest = LONGEST_NAME) {
    return key != wanted || name(to, longest);
  };

  switch (packed_at(key)) {
    case packed("id"):
      return as("id", Field::id, WHOLE, line.id);
    case packed("type"):
      return text_of("type", line.type);
    case packed("op"):
      return text_of("op", line.op);
    case packed("name"):
      return text_of("name", line.name);
    case packed("symbol"):
      return text_of("symbol", line.symbol);
    case packed("ts"):
      return as("ts", Field::ts, WHOLE, line.ts);
    case packed("duration_us"):
      return as("duration_us", Field::duration, read_microseconds, line.duration);
    case packed("pid"):
      return as("pid", Field::pid, WHOLE, line.pid);
    case packed("tid"):
      return as("tid", Field::tid, WHOLE, line.tid);
    case packed("ppid"):
      return as("ppid", Field::ppid, WHOLE, line.ppid);
    case packed("ret"):
      return as("ret", Field::ret, WHOLE, line.ret);
    case packed("error"):
      return text_of("error", line.error);
    case packed("parent"):
      return as("parent", Field::parent, WHOLE, line.parent);
    case packed("call"):
      return as("call", Field::call, WHOLE, line.call);
    case packed("size"):
      return as("size", Field::size, WHOLE, line.size);
    case packed("ptr"):
      return as("ptr", Field::ptr, address, line.ptr);
    case packed("kind"):
      return text_of("kind", line.memory);
    case packed("dst"):
      return as("dst", Field::dst, address, line.dst);
    case packed("src"):
      return as("src", Field::src, address, line.src);
    case packed("stream"):
      return as("stream", Field::stream, address, line.stream);
    case packed("async"):
      return flag("async", line.async);
    case packed("kernel"):
      return text_of("kernel", line.kernel, Names::LONGEST);
    case packed("kernel_from"):
      line.kernel_from_handle = key == "kernel_from";
      return true;
    case packed("grid"):
      return as("grid", Field::grid, read_dimensions, line.grid);
    case packed("block"):
      return as("block", Field::block, read_dimensions, line.block);
    case packed("shared"):
      return as("shared", Field::shared, WHOLE, line.shared);
    case packed("handle"):
      return as("handle", Field::handle, address, line.handle);
    case packed("device"):
      if (token_of(value).starts_with('"')) return text_of("device", line.device);
      return as("device", Field::ordinal, WHOLE, line.ordinal);
    case packed("src_device"):
      return as("src_device", Field::src_device, WHOLE, line.src_device);
    case packed("dst_device"):
      return as("dst_device", Field::dst_device, WHOLE, line.dst_device);
    case packed("ioctls"):
      return as("ioctls", Field::ioctls, WHOLE, line.ioctls);
    case packed("ioctl_us"):
      return read_microseconds(value, line.ioctl_time);
    case packed("control"):
      return text_of("control", line.control);
    case packed("class"):
      return text_of("class", line.object_class);
    case packed("group"):
      return text_of("group", line.group);
    case packed("status"):
      return text_of("status", line.status);
    case packed("comm"):
      return text_of("comm", line.comm);
    case packed("reason"):
      return text_of("reason", line.reason);
    case packed("severity"):
      return text_of("severity", line.severity);
    case packed("count"):
      return as("count", Field::count, WHOLE, line.count);
    case packed("xid"):
      return as("xid", Field::xid, WHOLE, line.xid);
    case packed("cpu"):
      return as("cpu", Field::cpu, WHOLE, line.cpu);
    case packed("unfinished"):
      return flag("unfinished", line.unfinished);
    case packed("return_lost"):
      return flag("return_lost", line.return_lost);
    case packed("entry_lost"):
      return flag("entry_lost", line.entry_lost);
    case packed("read_fault"):
      return flag("read_fault", line.read_fault);
    case packed("inferred"):
      return flag("inferred", line.inferred);
    case packed("args"): {
      ondemand::object object;
      if (key != "args") return true;
      if (value.get_object().get(object)) return is_nothing(value);
      if (object.raw_json().get(line.args)) return false;
      line.args = trimmed(line.args);
      return line.args.ends_with('}');  // of {9, simdjson takes {9 for an object
    }
    default:
      return true;
  }
}

LineKind LineParser::kind_of(const Line& line) const {
  if (line.has(Field::id)) return LineKind::call;
  if (line.type == words_.kernel)
    return line.op == words_.interrupt ? LineKind::interrupt : LineKind::driver;
  if (line.type == words_.trace) return LineKind::header;
  if (line.type == words_.end) return LineKind::end;
  if (line.type == words_.process) return LineKind::process;
  if (line.type == words_.library) return LineKind::library;
  if (line.type == words_.lost) return LineKind::lost;
  if (line.type == words_.error) return LineKind::gpu_error;
  return LineKind::other;
}

// A field that lines of this kind do not have is passed over, as one that is not known is: an
// analysis need not ask itself whether an interrupt has a process.
void LineParser::drop_others_fields(Line& line) {
  if (line.kind == LineKind::interrupt) {
    for (Field field : {Field::pid, Field::tid, Field::call}) line.unset(field);
    line.pid = line.tid = 0;
    line.call = 0;
  }
  bool has_op =
      is_event(line.kind) || line.kind == LineKind::process || line.kind == LineKind::gpu_error;
  if (!has_op) line.op = {};
}

}  // namespace cudabpf::analyze
