#include "analyze/short_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "analyze/questions/calls.hpp"
#include "analyze/questions/kernels.hpp"
#include "analyze/telling_names.hpp"
#include "support/sample_program.hpp"
#include "support/trace_text.hpp"

using namespace cudabpf::analyze;

namespace {

Line launch_of(Names& names, Name kernel) {
  Line line;
  line.kind = LineKind::call;
  line.type = names.add("kernel");
  line.op = names.add("launch");
  line.kernel = kernel;
  line.meaning = &meaning_of_call(line.type, line.op);
  return line;
}

}  // namespace

TEST_CASE("Short names are those of the table of kernels") {
  Names names;
  ShortNames kernels(names);
  std::vector<std::string_view> full = {"void f<int>(int*)", "void f<float>(float*)", "g"};
  std::vector<Name> known;
  for (auto name : full) {
    known.push_back(names.add(name));
    kernels.line(launch_of(names, known.back()));
  }
  kernels.settle();
  std::vector<std::string> telling = telling_names(full);
  for (std::size_t i = 0; i < full.size(); i++) {
    CHECK(kernels.of(known[i]) == telling[i]);
    CHECK(kernels.learned(known[i]) == telling[i]);
  }
  CHECK(kernels.of(names.add("void h<int>(int*)")) == "h");
}

TEST_CASE("A kernel that comes late is distinguished, and changes no name") {
  Names names;
  ShortNames kernels(names);
  Name first = names.add("void f<int>(int*)"), late = names.add("void f<float>(float*)");
  kernels.line(launch_of(names, first));
  kernels.settle();
  CHECK(kernels.of(first) == "f");
  CHECK(kernels.learned(late) == "f<float>");
  CHECK(kernels.of(first) == "f");
}

TEST_CASE("More kernels than are distinguished have their functions' names") {
  Names names;
  ShortNames kernels(names);
  for (bool late : {false, true}) {
    for (int i = 0; i < 33'000; i++) {
      Name name = names.add(fmt::format("void f<A{}{}>(int)", late ? "late" : "", i));
      if (late)
        CHECK(kernels.learned(name).starts_with("f"));
      else
        kernels.line(launch_of(names, name));
    }
    if (!late) kernels.settle();
  }
  CHECK(kernels.of(names.add("void f<A7>(int)")) == "f<A7>");
  CHECK(kernels.of(names.add("void f<A32999>(int)")) == "f");
  CHECK(kernels.of(names.add("void f<Alate32999>(int)")) == "f");
}

TEST_CASE("Kernels are distinguished from others that were launched") {
  LineParser parser;
  ShortNames kernels(parser.names());
  SampleProgram program;
  program.launch("void n::each<n::Add>(int)");
  program.launch("void n::each<n::Mul>(int)");
  program.launch("void n::each<n::Add>(int)");
  program.call("module", "get", "cuModuleGetFunction", 1,
               R"x(,"kernel":"void n::each<n::Sub>(int)")x");
  each_line(parser, program.text(), [&](const Line& line) { kernels.line(line); });
  kernels.settle();
  CHECK(kernels.of(parser.names().add("void n::each<n::Add>(int)")) == "each<Add>");
  CHECK(kernels.of(parser.names().add("void n::each<n::Mul>(int)")) == "each<Mul>");
  CHECK(kernels.of(parser.names().add("void n::each<n::Sub>(int)")) == "each");  // not launched
}

TEST_CASE("Kernels in graphs are distinguished, too, and have the same names in all answers") {
  SampleProgram program;
  program.graph_content(1, 2, "void f<int>(int*)");
  program.launch_graph(R"("graph":1)");
  program.launch("void f<float>(float*)");
  TraceText trace(program.text());
  Kernels kernels(trace.names());
  trace.show(kernels);
  auto all = kernels.figures(Kernels::By::name);
  REQUIRE(all.size() == 2);
  CHECK(all[0].name == "f<int>");
  CHECK(all[1].name == "f<float>");
  TraceText again(program.text());
  Calls calls(again.names(), Calls::By::kernel);
  again.show(calls);
  auto groups = calls.groups();
  CHECK(std::any_of(groups.begin(), groups.end(),
                    [](const auto& group) { return group.shown == "f<float>"; }));
}

TEST_CASE("A part's kernels have the names that they have in the whole trace") {
  SampleProgram program;
  program.launch("void f<int>(int*)");
  Part part{program.now, Part::OPEN};
  program.launch("void f<float>(float*)");
  TraceText trace(program.text());
  Kernels kernels(trace.names());
  trace.show(kernels, part);
  auto all = kernels.figures(Kernels::By::name);
  REQUIRE(all.size() == 1);
  CHECK(all[0].name == "f<float>");
  TraceText again(program.text());
  Calls calls(again.names(), Calls::By::kernel);
  again.show(calls, part);
  REQUIRE(calls.groups().size() == 1);
  CHECK(calls.groups()[0].shown == "f<float>");
}
