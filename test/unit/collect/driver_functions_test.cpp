#include "collect/driver_functions.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace cudabpf;

namespace {

using Names = std::vector<std::string>;

struct Loaded {
  std::string text;
  Loaded& add(const std::string& module, const Names& functions) {
    for (const std::string& function : functions)
      text += "ffffffffc0a1b2c0 t " + function + "\t[" + module + "]\n";
    return *this;
  }
  std::vector<DriverFunction> chosen() const {
    return choose_driver_functions(
        KernelSymbols::parse(text, {"nvidia", "nvidia_uvm", "nvidia_modeset"}));
  }
};

const Names UVM = {"uvm_unlocked_ioctl_entry", "uvm_open_entry", "uvm_release_entry",
                   "uvm_mmap_entry"};
const Names DEVICE = {"nvidia_unlocked_ioctl", "nvidia_open", "nvidia_close", "nvidia_mmap"};
const Names FRONT_END = {"nvidia_frontend_unlocked_ioctl", "nvidia_frontend_open",
                         "nvidia_frontend_close", "nvidia_frontend_mmap"};
const Names MODESET = {"nvkms_unlocked_ioctl", "nvkms_open", "nvkms_close"};

Names names(const std::vector<DriverFunction>& functions) {
  Names found;
  for (const DriverFunction& function : functions) found.push_back(function.name);
  return found;
}

Names joined(Names a, const Names& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("The driver's functions are those of its modules, with what each of them does") {
  auto functions = Loaded().add("nvidia", DEVICE).add("nvidia_uvm", UVM).chosen();
  REQUIRE(names(functions) == joined(DEVICE, UVM));
  constexpr abi::cb_driver_op OPS[] = {abi::CB_IOCTL, abi::CB_OPEN, abi::CB_CLOSE, abi::CB_MMAP};
  for (std::size_t i = 0; i < functions.size(); i++) {
    CAPTURE(functions[i].name);
    CHECK(functions[i].op == OPS[i % 4]);
    CHECK(functions[i].module == (i < 4 ? "nvidia" : "nvidia_uvm"));
    CHECK(functions[i].needed);
  }
}

TEST_CASE("A driver with a front end is seen there alone, its display as well") {
  auto all = joined(DEVICE, FRONT_END);
  auto functions =
      Loaded().add("nvidia", all).add("nvidia_uvm", UVM).add("nvidia_modeset", MODESET).chosen();
  CHECK(names(functions) == joined(FRONT_END, UVM));
  // One that has none is seen at its display's own.
  functions =
      Loaded().add("nvidia", DEVICE).add("nvidia_uvm", UVM).add("nvidia_modeset", MODESET).chosen();
  CHECK(names(functions) == joined(joined(DEVICE, UVM), MODESET));
  CHECK_FALSE(functions.back().needed);
}

TEST_CASE("Where one that is needed is missing there are none") {
  for (std::size_t missing = 0; missing < 4; missing++) {
    Names some = DEVICE;
    some.erase(some.begin() + static_cast<std::ptrdiff_t>(missing));
    CHECK(Loaded().add("nvidia", some).add("nvidia_uvm", UVM).chosen().empty());
    some = UVM;
    some.erase(some.begin() + static_cast<std::ptrdiff_t>(missing));
    CHECK(Loaded().add("nvidia", DEVICE).add("nvidia_uvm", some).chosen().empty());
  }
  CHECK(Loaded().add("nvidia", DEVICE).chosen().empty());
  CHECK(Loaded().chosen().empty());
  // Another module's do not stand in.
  CHECK(Loaded().add("nvidia_drm", DEVICE).add("nvidia_uvm", UVM).chosen().empty());
  CHECK(Loaded().add("nvidia_uvm", joined(DEVICE, UVM)).chosen().empty());
}

TEST_CASE("What a version may lack is taken where it is, by the newest of its names") {
  auto functions =
      Loaded()
          .add("nvidia", joined(DEVICE, {"nvidia_isr.isra.0", "nvidia_fault"}))
          .add("nvidia_uvm", joined(UVM, {"uvm_vm_fault_wrapper_entry", "uvm_vm_fault_entry"}))
          .chosen();
  auto find = [&](const char* name) {
    return std::find_if(functions.begin(), functions.end(),
                        [&](const DriverFunction& function) { return function.name == name; });
  };
  CHECK(functions.size() == 11);
  for (const char* name : {"nvidia_isr.isra.0", "nvidia_fault", "uvm_vm_fault_entry"}) {
    CAPTURE(name);
    REQUIRE(find(name) != functions.end());
    CHECK_FALSE(find(name)->needed);
  }
  CHECK(find("nvidia_isr.isra.0")->op == abi::CB_ISR);
  CHECK(find("nvidia_fault")->op == abi::CB_FAULT);
  CHECK(find("uvm_vm_fault_entry")->module == "nvidia_uvm");
  CHECK(find("uvm_vm_fault_wrapper_entry") == functions.end());
}
