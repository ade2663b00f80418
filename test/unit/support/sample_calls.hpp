// Calls as decoding produces them, for the tests of sinks.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "cudabpf/describe.hpp"
#include "cudabpf/sink.hpp"
#include "util/text/json.hpp"

struct SampleCall : cudabpf::Call {
  explicit SampleCall(const char* symbol, std::vector<std::uint64_t> in = {},
                      std::vector<std::uint64_t> returned = {})
      : own_words(std::move(in)), own_outs(std::move(returned)) {
    function = cudabpf::find_function(symbol);
    if (!function) throw std::invalid_argument(symbol);
    id = 1;
    ts = 1000;
    duration = 2500;
    pid = 4242;
    tid = 4243;
    has_return = true;
    words = own_words;
    outs = own_outs;
    details = cudabpf::describe_entry(*function, words, {});
    cudabpf::describe_outs(*function, words, outs, details);
  }
  SampleCall(const SampleCall&) = delete;
  SampleCall& operator=(const SampleCall&) = delete;

  void fail(int with) {
    result = with;
    outs = {};
    details = cudabpf::describe_entry(*function, words, {});
  }

  std::vector<std::uint64_t> own_words, own_outs;
};

inline cudabpf::KernelName kernel_named(const std::string& full, const std::string& short_name) {
  cudabpf::KernelName name;
  name.full = full;
  name.short_name = short_name;
  name.json = cudabpf::json::quoted(full);
  return name;
}
