#include "collect/ioctl_plan.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>

#include "support/sample_ioctls.hpp"

using namespace cudabpf;
using namespace sample;

namespace {

using Plan = std::array<int, 5>;

Plan plan_of(const abi::cb_ioctl_plan& plan) {
  return {plan.size, plan.status_at, plan.follow_at, plan.follow_size_at, plan.follow_max};
}

}  // namespace

TEST_CASE("Plans of ioctls, exactly") {
  for (const DriverVersion& version : {UNKNOWN, V470, V580}) {
    CHECK(plan_of(escape_plan(0x2a, version)) == Plan{0, 0, 16, 24, 64});
    CHECK(plan_of(escape_plan(0x2b, version)) == Plan{0, 0, 16, 0, 136});
    CHECK(plan_of(escape_plan(0x29, version)) == Plan{});
    CHECK(plan_of(escape_plan(0xff, version)) == Plan{});
    CHECK(plan_of(uvm_plan(CB_UVM_SPECIAL + 1, version)) == Plan{16});
    CHECK(plan_of(uvm_plan(CB_UVM_SPECIAL + 2, version)) == Plan{});
    CHECK(plan_of(uvm_plan(73, version)) == Plan{24});
    CHECK(plan_of(uvm_plan(200, version)) == Plan{});
  }
  CHECK(plan_of(escape_plan(0xd9, V550)) == Plan{0, 2592});
  CHECK(plan_of(escape_plan(0xd9, V570)) == Plan{0, 2600});
  CHECK(plan_of(escape_plan(0xd9, UNKNOWN)) == Plan{});
  CHECK(plan_of(uvm_plan(33, V535)) == Plan{1200, 1196});
  CHECK(plan_of(uvm_plan(33, V580)) == Plan{9264, 9260});
  CHECK(plan_of(uvm_plan(33, UNKNOWN)) == Plan{1200, 0});
  CHECK(plan_of(uvm_plan(68, V580)) == Plan{9248, 9240});
  CHECK(plan_of(uvm_plan(34, V580)) == Plan{24});
  CHECK(plan_of(uvm_plan(34, V590)) == Plan{16});
  CHECK(plan_of(uvm_plan(34, UNKNOWN)) == Plan{16});
  CHECK(plan_of(uvm_plan(80, V575)) == Plan{});
}

TEST_CASE("Every plan of an ioctl stays inside its struct") {
  for (const DriverVersion& version :
       {UNKNOWN, V470, V515, V525, V530, V535, V550, V570, V575, V580, V590, V595, V610})
    for (int number = 0; number < CB_IOCTL_PLANS; number++) {
      CAPTURE(number, version.major);
      for (auto plan : {escape_plan(static_cast<std::uint8_t>(number), version),
                        uvm_plan(static_cast<std::uint8_t>(number), version)}) {
        CHECK(plan.follow_max <= CB_MAX_PARAMS);
        CHECK((plan.follow_at != 0) == (plan.follow_max != 0));
        if (plan.status_at) CHECK(plan.status_at > CB_MAX_IOCTL - 4);
        if (plan.size) CHECK(plan.status_at + 4 <= plan.size);
      }
    }
}
