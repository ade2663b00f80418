#include "trace/write/stack_lines.hpp"

#include "util/text/json_writer.hpp"

namespace cudabpf {

std::string stack_line(const PythonStack& stack, std::uint64_t ts) {
  json::Writer out;
  out.text("type", "stack");
  out.number("ts", ts);
  out.number("stack", stack.number);
  out.begin_list("frames");
  for (const PythonFrame& frame : stack.frames) {
    json::Writer one;
    one.text("function", frame.function->name);
    one.text("file", frame.function->file);
    frame.line ? one.number("line", frame.line) : one.null("line");
    out.element(std::move(one).object());
  }
  out.end_list();
  out.flag("cut", stack.cut);
  out.flag("text_cut", stack.text_cut);
  return std::move(out).line();
}

std::string python_line(const PythonFound& found) {
  json::Writer out;
  out.text("type", "python");
  out.number("ts", found.ts);
  out.number("pid", found.pid);
  found.why_not.empty() ? out.text("version", found.version) : out.text("why", found.why_not);
  return std::move(out).line();
}

}  // namespace cudabpf
