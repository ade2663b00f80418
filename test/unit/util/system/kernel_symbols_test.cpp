#include "util/system/kernel_symbols.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

TEST_CASE("Functions of modules, by the names that compilers give them") {
  auto symbols = KernelSymbols::parse(
      "ffffffff81000000 T _stext\n"
      "ffffffffc0a1b2c0 t nvidia_unlocked_ioctl\t[nvidia]\n"
      "ffffffffc0a1b300 d nvidia_open\t[nvidia]\n"
      "ffffffffc0a1b300 t nvidia_mmap.cold\t[nvidia]\n"
      "ffffffffc0a1b340 t nvidia_mmap.part.0\t[nvidia]\n"
      "ffffffffc0a1b380 t nvidia_close.isra.0\t[nvidia]\n"
      "ffffffffc0a1b3c0 T uvm_open_entry.constprop.0\t[nvidia_uvm]\n"
      "ffffffffc0a1b400 t nvidia_unlocked_ioctl\t[other]\n"
      "garbage\n\tT [nvidia]\n"
      "ffffffffc0a1b440 t nvidia_poll\t[nvidia]",
      {"nvidia", "nvidia_uvm"});
  CHECK(symbols.find("nvidia", {"nvidia_unlocked_ioctl"}) == "nvidia_unlocked_ioctl");
  CHECK(symbols.find("nvidia", {"nvidia_frontend_unlocked_ioctl", "nvidia_unlocked_ioctl"}) ==
        "nvidia_unlocked_ioctl");
  CHECK(symbols.find("nvidia", {"nvidia_close"}) == "nvidia_close.isra.0");
  CHECK(symbols.find("nvidia_uvm", {"uvm_open_entry"}) == "uvm_open_entry.constprop.0");
  CHECK(symbols.find("nvidia", {"nvidia_poll"}) == "nvidia_poll");
  CHECK_FALSE(symbols.find("nvidia", {"nvidia_open"}));  // not a function
  CHECK_FALSE(symbols.find("nvidia", {"nvidia_mmap"}));  // only pieces of it
  CHECK_FALSE(symbols.find("other", {"nvidia_unlocked_ioctl"}));
  CHECK_FALSE(symbols.find("nvidia", {}));
  CHECK_FALSE(KernelSymbols::parse("", {"nvidia"}).find("nvidia", {"nvidia_open"}));
}
