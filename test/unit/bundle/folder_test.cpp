#include "bundle/folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>

#include "sample_bundle.hpp"
#include "util/sha256.hpp"

using namespace cudabpf;
using namespace cudabpf::bundle;

namespace {

const std::string CODE =
    "\x7f"
    "ELF code";

struct SampleFolder {
  std::filesystem::path path;

  SampleFolder() {
    char name[] = "/tmp/bundle_testXXXXXX";
    REQUIRE(mkdtemp(name));
    path = name;
  }
  ~SampleFolder() { std::filesystem::remove_all(path); }
  SampleFolder(const SampleFolder&) = delete;
  SampleFolder& operator=(const SampleFolder&) = delete;

  std::string page(char content) const { return std::string(PageRun::PAGE, content); }

  // Everything in it: two images, 1,000 bytes of data, three pages and a tape.
  Manifest fill() const {
    auto writer = FolderWriter::create(path);
    REQUIRE(writer);
    CHECK(*writer->add_image(ImageKind::cubin, CODE) == 0);
    CHECK(*writer->add_image(ImageKind::ptx, ".version 8.0") == 1);
    CHECK(*writer->add_image(ImageKind::cubin, CODE) == 0);
    CHECK(*writer->add_data(std::string(16, 'p')) == Extent{0, 16});
    CHECK(*writer->add_data(std::string(984, 'd')) == Extent{16, 984});
    CHECK(*writer->add_page(page('a')) == 0);
    CHECK(*writer->add_page(page('\0')) == std::nullopt);
    CHECK(*writer->add_page(page('b')) == 1);
    CHECK(*writer->add_page(page('c')) == 2);
    for (Action action : {Action::copy, Action::launch, Action::graph})
      REQUIRE(writer->add(sample_operation(action)));
    Manifest manifest = sample_manifest();
    REQUIRE(writer->finish(manifest));
    return manifest;
  }
  std::string file(const std::string& name) const { return (path / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
  }
  std::string fault_when_opened() const {
    auto folder = Folder::open(path);
    return folder ? std::string() : folder.error().message;
  }
  // Names the first line of the tape that is wrong.
  std::string fault_of_tape() const {
    auto folder = Folder::open(path);
    REQUIRE(folder);
    for (;;) {
      auto operation = folder->next();
      if (!operation) return operation.error().message;
      if (!*operation) return {};
    }
  }
};

}  // namespace

TEST_CASE("A capture folder is read as it was written") {
  SampleFolder sample;
  Manifest written = sample.fill();
  auto folder = Folder::open(sample.path);
  REQUIRE(folder);
  written.images = {{sha256_hex(CODE), ImageKind::cubin, CODE.size()},
                    {sha256_hex(".version 8.0"), ImageKind::ptx, 12}};
  CHECK(folder->manifest() == written);
  CHECK(*folder->image(0) == CODE);
  CHECK(*folder->image(1) == ".version 8.0");
  CHECK(*folder->data({14, 4}) == "ppdd");
  CHECK(*folder->page(1) == sample.page('b'));
  for (Action action : {Action::copy, Action::launch, Action::graph})
    CHECK(**folder->next() == sample_operation(action));
  CHECK(*folder->next() == std::nullopt);
}

TEST_CASE("Only its owner may enter a capture folder, and no other files are replaced") {
  SampleFolder sample;
  chmod(sample.path.c_str(), 0777);
  sample.fill();
  struct stat status {};
  REQUIRE(stat(sample.path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  CHECK(FolderWriter::create(sample.path).error().message ==
        sample.path.string() + " is there already, and is not an empty folder");
}

TEST_CASE("A folder without its manifest is no capture folder") {
  SampleFolder sample;
  {
    auto writer = FolderWriter::create(sample.path);
    REQUIRE(writer);
    REQUIRE(writer->add(sample_operation(Action::set)));
  }
  CHECK(sample.fault_when_opened() ==
        "open " + sample.file("manifest.json") + ": No such file or directory");
}

TEST_CASE("Files that are shorter than the manifest says are found") {
  SampleFolder sample;
  sample.fill();
  REQUIRE(truncate(sample.file("data").c_str(), 999) == 0);
  CHECK(sample.fault_when_opened() == sample.file("data") + " is cut off");
  REQUIRE(truncate(sample.file("data").c_str(), 1000) == 0);
  REQUIRE(truncate(sample.file("memory").c_str(), 3 * PageRun::PAGE - 1) == 0);
  CHECK(sample.fault_when_opened() == sample.file("memory") + " is cut off");
}

TEST_CASE("An image is what its name says, or is refused") {
  SampleFolder sample;
  sample.fill();
  std::string name = "images/" + sha256_hex(CODE) + ".cubin";
  sample.write(name, std::string(CODE.size(), 'x'));
  CHECK(Folder::open(sample.path)->image(0).error().message ==
        sample.file(name) + " is not what its name says");
  sample.write(name, CODE + "x");
  CHECK(Folder::open(sample.path)->image(0).error().message ==
        sample.file(name) + " has another size than the manifest says");
}

TEST_CASE("What is no regular file is not opened") {
  SampleFolder sample;
  sample.fill();
  std::filesystem::remove(sample.path / "data");
  REQUIRE(mkfifo(sample.file("data").c_str(), 0600) == 0);  // to open one would wait
  CHECK(sample.fault_when_opened() == sample.file("data") + " is no regular file");
  std::filesystem::remove(sample.path / "data");
  std::filesystem::create_symlink("/etc/passwd", sample.path / "data");
  CHECK(sample.fault_when_opened() ==
        "open " + sample.file("data") + ": Too many levels of symbolic links");
}

TEST_CASE("A tape that is wrong is refused with the line") {
  SampleFolder sample;
  sample.fill();
  std::string good = line_of(sample_operation(Action::set));
  sample.write("tape.jsonl", good + "{}\n" + good);
  CHECK(sample.fault_of_tape() == sample.file("tape.jsonl") + " line 2: operation.op is missing");
  sample.write("tape.jsonl", good + good);
  CHECK(sample.fault_of_tape() ==
        sample.file("tape.jsonl") + " has 2 operations, and the manifest says 3");
  sample.write("tape.jsonl", good + good + good.substr(0, 20));
  CHECK(sample.fault_of_tape() == sample.file("tape.jsonl") + " is cut off");
  sample.write("tape.jsonl", good + good + good);
  CHECK(sample.fault_of_tape().empty());
}

TEST_CASE("A tape is read however long its lines are") {
  SampleFolder sample;
  sample.fill();
  Operation operation = sample_operation(Action::graph);
  operation.nodes.resize(16'000, operation.nodes[0]);
  std::string line = line_of(operation), good = line_of(sample_operation(Action::set));
  REQUIRE(line.size() > 2 << 20);  // so that it is read in three steps or more, of 1 MiB each
  sample.write("tape.jsonl", good + line + good);
  CHECK(sample.fault_of_tape().empty());
}
