// An ioctl's bytes come from a traced program, and the driver's version is a text from a file: none
// of them may make decoding read out of bounds, or report what was not recorded.
//
// The input: version (3 x 2 bytes), node (1), flags (1), command, inner, inner size (4 each), size
// of the struct (1), then the struct and after it the parameters. Flag 1: there is an inner one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "collect/ioctl_plan.hpp"
#include "cudabpf/abi.h"
#include "cudabpf/ioctl.hpp"

using namespace cudabpf;

namespace {

struct [[gnu::packed]] Header {
  std::uint16_t version[3];
  std::uint8_t node, flags;
  std::uint32_t command, inner, inner_size;
  std::uint8_t struct_size;
};

void check(const IoctlDetails& details, bool has_structure) {
  for (std::string_view text :
       {details.name, details.control_name, details.class_name, details.value_name})
    for (char c : text)
      if (c <= ' ' || c > '~') abort();
  if (details.value.has_value() == details.value_name.empty()) abort();
  if (!details.control_name.empty() && !details.control) abort();
  if (!details.class_name.empty() && !details.klass) abort();
  if (details.privileged_firmware && details.control_name.empty()) abort();
  if (to_string(details.group).empty()) abort();
  bool has_details = details.client || details.parent || details.object || details.base ||
                     details.control || details.klass || details.size || details.value;
  if (has_details && (details.name.empty() || !has_structure)) abort();
}

void check(const abi::cb_ioctl_plan& plan) {
  if (plan.follow_max > CB_MAX_PARAMS || (plan.follow_at == 0) != (plan.follow_max == 0)) abort();
  if (plan.status_at && plan.status_at <= CB_MAX_IOCTL - 4) abort();
  if (plan.size && plan.status_at + 4 > plan.size) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  DriverVersion::parse({reinterpret_cast<const char*>(data), size});
  Header header;
  if (size < sizeof(header)) return 0;
  std::memcpy(&header, data, sizeof(header));
  const auto* bytes = reinterpret_cast<const std::byte*>(data) + sizeof(header);
  size -= sizeof(header);
  // Each in separate memory, so that a read beyond its end is detected.
  std::size_t struct_size = std::min<std::size_t>(size, header.struct_size);
  std::vector<std::byte> structure(bytes, bytes + struct_size);
  std::vector<std::byte> parameters(bytes + struct_size, bytes + size);

  DriverVersion version = {header.version[0], header.version[1], header.version[2]};
  IoctlWords ioctl;
  ioctl.node = static_cast<DriverNode>(header.node % 7);
  ioctl.command = header.command;
  if (header.flags & 1) ioctl.inner = std::uint32_t{header.inner};  // A copy: the header is packed.
  ioctl.inner_size = header.inner_size;
  ioctl.structure = structure;
  ioctl.parameters = parameters;
  IoctlDetails details = describe_ioctl(ioctl, version);
  check(details, !structure.empty());
  IoctlDetails returned = details;
  auto status = describe_ioctl_return(ioctl, structure, version, returned);
  if (status && (structure.empty() || details.name.empty())) abort();
  check(returned, !structure.empty());
  if (status) driver_status_name(*status);
  xid_meaning(header.inner);
  check(escape_plan(static_cast<std::uint8_t>(header.command), version));
  check(uvm_plan(static_cast<std::uint8_t>(header.command), version));
  return 0;
}
