#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string_view>

#include "cudabpf/abi.h"
#include "cudabpf/event.hpp"

using namespace cudabpf;

TEST_CASE("Every loss has a name of its own and advice") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < LOSS_COUNT; i++) {
    const LossInfo& loss = info(static_cast<Loss>(i));
    CAPTURE(loss.name);
    CHECK(names.insert(loss.name).second);
    CHECK(loss.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
    CHECK(loss.advice.ends_with('.'));
  }
  CHECK(LOSS_COUNT == 31);
}

TEST_CASE("Losses are graded, and the first are in the kernel side's order") {
  for (auto loss :
       {Loss::ring_entry, Loss::ring_return, Loss::ring_process, Loss::ring_driver, Loss::ring_gpu,
        Loss::ring_range, Loss::late_library, Loss::late_driver, Loss::driver_skipped,
        Loss::log_overrun, Loss::output, Loss::bad_record, Loss::process_inconsistent, Loss::unread,
        Loss::watch_overrun, Loss::left_out, Loss::library_changed})
    CHECK_FALSE(info(loss).degraded);
  for (auto loss : {Loss::ring_name, Loss::out_pointer, Loss::driver_return, Loss::table_full,
                    Loss::thread_unknown, Loss::ring_stack, Loss::python_stack})
    CHECK(info(loss).degraded);
  auto counter = [](Loss loss) { return static_cast<int>(loss) + abi::CB_DROPPED_ENTRY; };
  CHECK(counter(Loss::ring_entry) == abi::CB_DROPPED_ENTRY);
  CHECK(counter(Loss::ring_return) == abi::CB_DROPPED_RETURN);
  CHECK(counter(Loss::ring_process) == abi::CB_DROPPED_PROCESS);
  CHECK(counter(Loss::ring_name) == abi::CB_DROPPED_NAME);
  CHECK(counter(Loss::ring_driver) == abi::CB_DROPPED_DRIVER);
  CHECK(counter(Loss::ring_gpu) == abi::CB_DROPPED_GPU);
  CHECK(counter(Loss::ring_holder) == abi::CB_DROPPED_HOLDER);
  CHECK(counter(Loss::ring_range) == abi::CB_DROPPED_RANGE);
  CHECK(counter(Loss::ring_stack) == abi::CB_DROPPED_STACK);
  CHECK(info(Loss::ring_return).name == "ring_full_return");
}
