#include "collect/ioctl_plan.hpp"

#include <algorithm>
#include <span>

#include "cudabpf/driver_tables.hpp"

namespace cudabpf {

namespace {

constexpr std::uint8_t RM_CONTROL = 0x2a, RM_ALLOC = 0x2b;
constexpr std::uint32_t UVM_SPECIAL = 0x30000000;

// The status's offset if it is too far into the struct to be recorded with it; 0 if it is not, or
// if the possible layouts disagree.
std::uint16_t distant_status(std::span<const IoctlRow> rows, const DriverVersion& version) {
  const Field* status = nullptr;
  for (const IoctlRow& row : rows) {
    if (!row.may_hold_at(version) || row.size == 0 || row.when.set) continue;
    if (status && !(*status == row.layout.status)) return 0;
    status = &row.layout.status;
  }
  bool distant = status && status->present() && status->at + sizeof(std::uint32_t) > CB_MAX_IOCTL;
  return distant ? status->at : std::uint16_t{0};
}

}  // namespace

abi::cb_ioctl_plan escape_plan(std::uint8_t number, const DriverVersion& version) {
  abi::cb_ioctl_plan plan{};
  plan.status_at = distant_status(escape_rows(number), version);
  if (number == RM_CONTROL) {
    plan.follow_at = 16;
    plan.follow_size_at = 24;
    plan.follow_max = 64;
  } else if (number == RM_ALLOC) {  // before 535 its struct does not give their size
    plan.follow_at = 16;
    plan.follow_max = 136;
  }
  return plan;
}

abi::cb_ioctl_plan uvm_plan(std::uint8_t command, const DriverVersion& version) {
  std::uint32_t number =
      command < CB_UVM_SPECIAL ? command : UVM_SPECIAL + (command - CB_UVM_SPECIAL);
  auto rows = uvm_rows(number);
  abi::cb_ioctl_plan plan{};
  plan.status_at = distant_status(rows, version);
  // For an unknown version, the shortest: there may be no memory after a short struct.
  for (const IoctlRow& row : rows)
    if (row.size != 0 && row.may_hold_at(version))
      plan.size = plan.size == 0 ? row.size : std::min(plan.size, row.size);
  return plan;
}

}  // namespace cudabpf
