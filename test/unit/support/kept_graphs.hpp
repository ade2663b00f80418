// Payloads with what graphs' nodes are given, as the library inside a process makes them.
#pragma once

#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cudabpf/taped_process.hpp"
#include "taping/kept_nodes.hpp"

// A process that keeps what it is told to.
struct KeepingProcess final : cudabpf::TapedProcess {
  std::uint32_t pid() const override { return 4242; }
  void keep(cudabpf::abi::ci_keeps) override {}
  void hold(std::uint32_t) override {}
  std::uint32_t threads_in_calls() const override { return 0; }
  std::uint64_t lost() const override { return 0; }
  std::optional<cudabpf::Payload> payload(std::uint64_t place) const override {
    auto known = payloads.find(place);
    return known == payloads.end() ? std::nullopt : std::optional(known->second);
  }
  std::span<std::byte> window() const override { return memory; }

  std::map<std::uint64_t, cudabpf::Payload> payloads;  // by place
  mutable std::vector<std::byte> memory = std::vector<std::byte>(sizeof(cudabpf::abi::ci_kernel));
};

// The parts of such a payload, each of which a test may spoil.
struct SampleNodes {
  using Node = cudabpf::abi::ci_node;

  template <typename Given>
  SampleNodes& add(std::uint64_t handle, cudabpf::taping::NodeType type, const Given& given,
                   std::string_view parameters = {}, std::string_view attributes = {}) {
    Node node{};
    node.handle = handle;
    node.type = static_cast<std::uint32_t>(type);
    node.holder = holder;
    node.given = sizeof(given);
    node.parameters = static_cast<std::uint32_t>(parameters.size());
    node.attributes = static_cast<std::uint32_t>(attributes.size());
    nodes.push_back(node);
    parts.push_back(padded({reinterpret_cast<const char*>(&given), sizeof(given)}) +
                    padded(parameters) + padded(attributes));
    head.count++;
    return *this;
  }
  SampleNodes& add(std::uint64_t handle, cudabpf::taping::NodeType type) {
    add(handle, type, std::array<char, 1>{});
    nodes.back().given = 0;
    parts.back().clear();
    return *this;
  }
  SampleNodes& edge(std::uint64_t from, std::uint64_t to) {
    edges.push_back({from, to});
    return *this;
  }

  cudabpf::Payload payload() const {
    cudabpf::Payload made;
    made.state = cudabpf::abi::CI_FILLED;
    made.bytes.append(reinterpret_cast<const char*>(&head), sizeof(head));
    for (std::size_t i = 0; i < nodes.size(); i++)
      made.bytes.append(reinterpret_cast<const char*>(&nodes[i]), sizeof(Node)) += parts[i];
    made.more.assign(reinterpret_cast<const char*>(edges.data()),
                     edges.size() * sizeof(cudabpf::abi::ci_edge));
    return made;
  }

  cudabpf::abi::ci_nodes head{};
  std::vector<Node> nodes;
  std::vector<std::string> parts;
  std::vector<cudabpf::abi::ci_edge> edges;
  std::uint32_t holder = 0;  // of the nodes that are added

 private:
  static std::string padded(std::string_view bytes) {
    std::string text(bytes);
    text.resize(CI_PADDED(bytes.size()));
    return text;
  }
};

// The driver's structs.
struct GivenKernel {
  std::uint64_t function = 0;
  std::array<std::uint32_t, 7> dimensions{1, 1, 1, 32, 1, 1, 0};
  std::uint32_t padding = 0;
  std::uint64_t parameters = 0, extra = 0, kernel = 0, context = 0;
};
struct GivenCopy {
  struct Side {
    std::uint64_t x = 0, y = 0, z = 0, lod = 0;
    std::uint32_t type = 2, padding = 0;
    std::uint64_t host = 0, device = 0, array = 0, context = 0, pitch = 0, height = 0;
  } from, to;
  std::uint64_t width = 0, height = 1, depth = 1;
};
struct GivenSet {
  std::uint64_t to = 0, pitch = 0;
  std::uint32_t value = 0, element = 1;
  std::uint64_t width = 0, height = 1;
};
