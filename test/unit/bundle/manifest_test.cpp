#include "bundle/manifest.hpp"

#include <catch2/catch_test_macros.hpp>

#include "sample_bundle.hpp"

using namespace cudabpf::bundle;

namespace {

// What reading says is wrong with the sample after this change of it.
template <typename Change>
std::string manifest_fault_after(Change change) {
  Manifest manifest = sample_manifest();
  change(manifest);
  auto read = manifest_in(manifest_text(manifest));
  return read ? std::string() : read.error().message;
}

// The same after a text in it has been replaced.
std::string manifest_fault_with(const std::string& text, const std::string& by) {
  std::string manifest = manifest_text(sample_manifest());
  std::size_t at = manifest.find(text);
  REQUIRE(at != std::string::npos);
  auto read = manifest_in(manifest.replace(at, text.size(), by));
  return read ? std::string() : read.error().message;
}

const std::string NOT_ONE = "it is not a capture folder: manifest";

}  // namespace

TEST_CASE("A manifest is read as it was written") {
  Manifest manifest = sample_manifest();
  auto read = manifest_in(manifest_text(manifest));
  REQUIRE(read);
  CHECK(*read == manifest);
  manifest.rank = {};
  manifest.blocks = {};
  CHECK(*manifest_in(manifest_text(manifest)) == manifest);
}

TEST_CASE("Members that a later version has are passed over") {
  CHECK(manifest_fault_with("\"host\"", "\"new\": {\"a\": [1]}, \"host\"").empty());
  CHECK(manifest_fault_with("\"1.0\"", "\"1.7\"").empty());
}

TEST_CASE("What is no manifest is refused with the reason") {
  CHECK(manifest_in("").error().message == NOT_ONE + ".json is not JSON");
  CHECK(manifest_in("[]").error().message == NOT_ONE + ".json says that it is another");
  CHECK(manifest_in(std::string(1000, '[')).error().message == NOT_ONE + ".json nests too deep");
  CHECK(manifest_fault_with("\"1.0\"", "\"2.0\"") ==
        "it is a capture of format 2.0; this cudabpf reads 1.x");
}

TEST_CASE("A member of a manifest that is wrong is named") {
  CHECK(manifest_fault_with("\"host\": \"node7\"", "\"host\": 7") ==
        NOT_ONE + ".host is not a text");
  CHECK(manifest_fault_with("\"host\": \"node7\",", "") == NOT_ONE + ".host is missing");
  CHECK(manifest_fault_with("\"cubin\"", "\"elf\"") ==
        NOT_ONE + ".images[0].kind is none of the words that it may be");
  CHECK(manifest_fault_with("\"0x7f0000200000\"", "\"7f0000200000\"") ==
        NOT_ONE + ".modules[0].variables[0].address is not an address");
  CHECK(manifest_fault_with("\"tid\": 4243", "\"tid\": -1") ==
        NOT_ONE + ".iteration.tid is out of range");
  CHECK(manifest_fault_with("\"tid\": 4243", "\"tid\": 4294967296") ==
        NOT_ONE + ".iteration.tid is out of range");
  CHECK(manifest_fault_with("\"tid\": 4243", "\"tid\": 1.5") ==
        NOT_ONE + ".iteration.tid is not a whole number");
  CHECK(manifest_fault_with("\"contents\": true", "\"contents\": 1") ==
        NOT_ONE + ".contents is neither true nor false");
}

TEST_CASE("What refers to nothing is refused") {
  CHECK(manifest_fault_after([](Manifest& m) { m.images[1].hash = "../../../etc/passwd"; }) ==
        NOT_ONE + ".images[1].hash is no SHA-256");
  CHECK(manifest_fault_after([](Manifest& m) { m.modules[1].image = 2; }) ==
        NOT_ONE + ".modules[1].image is none of the images");
  CHECK(manifest_fault_after([](Manifest& m) { m.modules[0].variables[0].before->offset = 997; }) ==
        NOT_ONE + ".modules[0].variables are not in the file");
  CHECK(manifest_fault_after([](Manifest& m) { m.modules[0].variables[0].size = 8; }) ==
        NOT_ONE + ".modules[0].variables are not in the file");
  CHECK(manifest_fault_after([](Manifest& m) { m.streams[1].device = 1; }) ==
        NOT_ONE + ".streams have no such device");
  CHECK(manifest_fault_after([](Manifest& m) { m.kernels[0].module = 9; }) ==
        NOT_ONE + ".kernels[0].module is none of the modules");
  CHECK(manifest_fault_after([](Manifest& m) { m.kernels[0].parameters[1].offset = 1 << 20; }) ==
        NOT_ONE + ".kernels[0].parameters are too large");
  CHECK(manifest_fault_after([](Manifest& m) { m.blocks[0].device = 1; }) ==
        NOT_ONE + ".blocks[0].device is none of the devices");
  CHECK(manifest_fault_after([](Manifest& m) { m.devices.clear(); }) ==
        NOT_ONE + ".devices is empty");
  CHECK(manifest_fault_after([](Manifest& m) { m.streams.clear(); }) ==
        NOT_ONE + ".streams is empty");
}

TEST_CASE("No page of memory has two contents, and none that is not in the file") {
  CHECK(manifest_fault_after([](Manifest& m) { m.before[1].address.value -= PageRun::PAGE; }) ==
        NOT_ONE + ".before[1] has pages that another one has, too");
  CHECK(manifest_fault_after([](Manifest& m) { m.before[0].address.value += 512; }) ==
        NOT_ONE + ".before[0] is no range of pages");
  CHECK(manifest_fault_after([](Manifest& m) { m.before[0].pages = 0; }) ==
        NOT_ONE + ".before[0] is no range of pages");
  CHECK(manifest_fault_after([](Manifest& m) { m.after[0].first = 3; }) ==
        NOT_ONE + ".after[0].first is behind the end of the file");
  CHECK(manifest_fault_after([](Manifest& m) { m.after[0].first = 0xffffffff; }) ==
        NOT_ONE + ".after[0].first is behind the end of the file");
  CHECK(manifest_fault_after([](Manifest& m) { m.blocks[0].size = 0; }) ==
        NOT_ONE + ".blocks[0] is no range of addresses");
  CHECK(manifest_fault_after([](Manifest& m) { m.blocks[0].address.value = ~0ULL - 10; }) ==
        NOT_ONE + ".blocks[0] is no range of addresses");
}
