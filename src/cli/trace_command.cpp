#include "cli/trace_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "util/exit_codes.hpp"
#include "util/log.hpp"

namespace cudabpf::cli {

namespace {

constexpr unsigned WIDEST = 160;
constexpr std::chrono::milliseconds SOON(500), OFTEN(100);

// How far a long read is, on one line that goes away again.
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
    shown_ = true;
    if (!size) {
      fmt::print(stderr, "\r\033[Kreading: {}", human_bytes(read));
    } else {
      constexpr std::size_t CELLS = 40;
      std::size_t full = std::min<std::size_t>(CELLS, read * CELLS / size);
      fmt::print(stderr, "\r\033[Kreading: {:3} % [{}{}] {}", read * 100 / size,
                 std::string(full, '#'), std::string(CELLS - full, ' '), human_bytes(size));
    }
    std::fflush(stderr);
  }

 private:
  void clear() {
    if (shown_) fmt::print(stderr, "\r\033[K");
    shown_ = false;
  }

  std::chrono::steady_clock::time_point next_;
  bool shown_ = false;
};

}  // namespace

Page page_for(std::FILE* to) {
  Terminal terminal = terminal_of(::fileno(to));
  if (!terminal.is_terminal && !std::getenv("COLUMNS")) terminal.width = WIDEST;
  return Page(terminal, WIDEST);
}

void print_json(const analyze::Json& json, std::FILE* to, bool on_one_line) {
  // A name may hold a cut character where a trace was made by something else.
  fmt::print(to, "{}\n",
             json.dump(on_one_line ? -1 : 2, ' ', false, analyze::Json::error_handler_t::replace));
}

void say_what_is_missing(const analyze::TraceFacts& facts) {
  Page page = page_for(stderr);
  analyze::add_facts(page, facts);
  fmt::print(stderr, "{}", page.take());
}

void add_trace_flags(CLI::App& sub, TraceFlags& flags) {
  sub.add_option("trace", flags.paths,
                 "The trace, plain or .zst; of a rotated one all files in order; -: from stdin")
      ->type_name("TRACE")
      ->required();
  sub.add_flag("--json", flags.json, "One JSON object, for programs");
}

Result<std::unique_ptr<analyze::TraceReader>> open_trace(const std::vector<std::string>& paths) {
  analyze::TraceReader::Progress progress;
  if (terminal_of(STDERR_FILENO).is_terminal)
    progress = [bar = std::make_shared<ProgressBar>()](std::uint64_t read, std::uint64_t size) {
      bar->show(read, size);
    };
  return analyze::TraceReader::open(paths, std::move(progress));
}

Result<int> answer(const TraceFlags& flags, analyze::TraceReader& reader,
                   std::initializer_list<analyze::Analysis*> analyses, const Answer& answer) {
  if (auto read = analyze::analyze(reader, analyses); !read) return read.error();
  print_answer(flags, reader.facts(), answer, stdout);
  return 0;
}

void print_answer(const TraceFlags& flags, const analyze::TraceFacts& facts, const Answer& answer,
                  std::FILE* to) {
  if (flags.json) {
    analyze::Json whole = {{"trace", analyze::facts_json(facts)}};
    whole.update(answer.json());
    print_json(whole, to);
  } else {
    Page page = page_for(to);
    answer.page(page);
    analyze::add_facts(page, facts);
    fmt::print(to, "{}", page.take());
  }
}

Result<> is_no_trace(const std::string& path, const std::vector<std::string>& traces) {
  for (const std::string& trace : traces) {
    std::error_code ignored;
    if (std::filesystem::equivalent(trace, path, ignored))
      return Error{path + " is the trace itself", "give another path", exit_code::USAGE};
  }
  return ok();
}

Result<int> write_picture(const std::string& path, const std::string& picture) {
  auto failed = [&] {
    return errno_error("cannot write the picture to " + path, "give a path that can be written",
                       exit_code::OUTPUT_FAILED);
  };
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (!file) return failed();
  bool written = std::fwrite(picture.data(), 1, picture.size(), file) == picture.size();
  if (std::fclose(file) != 0 || !written) return failed();
  return 0;
}

void add_top(CLI::App& sub, std::size_t& top, const std::string& help) {
  constexpr std::size_t MOST = 1'000'000;
  sub.add_option("--top", top, help)
      ->type_name("N")
      ->check(CLI::Range(std::size_t{0}, MOST).description(""))
      ->capture_default_str();
}

}  // namespace cudabpf::cli
