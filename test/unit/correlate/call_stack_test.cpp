#include "correlate/calls/call_stack.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

namespace {

const Function* some(const char* symbol) { return find_function(symbol); }

Frame& push(CallStack& stack, std::uint64_t id, std::uint32_t sp, std::uint32_t drops = 0,
            const char* symbol = "cuInit") {
  Frame& frame = stack.push(sp, drops, *some(symbol));
  frame.id = id;
  return frame;
}

}  // namespace

TEST_CASE("Nothing is lost where the count does not change") {
  CHECK(nothing_lost_between(0, 0));
  CHECK(nothing_lost_between(0xffffffff, 0xffffffff));
  CHECK_FALSE(nothing_lost_between(0, 1));
  CHECK_FALSE(nothing_lost_between(0xffffffff, 0));
}

TEST_CASE("A call made inside another has a lower stack pointer") {
  CallStack stack;
  CHECK(stack.over_at_entry(0x1000, 0) == 0);
  push(stack, 1, 0x1000);
  CHECK(stack.over_at_entry(0xff0, 0) == 0);
  CHECK(stack.over_at_entry(0x1010, 1) == 1);
  CHECK(push(stack, 2, 0xff0).parent == 1);
  CHECK(push(stack, 3, 0xf00).parent == 2);
  CHECK(stack.depth() == 3);
  CHECK(stack.frames_above(0x1000, some("cuInit")) == 2);
  CHECK(stack.frames_above(0xf00, some("cuInit")) == 0);
  CHECK(stack.frames_above(0x1000, some("cuCtxSynchronize")) == -1);
  CHECK(stack.frames_above(0x1008, some("cuInit")) == -1);
}

TEST_CASE("Stack pointers are compared around the wrap of their low halves") {
  CallStack stack;
  push(stack, 1, 0x00000100);
  CHECK(stack.over_at_entry(0xfffffff0, 0) == 0);  // lower, in the 4 GiB before
  CHECK(push(stack, 2, 0xfffffff0).parent == 1);
  CHECK(stack.over_at_entry(0x00000100, 1) > 0);
  CHECK(stack.top_is_over(0x00000100));
  CHECK_FALSE(stack.top_is_over(0xffffff00));
}

TEST_CASE("Two calls with one stack pointer are a jump from the first to the second, once") {
  CallStack stack;
  push(stack, 1, 0x1000);
  CHECK(stack.over_at_entry(0x1000, 0) == 0);
  CHECK(push(stack, 2, 0x1000).parent == 1);
  CHECK(stack.over_at_entry(0x1000, 0) > 0);  // a third would be a new call from the same place
  stack.pop();
  CHECK(stack.over_at_entry(0x1000, 0) > 0);  // as would be a second after the second has returned
  CHECK(stack.over_at_entry(0xff0, 0) == 0);
  stack.pop();
  push(stack, 3, 0x1000);
  CHECK(stack.over_at_entry(0x1000, 1) > 0);  // the first's return may have been lost
}

TEST_CASE("After a loss no parent is certain") {
  CallStack stack;
  push(stack, 1, 0x1000, 5);
  CHECK(push(stack, 2, 0xff0, 6).parent == 0);
  CHECK(push(stack, 3, 0xfe0, 6).parent == 2);
}

TEST_CASE("Frames are used again, with nothing left of what they were") {
  CallStack stack;
  push(stack, 1, 0x1000);
  push(stack, 2, 0x1000);
  stack.pop();
  stack.pop();
  CHECK(stack.depth() == 0);
  Frame& again = push(stack, 3, 0x2000);
  CHECK(again.parent == 0);
  CHECK_FALSE(again.jumped);
  CHECK(stack.depth() == 1);
}

TEST_CASE("A stack notes when its thread has lost records") {
  CallStack stack;
  CHECK(stack.same_drops(0));
  CHECK_FALSE(stack.same_drops(2));
  CHECK(stack.same_drops(2));
}

TEST_CASE("A call that begins above an open one may be on another stack: neither is the other's") {
  CallStack stack;
  push(stack, 1, 0x2000);
  push(stack, 2, 0x1000);
  CHECK(stack.over_at_entry(0x5000, 0) == 0);
  CHECK(stack.pass(0x5000));
  CHECK_FALSE(stack.pass(0x5000));  // once
  CHECK(push(stack, 3, 0x5000).parent == 0);
  CHECK(stack.innermost()->id == 3);
  CHECK(push(stack, 4, 0x4f00).parent == 3);
  stack.pop();
  stack.pop();
  CHECK(stack.innermost() == nullptr);  // the others may have been left
  CHECK(push(stack, 5, 0xf00).parent == 0);
  stack.pop();
  CHECK(stack.frames_above(0x1000, some("cuInit")) == 0);
  stack.top_returned();
  stack.pop();
  CHECK(stack.innermost()->id == 1);  // what was inside it has returned
  CHECK(push(stack, 6, 0x1000).parent == 1);
}

TEST_CASE("A call from the place of one that was passed shows that it has been left") {
  CallStack stack;
  push(stack, 1, 0x2000);
  push(stack, 2, 0x1000);
  stack.pass(0x5000);
  push(stack, 3, 0x5000);
  CHECK(stack.over_at_entry(0x1000, 0) == 2);
  stack.pop();
  CHECK(stack.over_at_entry(0x1000, 0) == 1);
  CHECK(stack.over_at_entry(0x2000, 0) == 2);
}

TEST_CASE("A call's parent is of its own layer, and what it is within of a higher one") {
  CallStack stack;
  push(stack, 1, 0x1000, 0, "ncclBcast");
  CHECK(stack.top().parent == 0);
  push(stack, 2, 0xf00, 0, "ncclBroadcast");
  CHECK(stack.top().parent == 1);
  CHECK(stack.top().within == 0);
  push(stack, 3, 0xe00, 0, "cuLaunchKernel");
  CHECK(stack.top().parent == 0);
  CHECK(stack.top().within == 2);
  CHECK_FALSE(stack.top_is_inside([](const Function&) { return true; }));
  push(stack, 4, 0xd00, 0, "cuMemAlloc_v2");
  CHECK(stack.top().parent == 3);
  CHECK(stack.top().within == 2);
  CHECK(stack.top_is_inside([](const Function& f) { return f.launches_kernel(); }));
  // A function of the host that the driver calls may make a collective.
  push(stack, 5, 0xc00, 0, "ncclAllReduce");
  CHECK(stack.top().parent == 2);
  CHECK(stack.top().within == 0);
  push(stack, 6, 0xb00, 0, "cuLaunchKernel");
  CHECK(stack.top().parent == 4);
  CHECK(stack.top().within == 5);
}

TEST_CASE("After a loss, it is not known what a call is within") {
  CallStack stack;
  push(stack, 1, 0x1000, 0, "ncclAllReduce");
  CHECK(push(stack, 2, 0xf00, 1, "cuLaunchKernel").within == 0);
  CHECK(push(stack, 3, 0xe00, 1, "cuMemAlloc_v2").parent == 2);
  CHECK(stack.top().within == 0);
}

TEST_CASE("Ioctls were made in all calls that enclose one, of whatever layer") {
  CallStack stack;
  push(stack, 1, 0x1000, 0, "ncclAllReduce");
  push(stack, 2, 0xf00, 0, "cuLaunchKernel");
  stack.ioctl_made(2, 700);
  stack.pop();
  CHECK(stack.top().ioctls == 1);
  CHECK(stack.top().ioctl_time == 700);
}
