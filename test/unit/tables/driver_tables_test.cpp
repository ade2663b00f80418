#include "cudabpf/driver_tables.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/sample_ioctls.hpp"

using namespace cudabpf;
using namespace sample;

namespace {

// Reads the tables without the generator.
const std::filesystem::path TABLES = std::filesystem::path(TEST_DIR) / "../include/cudabpf/driver";

using Row = std::map<std::string, std::string>;

std::vector<Row> table(const std::string& name) {
  std::ifstream file(TABLES / (name + ".tsv"));
  auto cells_of = [](const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, '\t');) cells.push_back(cell);
    return cells;
  };
  std::vector<std::string> header;
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    auto cells = cells_of(line);
    if (header.empty()) {
      header = cells;
      continue;
    }
    REQUIRE(cells.size() == header.size());
    Row row;
    for (std::size_t i = 0; i < cells.size(); i++) row[header[i]] = cells[i];
    rows.push_back(row);
  }
  return rows;
}

std::uint32_t number_of(const Row& row) {
  return static_cast<std::uint32_t>(std::stoul(row.at("number"), nullptr, 0));
}

// The first and the last version that a row covers.
std::vector<DriverVersion> versions_of(const Row& row) {
  constexpr std::uint16_t LAST = 65535;
  DriverVersion first = row.at("since") == "-" ? V470 : DriverVersion::parse(row.at("since"));
  DriverVersion last = {999, 0, 0};
  if (row.at("until") != "-") {
    last = DriverVersion::parse(row.at("until"));
    if (last.patch > 0)
      last.patch--;
    else if (last.minor > 0)
      last = {last.major, static_cast<std::uint16_t>(last.minor - 1), LAST};
    else
      last = {static_cast<std::uint16_t>(last.major - 1), LAST, LAST};
  }
  REQUIRE(first.known());
  REQUIRE(first <= last);
  return {first, last};
}

// `8`, `out.8`, `32+1` -> 8, 8, 32
std::optional<std::size_t> offset(const Row& row, const std::string& column) {
  auto cell = row.find(column);
  if (cell == row.end() || cell->second == "-") return std::nullopt;
  std::string text = cell->second;
  if (text.starts_with("out.")) text.erase(0, 4);
  return std::stoul(text);
}

// A struct with a different value in every field that the row gives.
Bytes filled(const Row& row) {
  Bytes structure(row.at("size") == "-" ? 0 : std::stoul(row.at("size")));
  if (row.contains("when") && row.at("when") != "-") {
    auto equals = row.at("when").find('=');
    structure.word(std::stoul(row.at("when").substr(0, equals)),
                   static_cast<std::uint32_t>(std::stoul(row.at("when").substr(equals + 1))));
  }
  std::uint32_t value = 0x100;
  for (auto column : {"client", "parent", "object", "control", "class"})
    if (auto at = offset(row, column)) structure.word(*at, value++);
  for (auto column : {"length", "base"})
    if (auto at = offset(row, column)) structure.wide(*at, 0x7f0000000000 + value++);
  if (auto at = offset(row, "status")) structure.word(*at, 0x10001);
  return structure;
}

void check_fields(const Row& row, const Bytes& structure, const IoctlDetails& details) {
  auto word = [&](const std::string& column) -> std::optional<std::uint32_t> {
    auto at = offset(row, column);
    std::uint32_t value = 0;
    if (at) std::memcpy(&value, structure.bytes.data() + *at, 4);
    return at ? std::optional(value) : std::nullopt;
  };
  auto wide = [&](const std::string& column) -> std::optional<std::uint64_t> {
    auto at = offset(row, column);
    std::uint64_t value = 0;
    if (at) std::memcpy(&value, structure.bytes.data() + *at, 8);
    return at ? std::optional(value + row.at(column).ends_with("+1")) : std::nullopt;
  };
  bool adds = row.contains("when") && row.at("when") != "-";  // to a row that has these fields
  if (!adds) CHECK(details.client == word("client"));
  if (!adds) CHECK(details.parent == word("parent"));
  CHECK(details.object == word("object"));
  CHECK(details.control == word("control"));
  CHECK(details.klass == word("class"));
  CHECK(details.size == wide("length"));
  CHECK(details.base == wide("base"));
}

void check_ioctl(const Row& row, IoctlWords ioctl) {
  CAPTURE(row.at("number"), row.at("name"), row.at("size"), row.at("since"));
  Bytes structure = filled(row);
  ioctl.structure = structure;
  for (const DriverVersion& version : versions_of(row)) {
    CAPTURE(version.major, version.minor, version.patch);
    IoctlDetails details = describe_ioctl(ioctl, version);
    CHECK(details.number == number_of(row));
    CHECK(details.name == row.at("name"));
    if (!details.control && !details.klass) CHECK(to_string(details.group) == row.at("group"));
    check_fields(row, structure, details);
    auto status = describe_ioctl_return(ioctl, structure, version, details);
    check_fields(row, structure, details);
    if (offset(row, "status")) CHECK(status == 0x10001u);
  }
}

}  // namespace

TEST_CASE("Groups are named as the tables spell them") {
  std::set<std::string> names;
  for (std::size_t i = 0; i < DRIVER_GROUPS; i++)
    names.emplace(to_string(static_cast<DriverGroup>(i)));
  CHECK(names == std::set<std::string>{"scheduling", "channel", "memory", "event", "peer", "query",
                                       "power", "other"});
  CHECK(to_string(DriverGroup::scheduling) == "scheduling");
  CHECK(to_string(DriverGroup::other) == "other");
}

TEST_CASE("All rows of a number are found, the oldest first, and those of no other") {
  CHECK(escape_rows(0x2b).size() == 5);
  CHECK(uvm_rows(33).size() == 2);
  CHECK(control_rows(0x20800a21).size() == 3);
  CHECK(class_rows(0x40).size() == 1);
  for (const Row& row : table("controls")) {
    auto rows = control_rows(number_of(row));
    for (std::size_t i = 0; i < rows.size(); i++) {
      CHECK(rows[i].named.number == number_of(row));
      if (i > 0) CHECK(rows[i - 1].named.until <= rows[i].named.since);
    }
  }
  for (std::uint32_t number : {0x26u, 0x100u, 0xffffffffu}) {
    CHECK(escape_rows(number).empty());
    CHECK(uvm_rows(number).empty() == (number != 0x26));
    CHECK(control_rows(number).empty());
    CHECK(class_rows(number).empty() == (number != 0x100));
  }
}

TEST_CASE("Every row of the escapes is found, and its fields are read") {
  auto rows = table("escapes");
  CHECK(rows.size() == 53);
  for (const Row& row : rows) {
    std::size_t size = row.at("size") == "-" ? 0 : std::stoul(row.at("size"));
    check_ioctl(row, words(DriverNode::gpu, escape(number_of(row), size)));
    check_ioctl(row, wrapped(number_of(row), size));
  }
}

TEST_CASE("Every row of UVM's ioctls is found, and its fields are read") {
  auto rows = table("uvm");
  CHECK(rows.size() == 89);
  for (const Row& row : rows) {
    check_ioctl(row, words(DriverNode::uvm, number_of(row)));
    check_ioctl(row, words(DriverNode::uvm_tools, number_of(row)));
  }
}

TEST_CASE("Every control is found at its versions") {
  auto rows = table("controls");
  CHECK(rows.size() == 1988);
  std::size_t firmware = 0;
  for (const Row& row : rows) {
    CAPTURE(row.at("number"), row.at("name"));
    for (const DriverVersion& version : versions_of(row)) {
      CAPTURE(version.major, version.minor, version.patch);
      IoctlDetails details = control(number_of(row), version);
      CHECK(details.name == "NV_ESC_RM_CONTROL");
      CHECK(details.control == number_of(row));
      CHECK(details.control_name == row.at("name"));
      CHECK(to_string(details.group) == row.at("group"));
      CHECK(details.privileged_firmware == (row.at("firmware") == "yes"));
    }
    firmware += row.at("firmware") == "yes";
  }
  CHECK(firmware > 700);
}

TEST_CASE("Every class is found at its versions") {
  auto rows = table("classes");
  CHECK(rows.size() == 286);
  for (const Row& row : rows) {
    CAPTURE(row.at("number"), row.at("name"));
    Bytes parameters(136);
    for (std::size_t at = 0; at < 136; at += 4)
      parameters.word(at, static_cast<std::uint32_t>(at + 1));
    auto wide = [](std::uint64_t at) { return (at + 5) << 32 | (at + 1); };
    for (const DriverVersion& version : versions_of(row)) {
      IoctlDetails details = allocation(number_of(row), version, parameters);
      CHECK(details.name == "NV_ESC_RM_ALLOC");
      CHECK(details.klass == number_of(row));
      CHECK(details.class_name == row.at("name"));
      CHECK(to_string(details.group) == row.at("group"));
      if (auto at = offset(row, "size"))
        CHECK(details.size == wide(*at) + row.at("size").ends_with("+1"));
      else
        CHECK_FALSE(details.size);
      std::string value = row.at("value");
      CHECK(details.value_name == (value == "-" ? "" : value.substr(0, value.find('@'))));
      CHECK(details.value.has_value() == (value != "-"));
    }
  }
}

TEST_CASE("Statuses and Xids have names") {
  auto statuses = table("status");
  CHECK(statuses.size() == 149);
  for (const Row& row : statuses) CHECK(driver_status_name(number_of(row)) == row.at("name"));
  CHECK(driver_status_name(0) == "NV_OK");
  CHECK(driver_status_name(0x1f) == "NV_ERR_INVALID_ARGUMENT");
  CHECK(driver_status_name(0x51) == "NV_ERR_NO_MEMORY");
  CHECK(driver_status_name(0xffff) == "NV_ERR_GENERIC");
  CHECK(driver_status_name(0x10006) == "NV_WARN_NOTHING_TO_DO");
  for (std::uint32_t unknown : {0x8bu, 0xfffeu, 0x10000u, 0xffffffffu})
    CHECK(driver_status_name(unknown).empty());

  auto xids = table("xid");
  CHECK(xids.size() == 128);
  for (const Row& row : xids) CHECK(xid_meaning(number_of(row)) == row.at("meaning"));
  CHECK(xid_meaning(79).find("fallen off the bus") != std::string_view::npos);
  for (std::uint32_t unknown : {0u, 1u, 91u, 173u, 0xffffffffu})
    CHECK(xid_meaning(unknown).empty());
}

TEST_CASE("Bytes that were not recorded are not made up") {
  auto part_of = [](const auto& part, const auto& whole) { return !part || part == whole; };
  std::mt19937 random(1);
  for (const char* name : {"escapes", "uvm"})
    for (const Row& row : table(name)) {
      if (row.at("size") == "-") continue;
      Bytes whole = filled(row), parameters(136);
      for (std::byte& byte : parameters.bytes) byte = static_cast<std::byte>(random());
      bool uvm = std::string_view(name) == "uvm";
      DriverVersion version = versions_of(row)[0];
      std::uint32_t number = number_of(row);
      IoctlWords ioctl = uvm ? uvm_words(number, whole) : escape_words(number, whole);
      ioctl.parameters = parameters;
      IoctlDetails all = describe_ioctl(ioctl, version);
      auto status = describe_ioctl_return(ioctl, whole, version, all);
      for (std::size_t size = 0; size < std::min<std::size_t>(whole.bytes.size(), 300); size++) {
        Bytes cut(size);
        std::copy_n(whole.bytes.begin(), size, cut.bytes.begin());
        ioctl.structure = cut;
        IoctlDetails some = describe_ioctl(ioctl, version);
        auto cut_status = describe_ioctl_return(ioctl, cut, version, some);
        bool agrees = part_of(some.client, all.client) && part_of(some.parent, all.parent) &&
                      part_of(some.object, all.object) && part_of(some.base, all.base) &&
                      part_of(some.control, all.control) && part_of(some.klass, all.klass) &&
                      part_of(cut_status, status) && some.name == all.name;
        CAPTURE(row.at("name"), size);
        CHECK(agrees);
      }
    }
}
