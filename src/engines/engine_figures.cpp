#include "engines/engine_figures.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "util/text/label_value.hpp"

namespace cudabpf::engines {

namespace {

struct Metric {
  std::string_view engine, name;
  Family family;
};
struct Label {
  std::string_view engine, theirs, ours;
};

constexpr FamilyInfo FAMILY_INFOS[] = {
#define ENGINE_FAMILY(name, is_counter, help) {#name, is_counter, help},
#include "engines/engine_metrics.def"
};
constexpr Metric METRICS[] = {
#define ENGINE_METRIC(engine, metric, family) {#engine, metric, Family::family},
#include "engines/engine_metrics.def"
};
constexpr Label KEPT_LABELS[] = {
#define ENGINE_LABEL(engine, theirs, ours) {#engine, theirs, #ours},
#include "engines/engine_metrics.def"
};

using Values = std::array<std::string, LABELS.size()>;

const Metric* metric_of(std::string_view name) {
  static const auto BY_NAME = [] {
    std::map<std::string_view, const Metric*> all;
    for (const Metric& metric : METRICS) all[metric.name] = &metric;
    return all;
  }();
  auto at = BY_NAME.find(name);
  return at == BY_NAME.end() ? nullptr : at->second;
}

// Where our label of this one has its place; LABELS.size(): it is not taken over.
std::size_t place_of(std::string_view engine, std::string_view label) {
  for (const Label& one : KEPT_LABELS)
    if (one.engine == engine && one.theirs == label)
      return static_cast<std::size_t>(std::find(LABELS.begin(), LABELS.end(), one.ours) -
                                      LABELS.begin());
  return LABELS.size();
}

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
}

// A value in quotes, which `rest` begins with. Nothing: it has no end.
std::optional<std::string> quoted(std::string_view& rest) {
  std::string value;
  if (!rest.starts_with('"')) return std::nullopt;
  for (std::size_t i = 1; i < rest.size(); i++) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return value;
    }
    bool is_escaped = rest[i] == '\\' && ++i < rest.size();
    if (i < rest.size()) value += is_escaped && rest[i] == 'n' ? '\n' : rest[i];
  }
  return std::nullopt;
}

// {name="value",…}, if `rest` begins with that. False: it is not written as it must be.
bool read_labels(std::string_view& rest, std::string_view engine, Values& values) {
  if (!rest.starts_with('{')) return true;
  rest.remove_prefix(1);
  for (;;) {
    skip_blanks(rest);
    if (rest.starts_with('}')) break;
    std::string_view name = rest.substr(0, rest.find_first_of("= \t\"{},"));
    rest.remove_prefix(name.size());
    skip_blanks(rest);
    if (name.empty() || !rest.starts_with('=')) return false;
    rest.remove_prefix(1);
    skip_blanks(rest);
    auto value = quoted(rest);
    if (!value) return false;
    std::size_t place = place_of(engine, name);
    if (place < values.size()) values[place] = label_value(*value);
    skip_blanks(rest);
    if (rest.starts_with(','))
      rest.remove_prefix(1);
    else if (!rest.starts_with('}'))
      return false;
  }
  rest.remove_prefix(1);
  return true;
}

// What follows it is when it was so. Nothing: it is none that a figure can have.
std::optional<double> value_in(std::string_view rest) {
  skip_blanks(rest);
  double value = 0;
  auto read = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  bool has_end = read.ptr == rest.data() + rest.size() || *read.ptr == ' ' || *read.ptr == '\t' ||
                 *read.ptr == '\r';
  if (read.ec != std::errc() || !has_end || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

// Samples of a page, as they are read.
class Read {
 public:
  void line(std::string_view line) {
    std::string_view name = line.substr(0, line.find_first_of("{ \t"));
    const Metric* metric = metric_of(name);
    if (!metric) return;
    std::string_view rest = line.substr(name.size());
    Values values;
    skip_blanks(rest);
    bool is_read = read_labels(rest, metric->engine, values);
    auto value = is_read ? value_in(rest) : std::nullopt;
    if (!value || !add(*metric, std::move(values), *value)) left_out_++;
  }

  Figures take() {
    Figures figures;
    figures.left_out = left_out_;
    for (const auto& [key, value] : values_) {
      const auto& [family, engine, labels, metric] = key;
      if (metric != first_.at({family, engine})) continue;
      if (std::isfinite(value))
        figures.samples.push_back({family, engine, labels, value});
      else
        figures.left_out++;
    }
    return figures;
  }

 private:
  bool add(const Metric& metric, Values&& labels, double value) {
    auto key = std::tuple(metric.family, metric.engine, std::move(labels), &metric);
    auto at = values_.find(key);
    if (at == values_.end() && values_.size() >= Figures::MAX_SAMPLES) return false;
    if (at == values_.end()) at = values_.emplace(std::move(key), 0).first;
    at->second = info(metric.family).is_counter ? at->second + value : std::max(at->second, value);
    const Metric*& first =
        first_.try_emplace({metric.family, metric.engine}, &metric).first->second;
    first = std::min(first, &metric);
    return true;
  }

  std::map<std::tuple<Family, std::string_view, Values, const Metric*>, double> values_;
  std::map<std::pair<Family, std::string_view>, const Metric*> first_;  // in the table
  std::size_t left_out_ = 0;
};

}  // namespace

const FamilyInfo& info(Family family) { return FAMILY_INFOS[static_cast<std::size_t>(family)]; }

Figures figures_in(std::string_view page) {
  Read read;
  while (!page.empty()) {
    std::size_t end = page.find('\n');
    read.line(page.substr(0, end));
    page.remove_prefix(std::min(end, page.size() - 1) + 1);
  }
  return read.take();
}

}  // namespace cudabpf::engines
