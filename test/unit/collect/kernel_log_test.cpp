#include "collect/kernel_log.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

TEST_CASE("A record of the kernel's log reports a GPU's error in its first line") {
  auto error = error_in_record(
      "6,1234,5678901,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=12, name=x, off the bus; really\n"
      " SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n");
  REQUIRE(error);
  CHECK(error->xid == 79);
  CHECK(error->device == "0000:3b:00");
  CHECK(error->pid == 12);
  CHECK(error->message == "off the bus; really");
  // Newer kernels add the caller.
  error = error_in_record("4,1,2,c,caller=T99;NVRM: Xid (PCI:0000:3b:00): 13");
  REQUIRE(error);
  CHECK(error->xid == 13);
  // No head at all.
  error = error_in_record("NVRM: Xid (PCI:0000:3b:00): 13\n");
  REQUIRE(error);
  CHECK(error->xid == 13);
}

TEST_CASE("Other records report none") {
  for (const char* record :
       {"", "\n", ";", "6,1,2,-;", "6,1,2,-;\n", "6,1,2,-;NVRM: loading NVIDIA UNIX\n",
        "\n6,1,2,-;NVRM: Xid (PCI:0000:3b:00): 79\n",
        "6,1,2,-;usb 1-1: new device\n NVRM: Xid (PCI:0000:3b:00): 79\n",
        "6,1,2,NVRM: Xid (PCI:0000:3b:00): 79;else\n"}) {
    CAPTURE(record);
    CHECK_FALSE(error_in_record(record));
  }
}
