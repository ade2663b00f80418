#include "cudabpf/cuda_api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>
#include <vector>

#include "collect/probe_plan.hpp"
#include "state/current_contexts.hpp"
#include "support/wide_function.hpp"

using namespace cudabpf;

namespace {

const Function& function(std::string_view symbol) {
  const Function* found = find_function(symbol);
  REQUIRE(found);
  return *found;
}

std::string text(const abi::cb_read& read) {
  unsigned base = read.base, to = read.to, offset = read.offset, size = read.size,
           count = read.count;
  std::string from =
      base >= CB_RETURNED ? fmt::format("r{}", base - CB_RETURNED) : fmt::format("{}", base);
  if (offset) from += fmt::format("+{}", offset);
  switch (read.kind) {
    case abi::CB_READ_STRUCT:
      return fmt::format("{}: {} bytes at {}", to, size, from);
    case abi::CB_READ_ARRAY:
      return fmt::format("{}: {} bytes at {}, as many words as {}", to, size, from, count);
    case abi::CB_READ_INTS:
      return fmt::format("{}: {} bytes at {}, as many ints as {}", to, size, from, count);
    case abi::CB_READ_STRING:
      return fmt::format("{}: string at {}", to, from);
    case abi::CB_READ_RETURN:
      return fmt::format("r{}: {} bytes at {}", to, size, from);
    case abi::CB_READ_LIST:
      return fmt::format("r{}: {} bytes at {}, as many words as {}", to, size, from, count);
    case abi::CB_READ_ONLY:
      return fmt::format("only if {} is {}", from, size);
    default:
      return "?";
  }
}

using Lines = std::vector<std::string>;

// What a plan records, a line each; what it does not is left out.
Lines lines(const Plan& made) {
  unsigned words = made.plan.nargs, kernel = made.plan.handle_arg, config = made.plan.config_arg,
           config_words = made.plan.config_words;
  Lines all{fmt::format("{} words", words)};
  if (kernel != CB_NO_ARG) all.push_back(fmt::format("kernel {}", kernel));
  if (config != CB_NO_ARG) all.push_back(fmt::format("config {}, {} words", config, config_words));
  if (made.plan.forgets_names) all.emplace_back("forgets");
  for (const abi::cb_read& read : made.reads) all.push_back(text(read));
  return all;
}

Lines plan_of(std::string_view symbol) { return lines(plan_for(function(symbol), 1)); }

bool takes_four_bytes(Role role) {
  return role == Role::u32 || role == Role::i32 || role == Role::f32 || role == Role::device ||
         role == Role::ptr32 || role == Role::nccl_type || role == Role::nccl_op ||
         role == Role::blas_op || role == Role::cuda_type || role == Role::compute_type ||
         role == Role::rank || role == Role::ranks;
}

const Argument& argument_at(const Function& f, unsigned word) {
  auto found = std::find_if(f.arguments.begin(), f.arguments.end(),
                            [&](const Argument& a) { return a.word == static_cast<int>(word); });
  REQUIRE(found != f.arguments.end());
  return *found;
}

}  // namespace

TEST_CASE("The table holds every function once, in the order that the search needs") {
  auto table = cuda_functions();
  CHECK(std::count_if(table.begin(), table.end(),
                      [](const Function& f) { return f.api == ApiId::cuda; }) == 682);
  for (std::size_t i = 0; i < table.size(); i++) {
    CAPTURE(table[i].symbol);
    if (i > 0) CHECK(table[i - 1].symbol < table[i].symbol);
    CHECK(find_function(table[i].symbol) == &table[i]);
    CHECK(table[i].symbol.starts_with(api(table[i].api).prefix));
    CHECK(table[i].type != Type::none);
    CHECK(table[i].op != Op::none);
  }
}

TEST_CASE("A symbol is its API name and the suffixes of its ABI and stream mode") {
  for (const Function& f : cuda_functions()) {
    CAPTURE(f.symbol);
    std::string_view name = f.symbol;
    for (std::string_view suffix : {"_ptsz", "_ptds", "_64"})
      if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
    for (std::string_view suffix : {"_v2", "_v3", "_v4"})
      if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
    CHECK(f.name == name);
  }
}

TEST_CASE("What the table does not know is not found") {
  for (auto symbol :
       {"", "cu", "cuMemAllo", "cuMemAlloc_v", "cuMemAlloc_v3", "cuZ", "zzz", "CUINIT"})
    CHECK(find_function(symbol) == nullptr);
}

TEST_CASE("Profiles have names, and each holds the smaller ones") {
  CHECK(parse_profile("light") == Profile::light);
  CHECK(parse_profile("default") == Profile::default_);
  CHECK(parse_profile("full") == Profile::full);
  CHECK_FALSE(parse_profile("default_"));
  CHECK_FALSE(parse_profile(""));
  for (auto profile : {Profile::light, Profile::default_, Profile::full})
    CHECK(parse_profile(to_string(profile)) == profile);
  CHECK(function("cuLaunchKernel").profile == Profile::light);
  CHECK(function("cuStreamCreate").profile == Profile::default_);
  CHECK(function("cuCtxGetDevice").profile == Profile::full);
}

TEST_CASE("Roles are named as the table spells them") {
  CHECK(to_string(Role::u8) == "u8");
  CHECK(to_string(Role::location) == "location");
  CHECK(to_string(Role::ptr) == "ptr");
  CHECK(to_string(Role::mem_handle) == "mem_handle");
  CHECK(to_string(Role::hidden) == "hidden");
}

TEST_CASE("Every plan stays inside its function") {
  std::uint16_t id = 0;
  for (const Function& f : cuda_functions()) {
    CAPTURE(f.symbol);
    Plan made = plan_for(f, ++id);
    const abi::cb_plan& plan = made.plan;
    CHECK(plan.function == id);
    CHECK(plan.nargs <= CB_MAX_ARGS);
    CHECK(plan.forgets_names == (f.names == NamesEffect::forget));

    // Words are numbered in order, so that each is one place of the call.
    int last = -1, on_stack = 0;
    for (const Argument& a : f.arguments) {
      if (a.word < 0) continue;
      if (a.by_value) {
        CHECK(a.word >= 6);
        on_stack = a.word + static_cast<int>(struct_words(a.layout));
        continue;
      }
      CHECK(a.word > last);
      last = int{a.word};
      if (a.role != Role::hidden && a.word < CB_MAX_ARGS) CHECK(a.word < plan.nargs);
    }
    CHECK(static_cast<int>(plan.nargs) <= std::max(last + 1, on_stack));

    // The launch programs look at the first two words, and follow no rows.
    if (f.launches_kernel() && plan.handle_arg != CB_NO_ARG) {
      CHECK(plan.nargs <= CB_PLAIN_ARGS);
      CHECK(plan.handle_arg < 2);
      CHECK(argument_at(f, plan.handle_arg).role == Role::function);
      CHECK_FALSE(plan.returns);
    }
    if (plan.config_arg != CB_NO_ARG) {
      CHECK(plan.config_arg < 2);
      CHECK(plan.config_words <= 8);
      REQUIRE(made.reads.size() == 1);
      CHECK(made.reads[0].base == plan.config_arg);
    }
    // A size rule refers to arguments that are recorded.
    if (f.size.kind != SizeRule::Kind::none) {
      REQUIRE(f.size.argument >= 0);
      REQUIRE(static_cast<std::size_t>(f.size.argument) < f.arguments.size());
      CHECK(f.arguments[static_cast<std::size_t>(f.size.argument)].word < CB_MAX_ARGS);
      if (f.size.times >= 0)
        CHECK(f.arguments[static_cast<std::size_t>(f.size.times)].word < CB_MAX_ARGS);
    }
  }
}

TEST_CASE("Everything that the table says is read has a place of its own") {
  for (const Function& f : cuda_functions()) {
    CAPTURE(f.symbol);
    Plan made = plan_for(f, 1);
    const abi::cb_plan& plan = made.plan;
    auto outs = std::count_if(f.arguments.begin(), f.arguments.end(),
                              [](const Argument& a) { return a.out; });
    auto structs = std::count_if(f.arguments.begin(), f.arguments.end(), [](const Argument& a) {
      return a.role == Role::in_struct && !a.by_value;
    });
    CHECK(plan.returns == (outs > 0));
    CHECK(made.reads.size() <= CB_MAX_READS);
    unsigned end = plan.nargs, returned = 0, outs_read = 0;
    for (const abi::cb_read& read : made.reads) {
      CAPTURE(text(read));
      CHECK(abi::cb_read_fits(&read));
      if (read.kind == abi::CB_READ_LIST) {
        CHECK(&read == &made.reads.front());
        CHECK(argument_at(f, read.base).out);
        CHECK(takes_four_bytes(argument_at(f, read.count).role));
        outs_read++;
      } else if (read.kind == abi::CB_READ_RETURN) {
        CHECK(read.to == returned++);
        if (read.base >= CB_RETURNED) {
          CHECK(read.base < CB_RETURNED + returned - 1);
          continue;
        }
        CHECK(read.base < plan.nargs);
        if (!argument_at(f, read.base).out) continue;  // a conditional node's type and bodies
        outs_read++;
        CHECK(read.size == (takes_four_bytes(argument_at(f, read.base).role) ? 4 : 8));
      } else if (read.kind != abi::CB_READ_ONLY) {
        CHECK(read.to == end);
        CHECK(read.base < end);
        end += read.size / 8U;
        if (read.kind == abi::CB_READ_STRING) {
          CHECK(is_text(argument_at(f, read.base).role));
          CHECK(&read == &made.reads.back());
        } else {
          structs--;
          if (read.base < plan.nargs)
            CHECK(read.size == struct_words(argument_at(f, read.base).layout) * 8);
        }
        CHECK((read.kind == abi::CB_READ_ARRAY) == (f.size.kind == SizeRule::Kind::sum_of_array));
        if (read.kind == abi::CB_READ_ARRAY) CHECK(argument_at(f, read.count).role == Role::u64);
        if (read.kind == abi::CB_READ_INTS)
          CHECK(takes_four_bytes(argument_at(f, read.count).role));
      }
    }
    CHECK(structs == 0);
    CHECK(outs_read == std::min<long>(outs, CB_MAX_OUTS));
    CHECK((end - plan.nargs) * 8 <= CB_MAX_STRUCT);
  }
}

TEST_CASE("What a function does to contexts is the same for all of its versions") {
  std::map<std::string_view, const Function*> first;
  for (const Function& f : cuda_functions()) {
    CAPTURE(f.symbol);
    const Function& same = *first.try_emplace(f.name, &f).first->second;
    CHECK(f.context == same.context);
    if (f.context == ContextEffect::none) continue;
    CHECK_FALSE(f.tally_is_enough());
    const Argument *one = context_argument(f), *other = context_argument(same);
    REQUIRE((one == nullptr) == (other == nullptr));
    if (one) CHECK(one->name == other->name);
  }
  CHECK(function("cuCtxDetach").context == ContextEffect::detach);
  CHECK(function("cuGLCtxCreate_v2").context == ContextEffect::create);
  CHECK(function("cuCtxGetCurrent").context == ContextEffect::none);
}

TEST_CASE("Functions whose arguments concern later calls are not merely counted") {
  for (const char* symbol :
       {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemFreeAsync_ptsz", "cuMemHostRegister_v2",
        "cuMemPoolDestroy", "cuCtxSetCurrent", "cuDevicePrimaryCtxRelease_v2", "cuModuleLoadData",
        "cuModuleGetFunction", "cuKernelGetFunction", "cuLibraryUnload", "cuGraphInstantiate_v2",
        "cuStreamBeginCapture_v2", "cuGraphAddNode_v2", "cuIpcOpenMemHandle_v2", "cuStreamCreate",
        "cuGLCtxCreate_v2"})
    CHECK_FALSE(function(symbol).tally_is_enough());
  for (const char* symbol :
       {"cuInit", "cuLaunchKernel", "cuLaunchKernelEx_ptsz", "cuMemcpyHtoDAsync_v2",
        "cuMemcpy2D_v2", "cuMemsetD8_v2", "cuStreamSynchronize", "cuEventRecord", "cuEventQuery",
        "cuGraphLaunch", "cuCtxGetCurrent", "cuGetProcAddress_v2", "cuDeviceGetAttribute"})
    CHECK(function(symbol).tally_is_enough());
  for (const Function& f : cuda_functions()) {
    CAPTURE(f.symbol);
    if (f.kind || f.names != NamesEffect::none) CHECK_FALSE(f.tally_is_enough());
    if (f.launches_kernel()) CHECK(f.tally_is_enough());
  }
}

TEST_CASE("Bytes are counted only for copies whose size is one argument") {
  auto size_of = [](std::string_view symbol) {
    abi::cb_plan plan = plan_for(function(symbol), 1).plan;
    unsigned word = plan.size_arg;
    bool narrow = plan.size_narrow;
    return std::pair(word, narrow);
  };
  CHECK(size_of("cuMemcpyHtoD_v2") == std::pair(2U, false));
  CHECK(size_of("cuMemcpyHtoD") == std::pair(2U, true));
  CHECK(size_of("cuMemcpyPeerAsync") == std::pair(4U, false));
  for (const char* symbol : {"cuMemcpy2D_v2", "cuMemcpyBatchAsync_v2", "cuMemsetD32_v2",
                             "cuMemAlloc_v2", "cuLaunchKernel"})
    CHECK(size_of(symbol).first == CB_NO_ARG);
  CHECK(plan_for_unknown(700).plan.size_arg == CB_NO_ARG);
  std::size_t counted = 0;
  for (const Function& f : cuda_functions()) {
    abi::cb_plan plan = plan_for(f, 1).plan;
    if (plan.size_arg == CB_NO_ARG) continue;
    CAPTURE(f.symbol);
    counted++;
    CHECK(f.type == Type::transfer);
    CHECK(f.arguments[static_cast<std::size_t>(f.size.argument)].word ==
          static_cast<int>(plan.size_arg));
  }
  CHECK(counted == 47);
}

#if defined(__x86_64__)
TEST_CASE("Plans, exactly") {
  CHECK(plan_of("cuLaunchKernel") == Lines{"9 words", "kernel 0"});
  CHECK(plan_of("cuLaunchKernelEx") ==
        Lines{"2 words", "kernel 1", "config 0, 7 words", "2: 56 bytes at 0"});
  CHECK(plan_of("cuLaunchCooperativeKernelMultiDevice") ==
        Lines{"3 words", "config 0, 7 words", "3: 56 bytes at 0"});
  CHECK(plan_of("cuMemAlloc_v2") == Lines{"2 words", "r0: 8 bytes at 0"});
  CHECK(plan_of("cuMemAlloc") == Lines{"2 words", "r0: 4 bytes at 0"});
  CHECK(plan_of("cuMemAllocPitch_v2") == Lines{"5 words", "r0: 8 bytes at 0", "r1: 8 bytes at 1"});
  CHECK(plan_of("cuMemcpy2D_v2") == Lines{"1 words", "1: 128 bytes at 0"});
  CHECK(plan_of("cuModuleGetFunction") == Lines{"3 words", "r0: 8 bytes at 0", "3: string at 2"});
  CHECK(plan_of("cuMemcpyBatchAsync_v2") ==
        Lines{"8 words", "8: 200 bytes at 2, as many words as 3"});
  CHECK(plan_of("cuGraphAddNode") == Lines{"5 words", "r0: 8 bytes at 0", "5: 232 bytes at 4",
                                           "r1: 4 bytes at 4", "only if r1 is 13",
                                           "r2: 8 bytes at 4+32", "r3: 8 bytes at r2"});
  CHECK(plan_of("ncclCommInitAll") == Lines{"3 words", "r0: 256 bytes at 0, as many words as 1",
                                            "3: 128 bytes at 2, as many ints as 1"});
  // The 64-byte handle travels on the stack by value and is no word.
  CHECK(plan_of("cuIpcOpenMemHandle") == Lines{"2 words", "r0: 8 bytes at 0"});
  CHECK(function("cuIpcOpenMemHandle").arguments[1].word == -1);
  CHECK(function("cuIpcOpenMemHandle").arguments[2].word == 1);
  CHECK(plan_of("cuModuleUnload") == Lines{"1 words", "forgets"});
  CHECK(plan_of("cuEventElapsedTime") == Lines{"3 words", "r0: 4 bytes at 0"});
  CHECK(plan_of("cuTensorMapEncodeIm2colWide") == Lines{"16 words"});
  CHECK(plan_of("cuInit") == Lines{"1 words"});
  CHECK(plan_of("cuCtxSynchronize") == Lines{"0 words"});
  CHECK(lines(plan_for_unknown(700)) == Lines{"6 words"});
  CHECK(plan_for_unknown(700).plan.function == 700);
}
#endif

TEST_CASE(
    "Many words, two structs and one behind a pointer in another are read one after the other") {
  CHECK(lines(plan_for(wide_function(), 1)) == Lines{"20 words", "r0: 8 bytes at 0",
                                                     "20: 32 bytes at 1", "24: 40 bytes at 23",
                                                     "29: 56 bytes at 19"});
}

TEST_CASE("Only calls of which a few words are recorded are plain") {
  for (const char* symbol : {"cuInit", "cuCtxSynchronize", "cuEventRecord"})
    CHECK(is_plain(plan_for(function(symbol), 1)));
  for (const char* symbol :
       {"cuMemAlloc_v2", "cuMemcpy2D_v2", "cuModuleUnload", "cuTensorMapEncodeIm2colWide"})
    CHECK_FALSE(is_plain(plan_for(function(symbol), 1)));
}

TEST_CASE("Functions with the same rows share them, and all fit") {
  std::vector<abi::cb_read> rows(CB_READS);
  ReadTable table(rows);
  std::map<std::vector<std::string>, unsigned> placed;
  for (const Function& f : cuda_functions()) {
    CAPTURE(f.symbol);
    Plan made = plan_for(f, 1);
    auto at = table.place(made.reads);
    REQUIRE(at);
    CHECK((*at == 0) == made.reads.empty());
    std::vector<std::string> read;
    for (const abi::cb_read& one : made.reads) read.push_back(text(one));
    CHECK(placed.try_emplace(read, *at).first->second == *at);
    for (std::size_t i = 0; i < read.size(); i++) CHECK(text(rows[*at + i]) == read[i]);
    CHECK(rows[*at + read.size()].kind == abi::CB_READ_NOTHING);
  }
  ReadTable small{std::span<abi::cb_read>(rows).first(2)};
  CHECK(small.place(std::vector<abi::cb_read>(2)) == std::nullopt);
}

TEST_CASE("A function that is not known shows its raw arguments") {
  Function unknown = unknown_function(ApiId::cuda, "cuFromTheFuture_v9");
  CHECK(unknown.symbol == "cuFromTheFuture_v9");
  CHECK(unknown.name == "cuFromTheFuture_v9");
  CHECK(unknown.type == Type::other);
  CHECK(unknown.profile == Profile::default_);
  REQUIRE(unknown.arguments.size() == 6);
  for (int i = 0; i < 6; i++) {
    const Argument& argument = unknown.arguments[static_cast<std::size_t>(i)];
    CHECK(argument.name == "arg" + std::to_string(i));
    CHECK(argument.role == Role::u64);
    CHECK(argument.word == i);
    CHECK_FALSE(argument.out);
  }
  CHECK_FALSE(unknown.launches_kernel());
  CHECK_FALSE(unknown.entry_is_enough());
}

TEST_CASE("An entry is enough where the return adds nothing that is wanted") {
  for (auto symbol : {"cuLaunchKernel", "cuLaunchKernelEx_ptsz", "cuMemcpyAsync",
                      "cuMemcpyHtoDAsync_v2", "cuMemsetD8Async", "cuGraphLaunch"})
    CHECK(function(symbol).entry_is_enough());
  for (auto symbol : {"cuMemcpyHtoD_v2", "cuMemsetD8_v2", "cuMemAllocAsync", "cuModuleGetFunction",
                      "cuModuleUnload", "cuStreamSynchronize", "cuGraphInstantiateWithFlags"})
    CHECK_FALSE(function(symbol).entry_is_enough());
}

TEST_CASE("Results have names") {
  CHECK(result_name(ApiId::cuda, 0) == "CUDA_SUCCESS");
  CHECK(result_name(ApiId::cuda, 2) == "CUDA_ERROR_OUT_OF_MEMORY");
  CHECK(result_name(ApiId::cuda, 700) == "CUDA_ERROR_ILLEGAL_ADDRESS");
  CHECK(result_name(ApiId::cuda, 999) == "CUDA_ERROR_UNKNOWN");
  CHECK(result_name(ApiId::cuda, -1).empty());
  CHECK(result_name(ApiId::cuda, 12345).empty());
  CHECK(result_name(ApiId::nccl, 0) == "ncclSuccess");
  CHECK(result_name(ApiId::nccl, 4) == "ncclInvalidArgument");
  CHECK(result_name(ApiId::nccl, 700).empty());
  // What is still under way has not failed.
  CHECK_FALSE(api(ApiId::cuda).is_failure(600));
  CHECK(api(ApiId::cuda).is_failure(7));
  CHECK_FALSE(api(ApiId::nccl).is_failure(7));
  CHECK(api(ApiId::nccl).is_failure(600));
}

TEST_CASE("What a call means follows from its type and op, and from its own row") {
  auto of = [](const char* symbol) -> const Function& { return *find_function(symbol); };
  CHECK(of("cuLaunchKernelEx").launches_kernel());
  CHECK(of("cuGraphLaunch").launches_graph());
  CHECK(of("cuGraphLaunch").meaning.work == Work::launch);
  CHECK_FALSE(of("cuGraphUpload").launches_graph());
  CHECK(of("cuMemcpyHtoD_v2").meaning.work == Work::to_device);
  CHECK(of("cuMemcpyPeer").copies());
  CHECK_FALSE(of("cuMemcpyPeer").meaning.one_device);
  CHECK(of("cuMemBatchDecompressAsync").copies());
  CHECK_FALSE(of("cuMemBatchDecompressAsync").meaning.measured);
  CHECK(of("cuMemImportFromShareableHandle").memory_effect() == MemoryEffect::import);
  CHECK(of("cuMemFree_v2").memory_effect() == MemoryEffect::free);
  CHECK(of("cuGraphAddMemcpyNode").graph == GraphAction::add_node);
  CHECK(of("cuGraphAddMemcpyNode").node == NodeWork::copy);
  CHECK(of("cuGraphAddMemcpyNode").meaning.node == NodeWork::none);  // nothing is captured
  CHECK(of("cuStreamWaitEvent").meaning.event == EventEffect::wait);
  CHECK(of("cuMemAlloc_v2").stack_words == 0);
  CHECK(of("cuLaunchKernel").stack_words == 5);
  CHECK(of("cuMemcpyBatchAsync").stack_words == 3);
  CHECK(of("cuGraphAddMemsetNode").stack_words == 0);
  CHECK(unknown_function(ApiId::cuda, "cuNew").stack_words >= 24);
  CHECK(unknown_function(ApiId::cuda, "cuNew").meaning.work == Work::other);
  CHECK_FALSE(unknown_function(ApiId::cuda, "cuNew").meaning.tally);
  CHECK(meaning_of_call(Type::none, Op::none).work == Work::other);
  CHECK(meaning_of_call(Type::transfer, Op::HtoH).work == Work::copy);  // only arguments say that
}
