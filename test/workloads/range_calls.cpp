// The statements of a script that name ranges: README.md lists them.
#include "range_calls.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "nvtx.hpp"

namespace workload {
namespace {

uint64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Writes what the program itself knows of a range to the file that FAKE_RANGES names.
void log(const char* op, const std::string& name, const std::string& domain, uint64_t from,
         uint64_t to) {
  const char* path = getenv("FAKE_RANGES");
  if (!path) return;
  char line[4096];
  const int size =
      snprintf(line, sizeof line,
               "{\"op\":\"%s\",\"name\":\"%s\",\"domain\":\"%s\",\"pid\":%d,\"tid\":%d,"
               "\"from\":%llu,\"to\":%llu}\n",
               op, name.c_str(), domain.c_str(), getpid(), gettid(),
               static_cast<unsigned long long>(from), static_cast<unsigned long long>(to));
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (write(file, line, static_cast<size_t>(size)) != size) perror("FAKE_RANGES");
  close(file);
}

// The words of a statement behind its name: plain ones, and those like domain=NCCL.
struct Said {
  std::vector<std::string> plain;
  std::map<std::string, std::string> named;

  explicit Said(const Statement& statement) {
    for (size_t i = 2; i < statement.tokens.size(); ++i) {
      const std::string& token = statement.tokens[i];
      const size_t equals = token.find('=');
      if (equals == std::string::npos)
        plain.push_back(token);
      else
        named[token.substr(0, equals)] = token.substr(equals + 1);
    }
  }
  bool has(const char* key) const { return named.contains(key); }
  std::string value(const char* key) const { return has(key) ? named.at(key) : ""; }
  // By the extension for payloads, where a name would be in the payload.
  bool by_payload() const { return value("with") == "payload"; }
  bool is_plain() const {
    return !has("domain") && !has("category") && !has("payload") && !has("real") && !has("color") &&
           !has("text");
  }
};

std::wstring wide_of(const std::string& text) {
  std::wstring wide;
  for (const char c : text) wide += static_cast<unsigned char>(c);
  if (wide.starts_with(L"wide")) wide += L"\u00e4\u4e16\U0001f600";  // 2, 3 and 4 bytes of UTF-8
  return wide;
}

struct Domain {
  void* handle = nullptr;
  std::map<std::string, void*> strings;
};

class Ranges {
 public:
  explicit Ranges(unsigned copy) : nvtx_(nvtx::copy(copy)) {}

  void push(const Said& said) {
    const std::string name = said.plain.at(0);
    Open open{name, said.value("domain"), now_ns()};
    int level = -2;
    if (said.by_payload()) {
      level = nvtx_.call<int>(nvtx::kPayload, 3, -2, domain(said).handle, nullptr, size_t{0});
    } else if (said.value("text") == "wide") {
      const std::wstring wide = wide_of(name);
      level = nvtx_.call<int>(nvtx::kCore, 10, -2, wide.c_str());
    } else if (said.is_plain()) {
      level = nvtx_.call<int>(nvtx::kCore, 9, -2, name.c_str());
    } else {
      const nvtx::Event event = event_of(said, name);
      level = nvtx_.call<int>(nvtx::kCore2, 4, -2, domain(said).handle, &event);
    }
    auto& open_here = pushed()[open.domain];
    check(level, static_cast<int>(open_here.size()), "push");
    open_here.push_back(open);
  }

  void pop(const Said& said) {
    const std::string of = said.value("domain");
    int level = -2;
    if (said.by_payload())
      level = nvtx_.call<int>(nvtx::kPayload, 4, -2, domain(said).handle, nullptr, size_t{0});
    else if (of.empty())
      level = nvtx_.call<int>(nvtx::kCore, 11, -2);
    else
      level = nvtx_.call<int>(nvtx::kCore2, 5, -2, domain(said).handle);
    auto& open_here = pushed()[of];
    if (open_here.empty()) return check(level, -1, "pop");
    const Open open = open_here.back();
    open_here.pop_back();
    check(level, static_cast<int>(open_here.size()), "pop");
    log("push", open.name, open.domain, open.from, now_ns());
  }

  Word start(const Said& said) {
    const std::string name = said.plain.at(1);
    const uint64_t from = now_ns();
    Word number = 0;
    if (said.by_payload()) {
      number = nvtx_.call<uint64_t>(nvtx::kPayload, 5, 0, domain(said).handle, nullptr, size_t{0});
    } else if (said.is_plain()) {
      number = nvtx_.call<uint64_t>(nvtx::kCore, 5, 0, name.c_str());
    } else {
      const nvtx::Event event = event_of(said, name);
      number = nvtx_.call<uint64_t>(nvtx::kCore2, 2, 0, domain(said).handle, &event);
    }
    const std::lock_guard lock(mutex_);
    started_[number] = {name, said.value("domain"), from};
    return number;
  }

  void end(const Said& said, Word number) {
    if (said.by_payload())
      nvtx_.tell(nvtx::kPayload, 6, domain(said).handle, number, nullptr, size_t{0});
    else if (said.value("domain").empty())
      nvtx_.tell(nvtx::kCore, 7, number);
    else
      nvtx_.tell(nvtx::kCore2, 3, domain(said).handle, number);
    const std::lock_guard lock(mutex_);
    const Open open = started_[number];
    log("start", open.name, open.domain, open.from, now_ns());
  }

  void mark(const Said& said) {
    const std::string name = said.plain.at(0);
    const uint64_t from = now_ns();
    if (said.by_payload()) {
      nvtx_.tell(nvtx::kPayload, 2, domain(said).handle, nullptr, size_t{0});
    } else if (said.is_plain()) {
      nvtx_.tell(nvtx::kCore, 2, name.c_str());
    } else {
      const nvtx::Event event = event_of(said, name);
      nvtx_.tell(nvtx::kCore2, 1, domain(said).handle, &event);
    }
    log("mark", name, said.value("domain"), from, now_ns());
  }

  void name_category(const Said& said) {
    const auto category = static_cast<uint32_t>(std::stoul(said.plain.at(0)));
    const char* name = said.plain.at(1).c_str();
    if (said.value("domain").empty())
      nvtx_.tell(nvtx::kCore, 12, category, name);
    else
      nvtx_.tell(nvtx::kCore2, 8, domain(said).handle, category, name);
  }

 private:
  struct Open {
    std::string name, domain;
    uint64_t from = 0;
  };

  static std::map<std::string, std::vector<Open>>& pushed() {
    static thread_local std::map<std::string, std::vector<Open>> of_thread;
    return of_thread;
  }

  // What a tool says of the depth must be true, if it says anything.
  static void check(int level, int true_one, const char* what) {
    if (level == -2 || level == true_one) return;
    fprintf(stderr, "fake_calls: %s returned %d, not %d\n", what, level, true_one);
    exit(1);
  }

  Domain& domain(const Said& said) {
    const std::string name = said.value("domain");
    const std::lock_guard lock(mutex_);
    Domain& domain = domains_[name];
    if (!domain.handle && !name.empty())
      domain.handle = nvtx_.call<void*>(nvtx::kCore2, 12, nullptr, name.c_str());
    return domain;
  }

  nvtx::Event event_of(const Said& said, const std::string& name) {
    nvtx::Event event;
    event.message_type = 1;
    event.message = name.c_str();
    if (said.value("text") == "registered") {
      Domain& of = domain(said);
      const std::lock_guard lock(mutex_);
      void*& known = of.strings[name];
      if (!known) known = nvtx_.call<void*>(nvtx::kCore2, 10, nullptr, of.handle, name.c_str());
      event.message_type = 3;
      event.message = known;
    }
    if (said.has("category"))
      event.category = static_cast<uint32_t>(std::stoul(said.value("category")));
    if (said.has("color")) {
      event.color_type = 1;
      event.color = static_cast<uint32_t>(std::stoul(said.value("color"), nullptr, 16));
    }
    if (said.has("payload")) {
      event.payload_type = 2;
      event.payload = static_cast<uint64_t>(std::stoll(said.value("payload")));
    }
    if (said.has("real")) {
      const double real = std::stod(said.value("real"));
      event.payload_type = 3;
      memcpy(&event.payload, &real, sizeof real);
    }
    return event;
  }

  nvtx::Copy& nvtx_;
  std::mutex mutex_;
  std::map<std::string, Domain> domains_;
  std::map<uint64_t, Open> started_;
};

Ranges& ranges_of(const Said& said) {
  static Ranges first(0), second(1);
  return said.value("copy") == "2" ? second : first;
}

}  // namespace

bool name_range(const Arguments& arguments) {
  const Said said(arguments.statement());
  Ranges& ranges = ranges_of(said);
  const std::string what = arguments.text(1);
  if (what == "push")
    ranges.push(said);
  else if (what == "pop")
    ranges.pop(said);
  else if (what == "start")
    *arguments.out(2) = ranges.start(said);
  else if (what == "end")
    ranges.end(said, arguments.word(2));
  else if (what == "mark")
    ranges.mark(said);
  else if (what == "category")
    ranges.name_category(said);
  else
    return false;
  return true;
}

}  // namespace workload
