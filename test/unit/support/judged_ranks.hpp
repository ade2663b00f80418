// What `ranks` finds in a trace's lines.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "analyze/collectives/ranks.hpp"
#include "support/analyzing.hpp"

namespace cudabpf::analyze {

struct JudgedRanks {
  LineParser parser;
  Idle idle;
  ThreadsAtWork threads;
  Ranks ranks;
  std::unique_ptr<DerivedFields> seen;

  explicit JudgedRanks(const std::string& text, const TraceFacts& facts = {})
      : idle(parser.names(), 0), threads({}, idle), ranks(parser.names(), threads) {
    std::initializer_list<Analysis*> all = {&idle, &threads, &ranks};
    seen = each_line(parser, text, [&](const Line& line) {
      for (Analysis* one : all) one->line(line);
    });
    for (Analysis* one : all) one->finish(facts);
  }
  const Ranks::OfCommunicator& only() const {
    REQUIRE(ranks.communicators().size() == 1);
    return ranks.communicators()[0];
  }
  const Skew& skew() const {
    REQUIRE(only().skew);
    return *only().skew;
  }
  std::uint64_t waited(std::uint32_t rank, std::uint32_t awaited) const {
    auto at = skew().waited().find({rank, awaited});
    return at == skew().waited().end() ? 0 : at->second.total;
  }
};

}  // namespace cudabpf::analyze
