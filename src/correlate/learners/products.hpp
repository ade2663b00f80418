// Products of matrices: what each multiplies, and on which stream, which a handle of cuBLAS stands
// for. What lies where in cuBLASLt's descriptors the library inside its process has found out.
#pragma once

#include <cstdint>
#include <optional>

#include "correlate/calls/bounds.hpp"
#include "correlate/calls/learner.hpp"
#include "cudabpf/product.hpp"
#include "cudabpf/record.hpp"
#include "util/hash.hpp"

namespace cudabpf {

class Products : public Learner {
 public:
  explicit Products(Bounds& bounds) : bounds_(bounds) {}

  // Fills in the product, and the stream of its handle.
  void began(ThreadId thread, Frame& frame) {
    if (frame.function->type == Type::product) begin(thread, frame);
  }
  void ended(const CallStack&, Call& call) {
    if (call.function->type == Type::blas) follow(call);
  }
  void calls_lost(std::uint32_t pid);
  void process_gone(std::uint32_t pid);

  // Where the process's cuBLASLt has what in its descriptors.
  void on_record(const Record& record);

 private:
  // What calls have shown of a handle.
  struct Handle {
    std::optional<std::uint64_t> stream, math;
  };
  struct OfProcess {
    HashMap<std::uint64_t, Handle> handles;
    std::optional<LtLayout> layout;
    bool layouts_differ = false;  // it has loaded several copies
  };

  void begin(ThreadId thread, Frame& frame);
  void follow(const Call& call);
  Handle* add(OfProcess& process, std::uint64_t handle);

  Bounds& bounds_;
  HashMap<std::uint32_t, OfProcess> processes_;
  std::size_t kept_ = 0;  // handles of all
};

}  // namespace cudabpf
