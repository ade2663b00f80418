#include "analyze/gaps/gap.hpp"

#include <algorithm>

#include "analyze/analysis.hpp"

namespace cudabpf::analyze {

Gap::Gap(const Line& line)
    : pid(line.pid), tid(line.tid), begin(line.end()), after(line.id), after_name(line.name) {}

std::uint64_t Gap::spend(const Line& line, const Part& part) {
  if (line.tid != tid) return 0;
  if (!line.has(Field::duration)) untimed += line.ts >= begin && part.has(line);
  std::uint64_t since = part.clipped(std::max(line.ts, begin)), over = part.clipped(line.end());
  if (over <= since) return 0;
  std::uint64_t time = over - since;
  in_calls += time;
  if (time > longest) {
    longest = time;
    longest_call = line.name;
  }
  return time;
}

bool Gap::close(const Line& line, const Part& part) {
  end = std::max(line.ts, begin);
  if (!part.touches(begin, end)) return false;
  begin = part.clipped(begin);
  end = part.clipped(end);
  until = line.id;
  until_name = line.name;
  in_calls = std::min(in_calls, time());
  return true;
}

std::string outside_calls(std::uint64_t time, std::uint64_t in_calls, std::uint64_t untimed) {
  if (untimed && !in_calls) return "not known";
  return (untimed ? "at most " : "") + percent(time - in_calls, time);
}

}  // namespace cudabpf::analyze
