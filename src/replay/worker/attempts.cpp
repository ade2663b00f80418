#include "replay/worker/attempts.hpp"

#include <algorithm>
#include <cstring>

#include "replay/compare.hpp"
#include "replay/export/granules.hpp"
#include "replay/trial/value_errors.hpp"

namespace cudabpf::replay {

namespace {

char poison_of(std::size_t run) { return static_cast<char>(UNKNOWN[run % 2]); }

void add_byte_at(std::vector<Range>& ranges, std::uint64_t address) {
  if (!ranges.empty() && ranges.back().end == address)
    ranges.back().end++;
  else
    ranges.push_back({address, address + 1});
}

}  // namespace

Result<> Attempts::find_occurrences() {
  auto found = occurrences_in(bench_->tape(), bench_->folder().manifest());
  if (!found) return Error{"the folder has not one kernel alone", {}};
  occurrences_ = std::move(*found);
  for (const Occurrence& occurrence : occurrences_)
    if (std::string why = bench_->player().reason_against(occurrence.step,
                                                          bench_->tape().steps()[occurrence.step]);
        !why.empty())
      return Error{bench_->player().description(occurrence.step) + ": " + why, {}};
  return ok();
}

Result<Attempts::Left> Attempts::left_by(const Occurrence& occurrence,
                                         const std::vector<Range>& poisoned, char poison) {
  progress_->at(occurrence.step);
  for (const Occurrence::Part& part : occurrence.in) {
    if (!bench_->code().has(part.range.begin)) continue;
    auto parts = parts_in(poisoned, part.range);
    if (parts.empty()) {
      TRY(view_.write(part.range, bytes(part.bytes)));
      continue;
    }
    std::string given(bytes(part.bytes));
    for (const Range& one : parts)
      std::memset(given.data() + (one.begin - part.range.begin), poison, one.size());
    TRY(view_.write(part.range, given));
  }
  TRY(driver_->synchronize());
  TRY(bench_->player().work_on(occurrence.step, nullptr).result());
  TRY(driver_->synchronize());
  Left left;
  for (const Occurrence::Part& part : occurrence.out)
    left.push_back(bench_->code().has(part.range.begin) ? TRY(view_.read(part.range))
                                                        : std::string(part.range.size(), poison));
  progress_->at_no_step();
  return left;
}

// ----- what may be poisoned

Result<std::vector<Range>> Attempts::sort_out(const Occurrence& occurrence,
                                              const std::vector<Range>& poisoned,
                                              std::vector<Range>& written) {
  Left left[2];
  for (std::size_t i = 0; i < 2; i++) left[i] = TRY(left_by(occurrence, poisoned, poison_of(i)));
  std::vector<Range> doubtful;
  for (std::size_t k = 0; k < occurrence.out.size(); k++) {
    const Range& range = occurrence.out[k].range;
    std::string_view wanted = bytes(occurrence.out[k].bytes);
    std::size_t i = 0;
    auto judge = [&](const Range& window, bool is_poisoned) {
      for (; range.begin + i < window.end; i++) {
        bool is_expected = left[0][k][i] == wanted[i] && left[1][k][i] == wanted[i];
        if (is_expected && is_poisoned) add_byte_at(written, range.begin + i);
        bool is_untouched =
            is_poisoned && left[0][k][i] == poison_of(0) && left[1][k][i] == poison_of(1);
        if (!is_expected && !is_untouched) add_byte_at(doubtful, range.begin + i);
      }
    };
    for (const Range& part : parts_in(poisoned, range)) {
      judge({range.begin, part.begin}, false);
      judge(part, true);
    }
    judge(range, false);
  }
  return joined(rounded(merged(std::move(doubtful)), GRANULE), ranges_of(occurrence.out), 1);
}

Result<bool> Attempts::is_as_expected(const Occurrence& occurrence,
                                      const std::vector<Range>& poisoned) {
  for (std::size_t run = 0; run < 2; run++) {
    Left left = TRY(left_by(occurrence, poisoned, poison_of(run)));
    for (std::size_t k = 0; k < left.size(); k++)
      if (left[k] != bytes(occurrence.out[k].bytes)) return false;
  }
  return true;
}

// First all of it is poisoned. What then is not as expected is read before it is written, or
// depends on what is; so these parts are poisoned one by one.
Result<Poisoned> Attempts::poison(const Occurrence& occurrence, const std::vector<Range>& where) {
  constexpr std::size_t MAX_PARTS = 32, MAX_RANGES = 100'000;
  std::vector<Range> out = joined(ranges_of(occurrence.out), where, 1), written;
  auto doubtful = TRY(sort_out(occurrence, out, written));
  if (!doubtful.empty()) {
    written = without_all(merged(std::move(written)), doubtful);
    auto parts = joined(doubtful, out, NEAR_BY);
    for (std::size_t i = 0; i < std::min(parts.size(), MAX_PARTS); i++) {
      std::vector<Range> more;
      if (!TRY(sort_out(occurrence, {parts[i]}, more)).empty()) continue;
      written.insert(written.end(), more.begin(), more.end());
      doubtful = without(doubtful, parts[i]);
    }
  }
  written = merged(std::move(written));
  if (written.size() > MAX_RANGES) written.resize(MAX_RANGES);
  Poisoned found;
  if (TRY(is_as_expected(occurrence, written))) {
    found.ranges = addresses_of(written);
    found.inputs = size_of(doubtful);
  } else {
    found.inputs = size_of(out);
  }
  return found;
}

Result<std::vector<Poisoned>> Attempts::poison(const std::vector<Range>& where) {
  TRY(find_occurrences());
  std::vector<Poisoned> all;
  for (const Occurrence& occurrence : occurrences_) all.push_back(TRY(poison(occurrence, where)));
  return all;
}

// ----- what another code leaves

void Attempts::compare(const Occurrence& occurrence, const Left& left,
                       const std::vector<Range>& poisoned, char poison, Attempted& sums) const {
  Attempted now;
  for (std::size_t k = 0; k < left.size(); k++) {
    const Range& range = occurrence.out[k].range;
    std::string_view wanted = bytes(occurrence.out[k].bytes), got = left[k];
    now.compared += range.size();
    if (got == wanted) continue;
    for (std::size_t i = 0; i < got.size(); i++) {
      if (got[i] == wanted[i]) continue;
      if (!now.different++ && !sums.rounds_different) sums.first.value = range.begin + i;
    }
    for (const Range& part : parts_in(poisoned, range))
      for (std::size_t i = part.begin - range.begin; i < part.end - range.begin; i++)
        now.not_written += got[i] == poison && wanted[i] != poison;
    for (std::size_t type = 0; type < VALUE_TYPES.size(); type++)
      add_errors(static_cast<ValueType>(type), range.begin, wanted, got, now.errors[type]);
  }
  sums.rounds++;
  sums.rounds_different += now.different != 0;
  sums.compared = now.compared;
  sums.different = std::max(sums.different, now.different);
  sums.not_written = std::max(sums.not_written, now.not_written);
  for (std::size_t type = 0; type < VALUE_TYPES.size(); type++)
    add_errors(now.errors[type], sums.errors[type]);
}

Result<> Attempts::find_touched(const Occurrence& occurrence, Attempted& sums) {
  std::vector<Range> out = ranges_of(occurrence.out), touched = ranges_of(sums.touched);
  for (const Occurrence::Part& part : occurrence.in) {
    if (!bench_->code().has(part.range.begin)) continue;
    for (const Range& rest : without_all({part.range}, parts_in(out, part.range))) {
      auto given = bytes(part.bytes).substr(rest.begin - part.range.begin, rest.size());
      auto differs = differences_between(given, TRY(view_.read(rest)), rest);
      for (const Range& granules : joined(rounded(differs, GRANULE), {rest}, 1))
        touched.push_back(granules);
    }
  }
  sums.touched = addresses_of(merged(std::move(touched)));
  return ok();
}

Result<> Attempts::attempt(const Request& request, Answer& answer) {
  TRY(find_occurrences());
  answer.attempted.resize(occurrences_.size());
  std::vector<std::vector<Range>> poisoned(occurrences_.size());
  for (std::size_t i = 0; i < std::min(poisoned.size(), request.poisoned.size()); i++)
    poisoned[i] = merged(ranges_of(request.poisoned[i].ranges));
  auto before = TRY(view_.fingerprints());
  for (std::size_t run = 0; run < request.launches.size(); run++) {
    std::uint64_t number = request.launches[run];
    if (number >= occurrences_.size()) return Error{"there is no such occurrence", {}};
    char poison = poison_of(run);
    Left left = TRY(left_by(occurrences_[number], poisoned[number], poison));
    compare(occurrences_[number], left, poisoned[number], poison, answer.attempted[number]);
    TRY(find_touched(occurrences_[number], answer.attempted[number]));
  }
  // The same for all; of granules that it shares nothing can be said.
  std::vector<Range> given = ranges_of(occurrences_.front().in);
  auto changed = view_.changes(before, TRY(view_.fingerprints()));
  answer.strayed = addresses_of(without_all(std::move(changed), rounded(given, GRANULE)));
  return ok();
}

}  // namespace cudabpf::replay
