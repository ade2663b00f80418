// The memory that the driver took, beside what NVML says.
#include "analyze/memory/driver_memory.hpp"

#include <fmt/format.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "analyze/memory/memory.hpp"
#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::uint64_t ONE_MIB = 1 << 20, ONE_MS = 1'000'000;
constexpr std::uint64_t DEVICE = 0x5c000002;

struct DriverLines {
  std::string text;
  std::uint64_t ms = 0;
  int pid = 7;

  DriverLines& add(const std::string& fields) {
    text += fmt::format(R"({{{},"ts":{},"pid":{},"tid":{}}})"
                        "\n",
                        fields, ms * ONE_MS, pid, pid);
    return *this;
  }
  DriverLines& take(int call, std::uint64_t size, std::uint64_t object,
                    std::string_view status = "NV_OK", std::uint64_t client = 0xc1d00025) {
    return add(fmt::format(
        R"("type":"kernel","op":"ioctl","name":"NV_ESC_RM_ALLOC","duration_us":1.000,"ret":0{},"device_file":"nvidiactl","class":"NV01_MEMORY_LOCAL_USER","group":"memory","size":{},"client":"{:#x}","parent_object":"{:#x}","object":"{:#x}","status":"{}")",
        call ? fmt::format(R"(,"call":{})", call) : "", size, client, DEVICE, object, status));
  }
  DriverLines& give_back(std::uint64_t object, std::uint64_t client = 0xc1d00025) {
    return add(fmt::format(
        R"("type":"kernel","op":"ioctl","name":"NV_ESC_RM_FREE","duration_us":1.000,"ret":0,"device_file":"nvidiactl","class":"NV01_MEMORY_LOCAL_USER","group":"memory","client":"{:#x}","parent_object":"{:#x}","object":"{:#x}","status":"NV_OK")",
        client, DEVICE, object));
  }
  DriverLines& call(int id, std::string_view type, std::string_view op, std::string_view name,
                    const std::string& more = "") {
    return add(
        fmt::format(R"("id":{},"type":"{}","op":"{}","name":"{}","duration_us":1.000,"ret":0{})",
                    id, type, op, name, more));
  }
  // NVML's figures of processes, as a list.
  DriverLines& sample(const std::string& processes, int gpu = 0) {
    text += fmt::format(
        R"({{"type":"gpu","op":"sample","ts":{},"gpu":{},"memory_used":1,"processes":[{}]}})"
        "\n",
        ms * ONE_MS, gpu, processes);
    return *this;
  }
  DriverLines& nvml(std::uint64_t mebibytes, int gpu = 0) {
    return sample(fmt::format(R"({{"pid":{},"memory":{}}})", pid, mebibytes * ONE_MIB), gpu);
  }
  DriverLines& after(std::uint64_t more) {
    ms += more;
    return *this;
  }
};

struct AnsweredDriver {
  explicit AnsweredDriver(const std::string& lines, Part part = {})
      : trace(lines), memory(trace.names(), part) {
    trace.show(memory, part);
  }
  Json processes() const { return memory_json(memory)["driver"]["processes"]; }
  std::string page() const {
    return page_text([&](Page& page) { add_memory(page, memory, 5); });
  }
  TraceText trace;
  Memory memory;
};

// A context, PyTorch's memory and a kernel's first launch: 100, 64 and 30 MiB.
DriverLines program_that_takes() {
  DriverLines lines;
  lines.take(1, 100 * ONE_MIB, 0x10).call(1, "context", "create", "cuCtxCreate");
  lines.take(2, 64 * ONE_MIB, 0x11)
      .call(2, "memory", "alloc", "cuMemAlloc",
            R"(,"holder":"libc10_cuda.so","size":66000000,"ptr":"0x700000","kind":"device")");
  return lines.take(3, 30 * ONE_MIB, 0x12).call(3, "kernel", "launch", "cuLaunchKernel");
}

Json shares_json(std::initializer_list<std::tuple<const char*, const char*, int, int>> all) {
  Json json = Json::array();
  for (auto [key, name, mebibytes, objects] : all)
    json.push_back(
        {{key, name ? Json(name) : Json()}, {"bytes", mebibytes * ONE_MIB}, {"objects", objects}});
  return json;
}

}  // namespace

TEST_CASE("What the driver took, for whom and in which calls, is held against NVML's figure") {
  auto lines = program_that_takes().after(60).nvml(200).after(60).call(4, "sync", "wait",
                                                                       "cuCtxSynchronize");
  AnsweredDriver answered(lines.text);
  Json json = answered.processes();
  REQUIRE(json.size() == 1);
  CHECK(json[0]["pid"] == 7);
  CHECK(json[0]["most"] == Json{{"ts", 60 * ONE_MS},
                                {"nvml", 200 * ONE_MIB},
                                {"asked_for", 64 * ONE_MIB},
                                {"driver", 130 * ONE_MIB},
                                {"unexplained", 6 * ONE_MIB},
                                {"shares", shares_json({{"function", "cuCtxCreate", 100, 1},
                                                        {"holder", "libc10_cuda.so", 64, 1},
                                                        {"function", "cuLaunchKernel", 30, 1}})}});
  CHECK(json[0]["last"] == json[0]["most"]);
  CHECK_THAT(answered.page(), ContainsSubstring("GPU memory of process 7, at 0.060000 s"));
  CHECK_THAT(answered.page(), ContainsSubstring("the driver, in cuCtxCreate"));
  CHECK_THAT(answered.page(), ContainsSubstring("unexplained"));
  CHECK_THAT(answered.page(), ContainsSubstring("What this process had before the trace began"));
}

TEST_CASE("A figure of NVML's counts only while the process's memory is steady") {
  SECTION("just before the figure, memory was taken") {
    auto lines = program_that_takes().after(49).nvml(200).after(100).call(4, "sync", "wait",
                                                                          "cuCtxSynchronize");
    CHECK(AnsweredDriver(lines.text).processes()[0]["most"].is_null());
    CHECK_THAT(AnsweredDriver(lines.text).page(), ContainsSubstring("not shown for 1 process"));
  }
  SECTION("just after it") {
    auto lines = program_that_takes().after(60).nvml(200).after(49).take(0, ONE_MIB, 0x20);
    CHECK(AnsweredDriver(lines.text).processes()[0]["most"].is_null());
  }
  SECTION("late enough after it, as it was before") {
    auto lines = program_that_takes().after(60).nvml(200).after(51).take(0, ONE_MIB, 0x20);
    CHECK(AnsweredDriver(lines.text).processes()[0]["most"]["unexplained"] == 6 * ONE_MIB);
  }
  SECTION("a figure outside of the part") {
    auto lines = program_that_takes().after(60).nvml(200).after(60).nvml(194).after(60);
    Json json = AnsweredDriver(lines.text, {.from = 100 * ONE_MS}).processes();
    CHECK(json[0]["most"]["ts"] == 120 * ONE_MS);
    CHECK(json[0]["most"]["unexplained"] == 0);
  }
}

TEST_CASE("Memory that the driver gave back is in no share") {
  auto answer = [](DriverLines lines) {
    lines.after(60).nvml(200).after(60);
    return AnsweredDriver(lines.text).processes()[0]["last"];
  };
  CHECK(answer(program_that_takes().give_back(0x10))["driver"] == 30 * ONE_MIB);
  CHECK(answer(program_that_takes().give_back(DEVICE))["shares"]
            .empty());  // with all that is below it
  CHECK(answer(program_that_takes().give_back(0xc1d00025))["shares"].empty());
  CHECK(answer(program_that_takes().give_back(0x99))["driver"] == 130 * ONE_MIB);
  CHECK(answer(program_that_takes().take(0, ONE_MIB, 0x10))["driver"] == 31 * ONE_MIB);
  // Its parent's handle is memory, too: how the parent was freed is lost.
  CHECK(answer(program_that_takes().take(0, ONE_MIB, DEVICE).give_back(DEVICE))["shares"].empty());
  CHECK(answer(program_that_takes().take(0, std::uint64_t{1} << 43, 0x20))["driver"] ==
        130 * ONE_MIB);  // more than any GPU has
  CHECK(answer(program_that_takes().give_back(0x10, 0xc1d00099))["driver"] == 130 * ONE_MIB);
  CHECK(answer(program_that_takes().take(0, ONE_MIB, 0x10))["driver"] ==
        31 * ONE_MIB);  // its free is lost
  CHECK(answer(program_that_takes().take(0, ONE_MIB, 0x20, "NV_ERR_NO_MEMORY"))["driver"] ==
        130 * ONE_MIB);
}

TEST_CASE("Memory of calls that are not in the trace is the driver's own") {
  auto lines = program_that_takes()
                   .take(0, ONE_MIB, 0x20)
                   .take(9, ONE_MIB, 0x21)
                   .after(60)
                   .nvml(200)
                   .after(60);
  CHECK(AnsweredDriver(lines.text).processes()[0]["most"]["shares"][3] ==
        shares_json({{"function", nullptr, 2, 2}})[0]);
  CHECK_THAT(AnsweredDriver(lines.text).page(),
             ContainsSubstring("in calls that are not in the trace"));
}

TEST_CASE("NVML's figures are added up over GPUs, and kept apart by process") {
  auto lines = program_that_takes();
  lines.after(60).nvml(150).nvml(60, 1).after(1000).nvml(150).sample("", 1).after(1000);
  lines.pid = 8;
  lines.take(0, 3 * ONE_MIB, 0x10, "NV_OK", 0xc1d00030).after(1000).nvml(4).after(60).nvml(2);
  lines.after(60).call(9, "sync", "wait", "cuCtxSynchronize");
  Json json = AnsweredDriver(lines.text).processes();
  REQUIRE(json.size() == 2);
  CHECK(json[0]["pid"] == 7);
  CHECK(json[0]["most"]["nvml"] == 210 * ONE_MIB);
  CHECK(json[0]["last"]["nvml"] == 150 * ONE_MIB);
  CHECK(json[1]["most"]["nvml"] == 4 * ONE_MIB);
  CHECK(json[1]["last"]["unexplained"] == -1 * static_cast<std::int64_t>(ONE_MIB));
}

TEST_CASE("A figure that was read before memory changed does not count") {
  auto lines = program_that_takes();
  lines.after(60).nvml(150).nvml(60, 1).after(500).give_back(0x10).after(60).nvml(150).after(60);
  Json json = AnsweredDriver(lines.text).processes();
  CHECK(json[0]["last"]["ts"] == 60 * ONE_MS);  // afterwards the other GPU's is an old one
}

TEST_CASE("A trace without requests to the driver says nothing of its memory") {
  DriverLines lines;
  lines.call(1, "context", "create", "cuCtxCreate").after(60).nvml(200).after(60);
  CHECK_FALSE(memory_json(AnsweredDriver(lines.text).memory).contains("driver"));
}

TEST_CASE("What the driver has for its own needs is known when memory runs out") {
  auto lines = program_that_takes();
  lines.add(
      R"("id":4,"type":"memory","op":"alloc","name":"cuMemAlloc","duration_us":1.000,"ret":2,"size":1000,"kind":"device","error":"CUDA_ERROR_OUT_OF_MEMORY")");
  AnsweredDriver answered(lines.text);
  Json moment = out_of_memory_json(answered.memory)["first"][0];
  CHECK(moment["driver"] == 130 * ONE_MIB);
  std::string text = page_text([&](Page& page) { add_out_of_memory(page, answered.memory); });
  CHECK_THAT(text, ContainsSubstring("130 MiB, on all GPUs."));
}
