#include "analyze/course/gap.hpp"

#include <algorithm>

#include "analyze/analysis.hpp"

namespace cudabpf::analyze {

Gap::Gap(const Line& line)
    : pid(line.pid), tid(line.tid), begin(line.end()), after(line.id), after_name(line.name) {}

std::uint64_t Gap::spend(const Line& line) {
  if (line.tid != tid) return 0;
  if (!line.has(Field::duration)) untimed += line.ts >= begin;
  if (line.end() <= begin) return 0;
  std::uint64_t time = line.end() - std::max(line.ts, begin);
  in_calls += time;
  if (time > longest) {
    longest = time;
    longest_call = line.name;
  }
  return time;
}

void Gap::close(const Line& line) {
  end = std::max(line.ts, begin);
  until = line.id;
  until_name = line.name;
  in_calls = std::min(in_calls, time());
}

std::string outside_calls(std::uint64_t time, std::uint64_t in_calls, std::uint64_t untimed) {
  if (untimed && !in_calls) return "not known";
  return (untimed ? "at most " : "") + percent(time - in_calls, time);
}

}  // namespace cudabpf::analyze
