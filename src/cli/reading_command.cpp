#include "cli/reading_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>

#include "cli/help.hpp"
#include "cli/request/trace_paths.hpp"
#include "cli/traces_apart.hpp"
#include "merge/merged_stream.hpp"
#include "util/console/log.hpp"
#include "util/exit_codes.hpp"
#include "util/text/json.hpp"

namespace cudabpf::cli {

namespace {

constexpr std::chrono::milliseconds SOON(500), OFTEN(100);

constexpr std::string_view ERASE = "\r\033[K";

// Ctrl-C must not leave half a line on the terminal. A subcommand with its own handler ends
// normally, which erases the line.
void erase_when_interrupted() {
  struct sigaction now {};
  if (::sigaction(SIGINT, nullptr, &now) || now.sa_handler != SIG_DFL) return;
  now.sa_handler = [](int signal) {
    [[maybe_unused]] auto written = ::write(STDERR_FILENO, ERASE.data(), ERASE.size());
    ::raise(signal);  // ends the program as if there had been no handler
  };
  now.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  ::sigaction(SIGINT, &now, nullptr);
}

// Shows how far a long read has come, on one line that is erased at the end.
class ProgressBar {
 public:
  ProgressBar() : next_(std::chrono::steady_clock::now() + SOON) {}
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar() { clear(); }

  void show(std::uint64_t read, std::uint64_t size) {
    auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + OFTEN;
    if (!shown_) erase_when_interrupted();
    shown_ = true;
    if (!size) {
      fmt::print(stderr, "{}reading: {}", ERASE, human_bytes(read));
    } else {
      constexpr std::size_t CELLS = 40;
      std::size_t full = std::min<std::size_t>(CELLS, read * CELLS / size);
      fmt::print(stderr, "{}reading: {:3} % [{}{}] {}", ERASE, read * 100 / size,
                 std::string(full, '#'), std::string(CELLS - full, ' '), human_bytes(size));
    }
    std::fflush(stderr);
  }

 private:
  void clear() {
    if (shown_) fmt::print(stderr, "{}", ERASE);
    shown_ = false;
  }

  std::chrono::steady_clock::time_point next_;
  bool shown_ = false;
};

Error no_such_range(const analyze::WantedRanges& wanted) {
  std::string others;
  for (const std::string& one : wanted.others)
    others += (others.empty() ? "it has " : ", ") + printable(one);
  return {fmt::format("--range {}: the trace has no such range", wanted.pattern),
          others.empty() ? "it has none: `cudabpf run --ranges` records them" : others,
          exit_code::USAGE};
}

void add_written(Page& page, const std::string& path, std::uint64_t bytes) {
  page.line(fmt::format("  {:>10}  {}", human_bytes(bytes),
                        path == "-" ? "to standard output" : printable(path)));
}

}  // namespace

Moments moments_of(const TraceFlags& flags, const analyze::TraceFacts& facts) {
  using Zone = Moments::Zone;
  Zone zone = flags.time == "utc" ? Zone::utc : flags.time == "local" ? Zone::local : Zone::none;
  return {facts.header.began(), zone};
}

void print_json(const analyze::Json& answer, std::FILE* to, bool on_one_line) {
  // A name may end within a character if another program made the trace.
  fmt::print(to, "{}\n",
             json::without_invisible(answer.dump(on_one_line ? -1 : 2, ' ', false,
                                                 analyze::Json::error_handler_t::replace)));
}

void say_what_is_missing(const analyze::TraceFacts& facts) {
  Page page = page_for(stderr);
  analyze::add_facts(page, facts);
  fmt::print(stderr, "{}", page.take());
}

void add_reading_footer(CLI::App& sub, std::initializer_list<const char*> examples) {
  using namespace exit_code;
  sub.group("Subcommands that read traces");
  std::vector<std::string> commands;
  for (const char* example : examples) commands.push_back(fmt::format("cudabpf {}", example));
  add_footer(
      sub, commands,
      fmt::format("{} done, whatever the trace shows; {} wrong usage; {} the output could not be "
                  "written in full; {} the trace could not be read.",
                  OK, USAGE, OUTPUT_FAILED, FAILED));
}

void add_trace_flags(CLI::App& sub, TraceFlags& flags,
                     std::initializer_list<const char*> examples) {
  add_reading_footer(sub, examples);
  sub.add_option(
         "trace", flags.paths,
         "The trace, plain or .zst; if rotated, all files in order; several traces are merged; "
         "-: stdin")
      ->type_name("TRACE")
      ->required();
  add_json(sub, flags.json);
  add_part_flags(sub, flags.part);
}

void add_json(CLI::App& sub, bool& json) {
  sub.add_flag("--json", json, "Print one JSON object, for programs");
}

void add_svg(CLI::App& sub, TraceFlags& flags) {
  sub.add_option("--svg", flags.svg, "Also draw it into this SVG file, for any browser; -: stdout")
      ->type_name("FILE");
}

CLI::Option* add_time(CLI::App& sub, TraceFlags& flags) {
  return one_of(sub.add_option("--time", flags.time,
                               "Show times since the trace began, or times of day"),
                {"relative", "local", "utc"})
      ->capture_default_str()
      ->excludes("--json");
}

analyze::TraceReader::Progress reading_progress() {
  if (!terminal_of(STDERR_FILENO).is_terminal) return {};
  return [bar = std::make_shared<ProgressBar>()](std::uint64_t read, std::uint64_t size) {
    bar->show(read, size);
    return true;
  };
}

Result<std::unique_ptr<analyze::TraceReader>> open_trace(const std::vector<std::string>& paths) {
  TRY(become_reader());
  auto traces = TRY(traces_of(paths, TracesAre::to_be_merged));
  if (traces.size() > 1) return merge::open_merged(traces, reading_progress);
  return analyze::TraceReader::open(paths, reading_progress());
}

Result<std::unique_ptr<analyze::TraceReader>> open_trace(const TraceFlags& flags) {
  TRY(is_no_trace(flags.svg, flags.paths));
  auto reader = TRY(open_trace(flags.paths));
  Moments moments = moments_of(flags, reader->facts());
  if (flags.time != "relative" && !moments.began())
    return Error{"--time " + flags.time + ": the trace does not say when it began",
                 "leave --time out: times are since then", exit_code::USAGE};
  if (flags.part.any()) {
    auto wanted = TRY(find_part(flags.part, moments, *reader));
    if (flags.part.is_of_execution()) reader = TRY(open_trace(flags.paths));
    reader->want(wanted.part, wanted.name, flags.part.range);
  }
  if (flags.by_line) reader->place_by_line();
  return reader;
}

Result<> is_in_trace(const analyze::TraceFacts& facts) {
  if (facts.part.of_ranges && !facts.ranges.found) return no_such_range(facts.ranges);
  if (!facts.part.from || facts.part.from < facts.duration()) return ok();
  return Error{"--from is not before the end of the trace",
               "it ends at " + analyze::seconds(facts.duration()), exit_code::USAGE};
}

Result<> read_trace(analyze::TraceReader& reader,
                    std::initializer_list<analyze::Analysis*> analyses) {
  TRY(analyze::analyze(reader, analyses));
  return is_in_trace(reader.facts());
}

namespace {

// Writes into a new file at `path`, or to standard output for "-". Says on stderr what was written.
Result<int> write_picture(const std::string& path, const std::string& picture) {
  bool to_stdout = path == "-";
  auto failed = [&] {
    return errno_error(
        "cannot write the picture to " + (to_stdout ? "standard output" : path),
        to_stdout ? "what was written is incomplete" : "give a path that can be written",
        exit_code::OUTPUT_FAILED);
  };
  std::FILE* file = to_stdout ? stdout : std::fopen(path.c_str(), "w");
  if (!file) return failed();
  bool written = std::fwrite(picture.data(), 1, picture.size(), file) == picture.size();
  if ((to_stdout ? std::fflush(file) : std::fclose(file)) != 0 || !written) return failed();
  Page page = page_for(stderr);
  page.heading("written");
  add_written(page, path, picture.size());
  fmt::print(stderr, "{}", page.take());
  return 0;
}

}  // namespace

Result<int> answer(const TraceFlags& flags, analyze::TraceReader& reader,
                   std::initializer_list<analyze::Analysis*> analyses, const Answer& answer) {
  TRY(read_trace(reader, analyses));
  if (answer.found_thread) TRY(check_whose(flags.part.whose, answer.found_thread()));
  // Standard output cannot usefully take both the answer and a picture.
  print_answer(flags, reader.facts(), answer, flags.svg == "-" ? stderr : stdout);
  if (flags.svg.empty()) return 0;
  return write_picture(flags.svg, answer.svg());
}

void print_answer(const TraceFlags& flags, const analyze::TraceFacts& facts, const Answer& answer,
                  std::FILE* to) {
  if (flags.json) {
    analyze::Json whole = {{"trace", analyze::facts_json(facts)}};
    whole.update(answer.json());
    for (std::string_view list : answer.lists) flags.top.cut(whole, list);
    print_json(whole, to);
  } else {
    Page page = page_for(to);
    page.show_moments(moments_of(flags, facts));
    analyze::add_heading(page, facts);
    if (!facts.calls)
      page.line("The trace holds no calls" +
                (facts.operations
                     ? ", only " + count_of(facts.operations, "operation", "operations") +
                           " on the driver."
                     : "."));
    else if (!facts.calls_in_part)
      page.line("No call began in this part of the trace.");
    answer.page(page);
    page.say_left_out();
    analyze::add_facts(page, facts);
    show(page.take(), to);
  }
}

namespace {

// How to view a file of that kind; empty: there is more than one way, or none for a person.
std::string_view how_to_open(std::string_view ending) {
  if (ending.ends_with("html")) return "Open it in any browser.";
  if (ending == "chrome.json" || ending == "perfetto-trace")
    return "Open it at https://ui.perfetto.dev, which sends nothing anywhere.";
  if (ending == "csv") return "Open it in a spreadsheet, or read it with DuckDB or pandas.";
  return {};
}

}  // namespace

void add_files(Page& page, const ExportFiles& files) {
  page.heading("written");
  auto all = files.files();
  for (const auto& file : all) add_written(page, file.path, file.stream->size());
  if (files.to_stdout()) return;
  for (const auto& file : all)
    if (std::string_view how = how_to_open(file.ending); !how.empty())
      page.paragraph(all.size() > 1 ? fmt::format("{}: {}", file.ending, how) : std::string(how),
                     2);
}

analyze::Json files_json(const ExportFiles& files) {
  analyze::Json json = analyze::Json::array();
  for (const auto& file : files.files())
    json.push_back({{"path", file.path}, {"bytes", file.stream->size()}});
  return {{"files", json}};
}

void Top::cut(analyze::Json& object, std::string_view list) const {
  if (!option || !option->count()) return;
  std::size_t slash = list.find('/');
  analyze::Json& found = object[std::string(list.substr(0, slash))];
  if (slash != list.npos) {
    list.remove_prefix(slash + 1);
    if (!found.is_array()) return cut(found, list);
    for (analyze::Json& each : found) cut(each, list);
    return;
  }
  auto& all = found.get_ref<analyze::Json::array_t&>();
  if (all.size() <= rows) return;
  std::uint64_t left_out = all.size() - rows;
  all.resize(rows);
  analyze::Json& count = object[std::string(list) + "_left_out"];  // may move the list
  count = left_out + (count.is_null() ? 0 : count.get<std::uint64_t>());
}

void add_top(CLI::App& sub, Top& top, std::size_t rows, const std::string& help) {
  constexpr std::size_t MAX = 1'000'000;
  top.rows = rows;
  top.option = sub.add_option("--top", top.rows, help)
                   ->type_name("N")
                   ->check(CLI::Range(std::size_t{0}, MAX).description(""))
                   ->capture_default_str();
}

}  // namespace cudabpf::cli
