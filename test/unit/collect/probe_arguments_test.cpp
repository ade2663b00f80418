// Where the arguments of USDT probes are, and which places of a probe are recorded.
#include "collect/probe_arguments.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "collect/library_functions.hpp"

using namespace cudabpf;

namespace {

std::optional<abi::cb_read> read_of_one(std::string_view text) {
  auto reads = reads_of_probe(elf::Machine::x86_64, text, 1);
  return reads ? std::optional(reads->at(0)) : std::nullopt;
}

elf::Contents c10_with(std::vector<elf::StaticProbe> probes) {
  elf::Contents contents;
  contents.soname = "libc10_cuda.so";
  contents.probes = std::move(probes);
  return contents;
}

// As PyTorch's macro has it: the sizes are negative, whatever the types are.
constexpr const char* OF_MALLOC = "-8@8(%rsp) -1@7(%rsp) -8@%rbx -8@%rax";

}  // namespace

TEST_CASE("An argument of a probe is in a register, in memory, or a constant") {
  auto in_register = read_of_one("8@%rdi");
  REQUIRE(in_register);
  CHECK(in_register->kind == abi::CB_READ_REGISTER);
  CHECK(in_register->base == 14);
  CHECK(in_register->count == 8);
  CHECK(read_of_one("-4@%eax")->count == (4 | CB_SIGNED));
  CHECK(read_of_one("-4@%eax")->base == 10);
  CHECK(read_of_one("1@%r15b")->base == 0);
  CHECK(read_of_one("2@%bp")->base == 4);
  CHECK(read_of_one("1@%sil")->base == 13);

  auto on_stack = read_of_one("-4@-20(%rbp)");
  REQUIRE(on_stack);
  CHECK(on_stack->kind == abi::CB_READ_MEMORY);
  CHECK(on_stack->base == 4);
  CHECK(static_cast<std::int16_t>(on_stack->offset) == -20);
  CHECK(on_stack->size == 0);
  CHECK(read_of_one("8@(%rsp)")->base == 19);
  CHECK(read_of_one("8@(%rsp)")->offset == 0);
  auto in_table = read_of_one("8@16(%rax,%r8,4)");
  REQUIRE(in_table);
  CHECK(in_table->base == 10);
  CHECK(in_table->size == CB_INDEX(9, 2));

  for (std::int32_t number : {0, 5, -1, 1 << 20, -70000}) {
    auto constant = read_of_one("8@$" + std::to_string(number));
    REQUIRE(constant);
    CHECK(constant->kind == abi::CB_READ_CONSTANT);
    CHECK(static_cast<std::int32_t>(constant->size << 16 | constant->offset) == number);
  }
}

TEST_CASE("An argument whose place is not understood is not guessed") {
  for (const char* text : {"8@sym+4(%rip)",
                           "8@4(%rip)",
                           "8f@%xmm0",
                           "8@%xmm0",
                           "%rdi",
                           "8@",
                           "3@%rdi",
                           "16@%rdi",
                           "8@%ah",
                           "8@%edi2",
                           "8@$",
                           "8@$4294967296",
                           "8@$x",
                           "8@(%edi)",
                           "8@40000(%rsp)",
                           "8@(%rsp",
                           "8@%rsp)",
                           "8@(,%rax,8)",
                           "8@(%rax,%rbx)",
                           "8@(%rax,%rbx,3)",
                           "8@(%rax,%rbx,16)",
                           "8@-4+8(%rsp)",
                           "8@0x10(%rsp)",
                           "@%rdi",
                           "-@%rdi",
                           "8@sym",
                           "8@*8(%rsp)",
                           "99999999999@%rdi"}) {
    CAPTURE(text);
    CHECK_FALSE(read_of_one(text));
  }
}

TEST_CASE("A probe has as many arguments as the table says") {
  auto count = [](std::string_view text, std::size_t wanted) {
    auto reads = reads_of_probe(elf::Machine::x86_64, text, wanted);
    return reads ? static_cast<int>(reads->size()) : -1;
  };
  CHECK(count(OF_MALLOC, 4) == 4);
  CHECK(count(OF_MALLOC, 3) == -1);
  CHECK(count(OF_MALLOC, 5) == -1);
  CHECK(count("", 0) == 0);
  CHECK(count("", 1) == -1);
  CHECK(count(" 8@%rdi  8@%rsi ", 2) == 2);
  CHECK(reads_of_probe(elf::Machine::x86_64, OF_MALLOC, 4)->at(3).to == 3);
  CHECK_FALSE(reads_of_probe(elf::Machine::aarch64, OF_MALLOC, 4));
}

TEST_CASE("Each place of a probe is recorded, at its entry alone") {
  const Api& c10 = api(ApiId::c10);
  auto contents = c10_with({{"pytorch:malloc", 0x100, 0x900, OF_MALLOC},
                            {"pytorch:malloc", 0x110, 0x900, "8@sym(%rip) -4@%esi 8@%rdx 8@%rcx"},
                            {"pytorch:malloc", 0x120, 0x900, OF_MALLOC},
                            {"pytorch:malloc", 0x120, 0x900, OF_MALLOC},
                            {"pytorch:malloc", 0x130, 0x900, "-8@%rdi -2@%si -8@%rdx -8@%rcx"},
                            {"pytorch:free", 0x200, 0, "8@%rbx"},
                            {"pytorch:moved", 0x300, 0, "8@%rbx"}});
  FunctionFilter filter;
  FunctionNumbers numbers;
  Library library;
  CHECK_FALSE(filter.selects(ApiId::c10));
  filter.blocks = true;
  auto probes = plan_probes(c10, contents, false, filter, numbers, library);
  CHECK(library.error.empty());
  CHECK(library.functions == 2);
  CHECK(library.left_out == 2);
  CHECK(library.skipped == 1);
  REQUIRE(probes.size() == 3);
  for (const PlannedProbe& probe : probes) {
    CHECK(probe.plan.entry_only);
    CHECK(filter.entry_only(*numbers.find(probe.plan.function)));
  }
  CHECK(probes[0].semaphore == 0x900);
  CHECK(probes[1].offset == 0x120);
  CHECK(probes[2].semaphore == 0);
  CHECK(probes[2].reads.size() == 1);
  CHECK(numbers.find(probes[2].plan.function)->name == "pytorch:free");
}

TEST_CASE("A library without the probes, or of which none is understood, is not traced") {
  const Api& c10 = api(ApiId::c10);
  FunctionFilter filter;
  filter.blocks = true;
  auto error = [&](const elf::Contents& contents, bool named = false) {
    FunctionNumbers numbers;
    Library library;
    plan_probes(c10, contents, named, filter, numbers, library);
    return library.error;
  };
  CHECK(error(c10_with({})) == "it has no USDT probe pytorch:malloc");
  CHECK(error(c10_with({{"pytorch:malloc", 1, 0, "8@%xmm0"}})) ==
        "how its USDT probes are to be read is not understood");
  auto other = c10_with({{"pytorch:malloc", 1, 0, OF_MALLOC}});
  CHECK(error(other).empty());
  other.soname = "libmine.so";
  CHECK(error(other).find("SONAME") != std::string::npos);
  CHECK(error(other, true).empty());
}
