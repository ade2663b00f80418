// A capture folder comes from anybody: whatever it says, what a replay makes of its tape before it
// runs anything must not crash, hang or take much memory.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "bundle/folder.hpp"
#include "replay/launches.hpp"
#include "replay/layout.hpp"
#include "replay/listing.hpp"
#include "replay/tape.hpp"
#include "replay/trial/occurrences.hpp"
#include "util/system/fd.hpp"

using namespace cudabpf;

namespace {

// One folder for all inputs: what its manifest and its tape say of data and pages is there.
class CaptureFolder {
 public:
  CaptureFolder() {
    constexpr std::uintmax_t DATA = 4096, MEMORY = 4 * bundle::PageRun::PAGE;
    if (!mkdtemp(path_.data())) abort();
    std::filesystem::create_directory(path_ + "/images");
    for (auto [name, size] : {std::pair{"data", DATA}, std::pair{"memory", MEMORY}}) {
      write(name, {});
      std::filesystem::resize_file(path_ + '/' + name, size);
    }
  }
  ~CaptureFolder() { std::filesystem::remove_all(path_); }
  CaptureFolder(const CaptureFolder&) = delete;
  CaptureFolder& operator=(const CaptureFolder&) = delete;

  const std::string& path() const { return path_; }
  void write(const std::string& name, std::string_view text) const {
    Fd file(::open((path_ + '/' + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file || ::write(file.get(), text.data(), text.size()) != ssize_t(text.size())) abort();
  }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "cudabpf-replay-fuzz-XXXXXX";
};

}  // namespace

// The manifest, and behind an empty line the tape.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static CaptureFolder files;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::size_t end = text.find("\n\n");
  files.write("manifest.json", text.substr(0, end));
  files.write("tape.jsonl", end == text.npos ? "" : text.substr(end + 2));
  auto folder = bundle::Folder::open(files.path());
  if (!folder) return 0;
  auto tape = replay::Tape::read(*folder);
  if (!tape) return 0;
  const bundle::Manifest& manifest = folder->manifest();
  auto distinct = replay::distinct_launches(*tape, manifest);
  for (const replay::DistinctLaunch& launch : distinct)
    for (std::size_t fill : replay::fills_before(*tape, launch.first, manifest))
      if (fill >= launch.first || !tape->steps()[fill].set) abort();
  if (auto occurrences = replay::occurrences_in(*tape, manifest))
    for (const replay::Occurrence& one : *occurrences)
      if (!tape->steps().at(one.step).launch) abort();
  static_cast<void>(replay::kernel_like("*k*", *tape, manifest));
  static_cast<void>(replay::layout_of(manifest, *tape));
  static_cast<void>(replay::list_json(manifest, *tape, {}));
  return 0;
}
