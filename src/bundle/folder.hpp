// A capture folder on a disk. It has the program's weights, inputs and code, so only its owner may
// enter it; and it may come from anybody, so what is read must be what the manifest says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "bundle/tape.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::bundle {

class FolderWriter {
 public:
  // Makes it, or takes an empty one.
  static Result<FolderWriter> create(const std::string& path);

  // Its place in the manifest; the same bytes are kept once.
  Result<std::uint32_t> add_image(ImageKind kind, std::string_view bytes);
  Result<Extent> add_data(std::string_view bytes);
  // PageRun::PAGE bytes; nothing: they are all zeroes, and take no place.
  Result<std::optional<std::uint32_t>> add_page(std::string_view page);
  // Whether that place, as add_page() returned it, has these bytes.
  Result<bool> has_page(const std::optional<std::uint32_t>& place, std::string_view page) const;
  Result<> add(const Operation& operation);
  // Fills in what it has counted. Until then it is no capture folder.
  Result<> finish(Manifest manifest);
  std::uint64_t operations() const { return operations_; }

 private:
  explicit FolderWriter(std::string path) : path_(std::move(path)) {}

  std::string path_;
  Fd folder_, images_, tape_, data_, memory_;
  std::vector<Image> known_images_;
  std::unordered_map<std::string, std::uint32_t> image_places_;  // by hash and kind
  std::uint64_t operations_ = 0, data_size_ = 0;
  std::uint32_t memory_pages_ = 0;
};

class Folder {
 public:
  static Result<Folder> open(const std::string& path);

  const Manifest& manifest() const { return manifest_; }
  // As it was given to the driver: its hash is the manifest's.
  Result<std::string> image(std::size_t place) const;
  Result<std::string> data(const Extent& extent) const;
  Result<std::string> page(std::uint32_t number) const;
  // The tape's, in their order; nothing: there are no more.
  Result<std::optional<Operation>> next();

 private:
  explicit Folder(std::string path) : path_(std::move(path)) {}

  Error broken(std::string_view file, std::string_view why) const;
  Result<std::string> part_of(const Fd& file, const char* name, const Extent& extent) const;
  Result<bool> read_more();  // of the tape; false: there is no more

  std::string path_;
  Fd images_, tape_, data_, memory_;
  Manifest manifest_;
  std::string read_;  // of the tape, from `at_` on not used yet
  std::size_t at_ = 0;
  std::uint64_t lines_ = 0;
};

}  // namespace cudabpf::bundle
