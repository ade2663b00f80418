#include "bundle/manifest.hpp"

namespace cudabpf::bundle {

namespace {

constexpr std::size_t HASH_DIGITS = 64;

bool is_hash(std::string_view text) {
  return text.size() == HASH_DIGITS &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Calls `check(thing)`, which returns what is wrong, if anything, for each.
template <typename Thing, typename Check>
std::string check_each(const char* name, const std::vector<Thing>& things, Check check) {
  for (std::size_t i = 0; i < things.size(); i++)
    if (std::string fault = check(things[i]); !fault.empty())
      return fmt::format("manifest.{}[{}]{}", name, i, fault);
  return {};
}

std::string check_runs(const Manifest& manifest, const char* name,
                       const std::vector<PageRun>& runs) {
  std::uint64_t end = 0;
  return check_each(name, runs, [&](const PageRun& run) -> std::string {
    std::uint64_t address = run.address.value, size = run.pages * PageRun::PAGE;
    if (address % PageRun::PAGE || !is_range(address, size)) return " is no range of pages";
    if (address < end) return " has pages that another one has, too";
    end = address + size;
    if (run.first &&
        (*run.first > manifest.memory_pages || run.pages > manifest.memory_pages - *run.first))
      return ".first is behind the end of the file";
    return {};
  });
}

std::string check_code(const Manifest& manifest) {
  std::string fault = check_each("images", manifest.images, [](const Image& image) {
    return is_hash(image.hash) ? "" : ".hash is no SHA-256";
  });
  if (!fault.empty()) return fault;
  fault = check_each("modules", manifest.modules, [&](const Module& module) -> std::string {
    if (module.image >= manifest.images.size()) return ".image is none of the images";
    for (const Variable& variable : module.variables)
      for (const auto& content : {variable.before, variable.after})
        if (content && (!is_in(*content, manifest) || content->size != variable.size))
          return ".variables are not in the file";
    return {};
  });
  if (!fault.empty()) return fault;
  return check_each("kernels", manifest.kernels, [&](const Kernel& kernel) -> std::string {
    if (kernel.module >= manifest.modules.size()) return ".module is none of the modules";
    for (const Parameter& parameter : kernel.parameters)
      if (parameter.offset > MAX_PARAMETERS || parameter.size > MAX_PARAMETERS - parameter.offset)
        return ".parameters are too large";
    return {};
  });
}

std::string check_memory(const Manifest& manifest) {
  std::string fault = check_each("blocks", manifest.blocks, [&](const Block& block) -> std::string {
    if (!is_range(block.address.value, block.size)) return " is no range of addresses";
    return block.device < manifest.devices.size() ? "" : ".device is none of the devices";
  });
  if (fault.empty()) fault = check_runs(manifest, "before", manifest.before);
  if (fault.empty()) fault = check_runs(manifest, "after", manifest.after);
  return fault;
}

std::string check(const Manifest& manifest) {
  if (manifest.devices.empty()) return "manifest.devices is empty";
  if (manifest.streams.empty()) return "manifest.streams is empty";
  for (const Stream& stream : manifest.streams)
    if (stream.device >= manifest.devices.size()) return "manifest.streams have no such device";
  if (manifest.data_size > MAX_ADDRESS) return "manifest.data_size is out of range";
  std::string fault = check_code(manifest);
  return fault.empty() ? check_memory(manifest) : fault;
}

Error not_one(const std::string& why) { return {"it is not a capture folder: " + why, {}}; }

}  // namespace

ImageKind kind_of(std::string_view code) {
  constexpr std::string_view ELF =
      "\x7f"
      "ELF";
  constexpr std::string_view FAT_BINARY = "\x50\xed\x55\xba";
  if (code.starts_with(ELF)) return ImageKind::cubin;
  return code.starts_with(FAT_BINARY) ? ImageKind::fat_binary : ImageKind::ptx;
}

std::string file_of(const Image& image) {
  return fmt::format("{}.{}", image.hash, IMAGE_KINDS[static_cast<std::size_t>(image.kind)]);
}

bool is_in(const Extent& extent, const Manifest& manifest) {
  return extent.offset <= manifest.data_size && extent.size <= manifest.data_size - extent.offset;
}

std::string manifest_text(const Manifest& manifest) {
  constexpr int INDENT = 1;
  return Writing::text_of(manifest, INDENT);
}

Result<Manifest> manifest_in(std::string_view text) {
  if (nests_too_deep(text)) return not_one("manifest.json nests too deep");
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return not_one("manifest.json is not JSON");
  if (text_in(json, "format") != FORMAT) return not_one("manifest.json says that it is another");
  std::string version = text_in(json, "version");
  if (!version.starts_with("1."))
    return Error{fmt::format("it is a capture of format {}; this cudabpf reads 1.x",
                             version.empty() ? "without a version" : version),
                 "a newer cudabpf reads it"};
  Manifest manifest;
  std::string fault = Reading::read(json, "manifest", manifest);
  if (fault.empty()) fault = check(manifest);
  if (!fault.empty()) return not_one(fault);
  return manifest;
}

}  // namespace cudabpf::bundle
