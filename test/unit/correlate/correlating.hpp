// Feeds a correlator with records, and keeps what it makes of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "correlate/correlator.hpp"
#include "support/capture_sink.hpp"
#include "support/sample_records.hpp"

struct Correlating {
  explicit Correlating(cudabpf::Correlator::Options options = {})
      : correlator(
            sink,
            [](std::uint16_t id) {
              auto table = cudabpf::cuda_functions();
              return id < table.size() ? &table[id] : nullptr;
            },
            [this](std::uint32_t pid) { return proc[pid]; }, std::move(options)) {}

  void feed(const samples::RecordBytes& bytes) {
    auto record = bytes.parse();
    if (!record) throw std::invalid_argument("not a record");
    correlator.on_record(*record);
  }
  // A call that begins and returns, 100 ns later.
  void call(samples::Head head, std::string_view symbol,
            const std::vector<std::uint64_t>& words = {},
            const std::vector<std::uint64_t>& outs = {}, int result = 0,
            const char* text = nullptr) {
    feed(samples::entry(head, symbol, words, {}, text));
    head.ts += 100;
    feed(samples::returned(head, symbol, result, outs));
  }
  const cudabpf::CapturedCall& last() const { return sink.calls.back(); }
  // One line per call, in the order of the trace: "id name parent duration flags".
  std::string calls() const {
    std::string out;
    for (const auto& call : sink.calls) {
      out += std::to_string(call.id) + " " + std::string(call.function->symbol);
      if (call.parent) out += " in " + std::to_string(call.parent);
      if (call.has_return) out += " took " + std::to_string(call.duration);
      if (call.return_lost) out += " return_lost";
      if (call.entry_lost) out += " entry_lost";
      if (call.unfinished) out += " unfinished";
      out += "\n";
    }
    return out;
  }

  std::map<std::uint32_t, cudabpf::ProcessIdentity> proc;
  cudabpf::CaptureSink sink;
  cudabpf::Correlator correlator;
};
