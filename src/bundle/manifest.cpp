#include "bundle/manifest.hpp"

namespace cudabpf::bundle {

void describe(auto& fields, Is<Image> auto& image) {
  fields("hash", image.hash);
  fields("kind", image.kind);
  fields("size", image.size);
}

void describe(auto& fields, Is<JitOption> auto& option) {
  fields("option", option.option);
  fields("value", option.value);
}

void describe(auto& fields, Is<Variable> auto& variable) {
  fields("name", variable.name);
  fields("address", variable.address);
  fields("size", variable.size);
  fields("before", variable.before);
  fields("after", variable.after);
}

void describe(auto& fields, Is<Module> auto& module) {
  fields("image", module.image);
  fields("library", module.library);
  fields("options", module.options);
  fields("variables", module.variables);
}

void describe(auto& fields, Is<Attribute> auto& attribute) {
  fields("attribute", attribute.attribute);
  fields("value", attribute.value);
}

void describe(auto& fields, Is<Parameter> auto& parameter) {
  fields("offset", parameter.offset);
  fields("size", parameter.size);
}

void describe(auto& fields, Is<Kernel> auto& kernel) {
  fields("name", kernel.name);
  fields("module", kernel.module);
  fields("attributes", kernel.attributes);
  fields("parameters", kernel.parameters);
  fields("refused", kernel.refused);
}

void describe(auto& fields, Is<PageRun> auto& run) {
  fields("address", run.address);
  fields("pages", run.pages);
  fields("first", run.first);
}

void describe(auto& fields, Is<Device> auto& device) {
  fields("name", device.name);
  fields("uuid", device.uuid);
  fields("driver", device.driver);
  fields("major", device.major);
  fields("minor", device.minor);
  fields("memory", device.memory);
}

void describe(auto& fields, Is<Limit> auto& limit) {
  fields("limit", limit.limit);
  fields("value", limit.value);
}

void describe(auto& fields, Is<Stream> auto& stream) {
  fields("device", stream.device);
  fields("priority", stream.priority);
  fields("non_blocking", stream.non_blocking);
}

void describe(auto& fields, Is<Iteration> auto& iteration) {
  fields("number", iteration.number);
  fields("pid", iteration.pid);
  fields("tid", iteration.tid);
  fields("begin_ns", iteration.begin_ns);
  fields("end_ns", iteration.end_ns);
}

void describe(auto& fields, Is<Refused> auto& refused) {
  fields("what", refused.what);
  fields("why", refused.why);
  fields("count", refused.count);
}

void describe(auto& fields, Is<Manifest> auto& manifest) {
  fields("format", manifest.format);
  fields("version", manifest.version);
  fields("cudabpf", manifest.cudabpf);
  fields("host", manifest.host);
  fields("unix_ns", manifest.unix_ns);
  fields("command", manifest.command);
  fields("rank", manifest.rank);
  fields("iteration", manifest.iteration);
  fields("contents", manifest.contents);
  fields("devices", manifest.devices);
  fields("limits", manifest.limits);
  fields("streams", manifest.streams);
  fields("events", manifest.events);
  fields("graphs", manifest.graphs);
  fields("images", manifest.images);
  fields("modules", manifest.modules);
  fields("kernels", manifest.kernels);
  fields("blocks", manifest.blocks);
  fields("before", manifest.before);
  fields("after", manifest.after);
  fields("operations", manifest.operations);
  fields("data_size", manifest.data_size);
  fields("memory_pages", manifest.memory_pages);
  fields("refused", manifest.refused);
}

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

bool is_in(const Extent& extent, const Manifest& manifest) {
  return extent.offset <= manifest.data_size && extent.size <= manifest.data_size - extent.offset;
}

std::string manifest_text(const Manifest& manifest) {
  constexpr int INDENT = 1;
  return Writing::json_of(manifest).dump(INDENT, ' ', false, Json::error_handler_t::replace) + '\n';
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
