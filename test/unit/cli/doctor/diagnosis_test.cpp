#include "cli/doctor/diagnosis.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;
using namespace cudabpf::cli;
using Need = Finding::Need;

namespace {

const Finding ROOT = {Need::required, "permissions", Verdict::yes, "root"};
const Finding KERNEL = {Need::required, "kernel", Verdict::yes, "Linux 6.12"};
const Finding LIBRARY = {Need::target, LIBCUDA, Verdict::yes,
                         "/usr/lib/libcuda.so.1: 600 functions"};

std::string shown(const std::vector<Finding>& findings, unsigned width = 80, bool utf8 = true) {
  Page page({.width = width});
  add_diagnosis(page, findings, utf8);
  return page.take();
}

std::string verdict(const std::vector<Finding>& findings) {
  std::string text = shown(findings);
  return text.substr(0, text.find("\n\n"));
}

}  // namespace

TEST_CASE("The verdict comes first, and says what to do") {
  CHECK(verdict({ROOT, KERNEL, LIBRARY}) == "✓ cudabpf can trace here.");
  CHECK(verdict({ROOT, KERNEL}) == "✓ cudabpf can trace here, but found no libcuda to trace.");
  Finding stub = LIBRARY;
  stub.verdict = Verdict::no;
  CHECK(verdict({ROOT, KERNEL, stub}) ==
        "✓ cudabpf can trace here, but found no libcuda to trace.");
  CHECK(verdict({ROOT, KERNEL, stub, LIBRARY}) == "✓ cudabpf can trace here.");
  Finding refused = {Need::required, "permissions", Verdict::no, "it needs root", "use sudo"};
  Finding untried = {Need::required, "kernel", Verdict::unknown, "Linux", "run it as root"};
  CHECK(verdict({refused, untried, LIBRARY}) == "✗ cudabpf cannot trace here yet: use sudo");
  CHECK(!can_trace({ROOT, untried}));
  Finding inside = {Need::optional, INSIDE, Verdict::yes, "libcudabpf-inside.so"};
  CHECK(verdict({refused, inside}) ==
        "✓ `cudabpf run -- CMD` works here, by recording inside the command. For anything\n"
        "  else: use sudo");
  refused.advice.clear();
  CHECK(verdict({ROOT, refused}) == "✗ cudabpf cannot trace here yet: it needs root");
  Finding optional = {Need::optional, "sleepable", Verdict::no, "", ""};
  CHECK(can_trace({ROOT, KERNEL, optional}));
}

TEST_CASE("What is missing comes before what is there; what works of many is shown together") {
  std::vector<Finding> findings = {
      ROOT,
      {Need::optional, "first", Verdict::yes, "why it is good", {}, &FEATURE},
      {Need::optional, "second", Verdict::no, "refused", "do this", &FEATURE},
      {Need::optional, "CAP_BPF", Verdict::yes, "probes", {}, &KEEPS},
      {Need::optional, "third", Verdict::yes, "and so on", {}, &FEATURE},
      {Need::optional, "fourth", Verdict::unknown, "not tried", {}, &FEATURE},
      {Need::target, "GPU 0", Verdict::yes, "NVIDIA H200"},
      {Need::required, "BTF", Verdict::no, "none", "use another kernel"},
  };
  CHECK(shown(findings) ==
        "✗ cudabpf cannot trace here yet: use another kernel\n"
        "\n"
        "required\n"
        "  ✗ BTF          none\n"
        "                 → use another kernel\n"
        "  ✓ permissions  root\n"
        "\n"
        "to be traced\n"
        "  ✓ GPU 0  NVIDIA H200\n"
        "\n"
        "optional\n"
        "  – second    refused\n"
        "              → do this\n"
        "  ? fourth    not tried\n"
        "  ✓ features  first, third\n"
        "  ✓ keeps     CAP_BPF\n");
  CHECK(findings[1].subject() == "feature first");
  CHECK(findings[3].subject() == "keeps CAP_BPF");
  CHECK(findings[6].subject() == "GPU 0");
}

TEST_CASE("Without UTF-8 the marks are ASCII, and as clear") {
  std::vector<Finding> findings = {
      ROOT, {Need::required, "BTF", Verdict::no, "none", "use another kernel"}};
  CHECK(shown(findings, 80, false) ==
        "NO cudabpf cannot trace here yet: use another kernel\n"
        "\n"
        "required\n"
        "  NO BTF          none\n"
        "                  -> use another kernel\n"
        "  ok permissions  root\n");
}

TEST_CASE("On a narrow terminal text is below what it is about, and fits") {
  std::vector<Finding> findings = {{Need::target, LIBCUDA, Verdict::no,
                                    "none on the linker's paths, none mapped anywhere",
                                    "install the driver, or say where it is in LD_LIBRARY_PATH"}};
  CHECK(shown(findings, 40) ==
        "✓ cudabpf can trace here, but found no\n"
        "  libcuda to trace.\n"
        "\n"
        "to be traced\n"
        "  – libcuda\n"
        "      none on the linker's paths, none\n"
        "      mapped anywhere\n"
        "      → install the driver, or say where\n"
        "        it is in LD_LIBRARY_PATH\n");
}

TEST_CASE("Marks are coloured, and nothing that was found can move the cursor") {
  Page page({.is_terminal = true, .color = true, .width = 80});
  add_diagnosis(page, {{Need::required, "kernel\033[2J", Verdict::yes, "Linux\n\033"}}, true);
  CHECK(page.take() ==
        "\033[32m✓\033[0m cudabpf can trace here, but found no libcuda to trace.\n"
        "\n"
        "\033[1mrequired\033[0m\n"
        "  \033[32m✓\033[0m kernel?[2J  Linux??\n");
}
