#include "cli/doctor/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cudabpf::cli {

namespace {

using Need = Finding::Need;

struct Marks {
  std::string_view good, bad, poorer, unknown, advice;
};
constexpr Marks UTF8 = {"✓", "✗", "–", "?", "→ "}, ASCII = {"ok", "NO", "--", "??", "-> "};
constexpr std::string_view GREEN = "32", RED = "31", YELLOW = "33";

constexpr std::size_t WIDEST_NAME = 22, NARROW = 60, BELOW_MARK = 6;

class Diagnosis {
 public:
  Diagnosis(Page& page, const std::vector<Finding>& findings, bool utf8)
      : page_(page), findings_(findings), marks_(utf8 ? UTF8 : ASCII) {}

  void add() {
    add_verdict();
    add_section("required", Need::required);
    add_section("to be traced", Need::target);
    add_section("metrics of this node", Need::node);
    add_section("optional", Need::optional);
  }

 private:
  std::string mark(Verdict verdict, Need need) const {
    switch (verdict) {
      case Verdict::yes:
        return painted(marks_.good, GREEN);
      case Verdict::no:
        return need == Need::required ? painted(marks_.bad, RED) : painted(marks_.poorer, YELLOW);
      case Verdict::unknown:
        return painted(marks_.unknown, YELLOW);
    }
    return {};
  }

  std::string painted(std::string_view text, std::string_view color) const {
    return page_.color() ? fmt::format("\033[{}m{}\033[0m", color, text) : std::string(text);
  }

  std::size_t mark_width() const { return width_of(marks_.good); }

  void add_verdict() {
    bool can = can_trace(findings_) || can_record_inside(findings_);
    page_.hanging(mark(can ? Verdict::yes : Verdict::no, Need::required) + " ", verdict_text(),
                  mark_width() + 1);
  }

  // One line; if the answer is no, with what to do.
  std::string verdict_text() const {
    if (can_trace(findings_)) {
      bool target = std::any_of(findings_.begin(), findings_.end(), [](const Finding& finding) {
        return finding.name == LIBCUDA && finding.verdict == Verdict::yes;
      });
      return target ? "cudabpf can trace here."
                    : "cudabpf can trace here, but found no libcuda to trace.";
    }
    auto missing = std::find_if(findings_.begin(), findings_.end(), [](const Finding& finding) {
      return finding.need == Need::required && finding.verdict != Verdict::yes;
    });
    const std::string& what_to_do = missing->advice.empty() ? missing->what : missing->advice;
    if (!can_record_inside(findings_))
      return fmt::format("cudabpf cannot trace here yet: {}", what_to_do);
    return fmt::format(
        "`cudabpf run -- CMD` works here, by recording inside the command. For anything else: {}",
        what_to_do);
  }

  void add_section(std::string_view title, Need need) {
    std::vector<const Finding*> found;
    for (const Finding& finding : findings_)
      if (finding.need == need) found.push_back(&finding);
    if (found.empty()) return;
    std::stable_partition(found.begin(), found.end(),
                          [](const Finding* finding) { return finding->verdict != Verdict::yes; });
    name_width_ = 0;
    for (const Finding* finding : found)
      name_width_ = std::max(name_width_,
                             width_of(is_shown_together(*finding) ? std::string(finding->kind->many)
                                                                  : printable(finding->name)));
    name_width_ = std::min(name_width_, WIDEST_NAME);
    page_.blank();
    page_.heading(title);
    for (std::size_t i = 0; i < found.size(); i++)
      if (!is_shown_together(*found[i]))
        add_finding(*found[i]);
      else if (first_of_its_kind(found, i))
        add_together(found, *found[i]);
  }

  // Many findings that are well need no explanation.
  static bool is_shown_together(const Finding& finding) {
    return finding.kind && finding.verdict == Verdict::yes;
  }

  static bool first_of_its_kind(const std::vector<const Finding*>& found, std::size_t at) {
    return std::none_of(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(at),
                        [&](const Finding* other) {
                          return is_shown_together(*other) && other->kind == found[at]->kind;
                        });
  }

  void add_finding(const Finding& finding) {
    add_line(finding, finding.name, finding.what);
    if (finding.verdict != Verdict::yes && !finding.advice.empty()) {
      std::size_t arrow = width_of(marks_.advice), indent = text_column() + arrow;
      page_.hanging(std::string(text_column(), ' ').append(marks_.advice), finding.advice, indent);
    }
  }

  void add_together(const std::vector<const Finding*>& found, const Finding& first) {
    std::string names;
    for (const Finding* finding : found)
      if (is_shown_together(*finding) && finding->kind == first.kind)
        names += (names.empty() ? "" : ", ") + finding->name;
    add_line(first, std::string(first.kind->many), names);
  }

  void add_line(const Finding& finding, const std::string& name, const std::string& text) {
    std::string shown = printable(name);
    std::string begin = "  " + mark(finding.verdict, finding.need) + " " + shown;
    std::size_t taken = 2 + mark_width() + 1 + width_of(shown);
    if (taken + 2 > text_column()) {
      page_.painted(begin);
      page_.paragraph(text, text_column());
    } else {
      begin.append(text_column() - taken, ' ');
      page_.hanging(begin, text, text_column());
    }
  }

  std::size_t text_column() const {
    return page_.width() < NARROW ? BELOW_MARK : 2 + mark_width() + 1 + name_width_ + 2;
  }

  Page& page_;
  const std::vector<Finding>& findings_;
  const Marks& marks_;
  std::size_t name_width_ = 0;  // in this section
};

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::yes:
      return "yes";
    case Verdict::no:
      return "no";
    case Verdict::unknown:
      return "could not find out";
  }
  return "";
}

std::string Finding::subject() const { return kind ? fmt::format("{} {}", kind->one, name) : name; }

bool can_trace(const std::vector<Finding>& findings) {
  return std::all_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.need != Finding::Need::required || finding.verdict == Verdict::yes;
  });
}

bool can_record_inside(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.name == INSIDE && finding.verdict == Verdict::yes;
  });
}

void add_diagnosis(Page& page, const std::vector<Finding>& findings, bool utf8) {
  Diagnosis(page, findings, utf8).add();
}

}  // namespace cudabpf::cli
