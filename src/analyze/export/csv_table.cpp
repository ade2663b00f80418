#include "analyze/export/csv_table.hpp"

#include <algorithm>

#include "analyze/export/line_details.hpp"
#include "util/page/page.hpp"

namespace cudabpf::analyze {

namespace {

// By the names of the trace's fields; times are in nanoseconds, and `name` of a loss is its reason.
constexpr std::string_view COLUMNS =
    "id,type,op,name,symbol,ts_ns,duration_ns,pid,tid,ret,error,state,parent,call,size,kind,ptr,"
    "dst,src,stream,async,kernel,grid,block,shared,handle,device,src_device,dst_device,control,"
    "class,"
    "group,status,ioctls,ioctl_ns,count,args\n";

bool is_row(LineKind kind) {
  return kind == LineKind::call || kind == LineKind::driver || kind == LineKind::interrupt ||
         kind == LineKind::gpu_error || kind == LineKind::lost;
}

}  // namespace

CsvTable::CsvTable(const Names& names, ByteStream& out) : names_(names), out_(out) {
  out_.text(COLUMNS);
}

void CsvTable::line(const Line& line) {
  if (!is_row(line.kind)) return;
  number(line, Field::id, line.id);
  name(line.type), next();
  name(line.op), next();
  name(line.kind == LineKind::lost ? line.reason : line.name), next();
  name(line.symbol), next();
  number(line, Field::ts, line.ts);
  number(line, Field::duration, line.duration);
  number(line, Field::pid, line.pid);
  number(line, Field::tid, line.tid);
  number(line, Field::ret, line.ret);
  name(line.error), next();
  text(state_of(line)), next();
  number(line, Field::parent, line.parent);
  number(line, Field::call, line.call);
  number(line, Field::size, line.size);
  name(line.memory), next();
  address(line, Field::ptr, line.ptr);
  address(line, Field::dst, line.dst);
  address(line, Field::src, line.src);
  address(line, Field::stream, line.stream);
  text(line.async ? "true" : ""), next();
  name(line.kernel), next();
  dimensions(line, Field::grid, line.grid);
  dimensions(line, Field::block, line.block);
  number(line, Field::shared, line.shared);
  address(line, Field::handle, line.handle);
  if (line.device)
    name(line.device), next();
  else
    number(line, Field::ordinal, line.ordinal);
  number(line, Field::src_device, line.src_device);
  number(line, Field::dst_device, line.dst_device);
  name(line.control), next();
  name(line.object_class), next();
  name(line.group), next();
  name(line.status), next();
  number(line, Field::ioctls, line.ioctls);
  number(line, Field::ioctls, line.ioctl_time);
  number(line, Field::count, line.count);
  text(line.args);
  out_.text("\n");
}

// Control characters would break lines in two, or reach a terminal: "?" stands for each.
void CsvTable::text(std::string_view text) {
  bool plain = std::all_of(text.begin(), text.end(),
                           [](char c) { return c >= ' ' && c < 0x7f && c != ',' && c != '"'; });
  if (plain) return out_.text(text);
  std::string clean = printable(std::string(text));
  char* at = out_.room(2 + 2 * clean.size());
  *at++ = '"';
  for (char c : clean) {
    if (c == '"') *at++ = '"';
    *at++ = c;
  }
  *at++ = '"';
  out_.wrote(at);
}

template <typename Integer>
void CsvTable::number(const Line& line, Field field, Integer value) {
  if (line.has(field)) out_.number(value);
  next();
}

void CsvTable::address(const Line& line, Field field, std::uint64_t value) {
  if (line.has(field)) {
    out_.text("0x");
    constexpr std::size_t DIGITS = 16;
    char* at = out_.room(DIGITS);
    out_.wrote(std::to_chars(at, at + DIGITS, value, 16).ptr);
  }
  next();
}

void CsvTable::dimensions(const Line& line, Field field,
                          const std::array<std::uint32_t, 3>& sizes) {
  if (line.has(field)) {
    for (std::size_t i = 0; i < sizes.size(); i++) {
      if (i) out_.text("x");
      out_.number(sizes[i]);
    }
  }
  next();
}

}  // namespace cudabpf::analyze
