// Matrix products: what each multiplies, and on which stream, which a handle of cuBLAS stands
// for. What is set in a handle, and what lies where in cuBLASLt's descriptors, the library inside
// its process finds out; by eBPF, calls show what is set in a handle.
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
  void thread_gone(ThreadId thread);
  void process_gone(std::uint32_t pid);

  // Where the process's cuBLASLt has what in its descriptors.
  void on_layout(const Record& record);
  // What is set in the handle of the thread's next products.
  void on_handle(const Record& record);

 private:
  struct Handle {
    std::optional<std::uint64_t> stream, math;
  };
  // What the process itself has told a thread's last product, and what had been lost by then.
  struct Told {
    std::uint64_t handle = 0;
    std::uint32_t drops = 0;
    Handle set;
  };
  struct OfProcess {
    HashMap<std::uint64_t, Handle> handles;  // what calls have shown
    HashMap<std::uint32_t, Told> told;       // by thread
    bool tells = false;                      // so calls that set something may not be recorded
    std::optional<LtLayout> layout;
    bool layouts_differ = false;  // it has loaded several copies
  };

  void begin(ThreadId thread, Frame& frame);
  Handle handle_of(ThreadId thread, const Frame& frame, std::uint64_t handle) const;
  void follow(const Call& call);
  Handle* add(OfProcess& process, std::uint64_t handle);

  Bounds& bounds_;
  HashMap<std::uint32_t, OfProcess> processes_;
  std::size_t kept_ = 0;  // handles of all, and what was told
};

}  // namespace cudabpf
