#include "cudabpf/ioctl.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "cudabpf/abi.h"
#include "cudabpf/driver_tables.hpp"

namespace cudabpf {

namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t ESCAPE_MAGIC = 'F';
// Lower statuses are failures; from here on they are warnings, and the driver has done its work.
constexpr std::uint32_t FIRST_WARNING = 0x10000;

// Which ioctl it is: the rows of its number and, if the command encodes it, its struct's size.
struct Target {
  std::span<const IoctlRow> rows;
  std::uint32_t number = 0;
  std::optional<std::uint32_t> size;
};

Target target_of(const IoctlWords& ioctl) {
  std::uint32_t command = ioctl.command;
  switch (ioctl.node) {
    case DriverNode::ctl:
    case DriverNode::gpu: {
      // As <asm/ioctl.h> packs it: number, magic, size of the struct, direction.
      Target target{{}, command & 0xff, command >> 16 & 0x3fff};
      if (ioctl.inner) {
        target.number = *ioctl.inner;
        target.size = ioctl.inner_size;
      }
      if ((command >> 8 & 0xff) == ESCAPE_MAGIC) target.rows = escape_rows(target.number);
      return target;
    }
    case DriverNode::uvm:
    case DriverNode::uvm_tools:
      return {uvm_rows(command), command, std::nullopt};
    case DriverNode::modeset:
    case DriverNode::caps:
    case DriverNode::other:
      break;
  }
  return {{}, command, std::nullopt};
}

// Little-endian, like all machines that the driver runs on.
std::optional<std::uint64_t> read(Bytes bytes, std::size_t at, std::size_t width) {
  if (at > bytes.size() || bytes.size() - at < width) return std::nullopt;
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, width);
  return value;
}

std::optional<std::uint32_t> read_word(Bytes bytes, const Field& field) {
  auto value = field.present() ? read(bytes, field.at, 4) : std::nullopt;
  return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

// Zero means no object, or one that does not exist yet.
std::optional<std::uint32_t> read_handle(Bytes bytes, const Field& field) {
  auto handle = read_word(bytes, field);
  return handle && *handle != 0 ? handle : std::nullopt;
}

std::optional<std::uint64_t> read_long(Bytes bytes, const Field& field) {
  auto value = field.present() ? read(bytes, field.at, 8) : std::nullopt;
  if (!value || *value > std::numeric_limits<std::uint64_t>::max() - field.more)
    return std::nullopt;
  return *value + field.more;
}

std::optional<std::uint64_t> read_address(Bytes bytes, const Field& field) {
  auto address = read_long(bytes, field);
  bool to_be_chosen = field.returned && address == 0;
  return to_be_chosen ? std::nullopt : address;
}

// The offsets of the fields; for an unknown version, only those on which all versions agree.
Layout layout_of(const Target& target, const DriverVersion& version, Bytes structure) {
  Layout layout;
  bool first = true;
  auto fits = [&](const IoctlRow& row) {
    return row.may_hold_at(version) && row.size != 0 && (!target.size || row.size == *target.size);
  };
  for (const IoctlRow& row : target.rows) {
    if (row.when.set || !fits(row)) continue;
    for (auto field : LAYOUT_FIELDS) {
      if (first)
        layout.*field = row.layout.*field;
      else if (!(layout.*field == row.layout.*field))
        layout.*field = {};
    }
    first = false;
  }
  for (const IoctlRow& row : target.rows) {
    if (!row.when.set || !fits(row)) continue;
    if (read(structure, row.when.at, 4) != row.when.value) continue;
    for (auto field : LAYOUT_FIELDS)
      if ((row.layout.*field).present()) layout.*field = row.layout.*field;
  }
  return layout;
}

void add_value(const ParameterField& field, Bytes parameters, IoctlDetails& details) {
  if (field.name.empty()) return;
  details.value = read(parameters, field.at, field.width);
  if (details.value) details.value_name = field.name;
}

void add_control(Bytes parameters, const DriverVersion& version, IoctlDetails& details) {
  const ControlRow* row = row_at(control_rows(*details.control), version);
  if (!row) return;
  details.control_name = row->named.name;
  details.group = row->named.group;
  details.privileged_firmware = row->firmware;
  add_value(row->value, parameters, details);
}

void add_class(Bytes parameters, const DriverVersion& version, IoctlDetails& details) {
  const ClassRow* row = row_at(class_rows(*details.klass), version);
  if (!row) return;
  details.class_name = row->named.name;
  details.group = row->named.group;
  if (!details.size) details.size = read_long(parameters, row->size);
  add_value(row->value, parameters, details);
}

}  // namespace

IoctlDetails describe_ioctl(const IoctlWords& ioctl, const DriverVersion& version) {
  Target target = target_of(ioctl);
  IoctlDetails details;
  details.number = target.number;
  if (const IoctlRow* row = row_at(target.rows, version)) {
    details.name = row->named.name;
    details.group = row->named.group;
  }
  Bytes structure = ioctl.structure;
  Layout layout = layout_of(target, version, structure);
  details.client = read_handle(structure, layout.client);
  details.parent = read_handle(structure, layout.parent);
  details.object = read_handle(structure, layout.object);
  details.size = read_long(structure, layout.length);
  details.base = read_address(structure, layout.base);
  details.control = read_word(structure, layout.control);
  details.klass = read_word(structure, layout.klass);
  if (details.control) add_control(ioctl.parameters, version, details);
  if (details.klass) add_class(ioctl.parameters, version, details);
  return details;
}

std::optional<std::uint32_t> describe_ioctl_return(const IoctlWords& ioctl, Bytes structure,
                                                   const DriverVersion& version,
                                                   IoctlDetails& details) {
  Layout layout = layout_of(target_of(ioctl), version, structure);
  auto status = read_word(structure, layout.status);
  if (status && *status != 0 && *status < FIRST_WARNING) return status;  // nothing was created
  if (layout.object.returned)
    if (auto object = read_handle(structure, layout.object)) details.object = object;
  if (layout.base.returned)
    if (auto base = read_address(structure, layout.base)) details.base = base;
  return status;
}

}  // namespace cudabpf
