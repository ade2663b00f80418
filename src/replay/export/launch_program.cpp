#include "replay/export/launch_program.hpp"

#include <fmt/format.h>

#include "replay/layout.hpp"
#include "util/demangle/demangle.hpp"

namespace cudabpf::replay {

namespace {

// As launch.cpp.in is.
constexpr const char* LAUNCH_TEMPLATE =
#include "launch_template.inc"
    ;  // NOLINT: a text
constexpr std::string_view MARK = "//@TABLES@\n";

// What may be foreign is given as a text of C++, with nothing that ends it.
std::string cpp_text(std::string_view text) {
  std::string made = "\"";
  for (char letter : text) {
    bool is_plain =
        letter >= ' ' && letter <= '~' && letter != '"' && letter != '\\' && letter != '?';
    made += is_plain ? std::string(1, letter)
                     : fmt::format("\\{:03o}", static_cast<unsigned char>(letter));
  }
  return made + '"';
}

class Tables {
 public:
  // A table without rows is no C++: it has one that means nothing.
  void table(const char* type, const char* name, const std::vector<std::string>& rows,
             const char* none) {
    text_ += fmt::format("const {} {}[] = {{\n", type, name);
    for (const std::string& row : rows) text_ += "    " + row + ",\n";
    if (rows.empty()) text_ += fmt::format("    {},\n", none);
    text_ += "};\n";
  }
  void line(const std::string& line) { text_ += line + '\n'; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::vector<std::string> rows_of(const std::vector<Range>& ranges) {
  std::vector<std::string> rows;
  rows.reserve(ranges.size());
  for (const Range& range : ranges)
    rows.push_back(fmt::format("{{{:#x}, {:#x}}}", range.begin, range.size()));
  return rows;
}

void add_memory_tables(Tables& tables, const ExportedFolder& folder) {
  Layout layout = layout_of(*folder.manifest, *folder.tape);
  tables.table("Range", "RESERVED", rows_of(layout.reserved), "{0, 0}");
  tables.table("Range", "DEVICE", rows_of(layout.device), "{0, 0}");
  tables.table("Range", "HOST", rows_of(layout.host), "{0, 0}");
  std::vector<std::string> pages;
  for (const bundle::PageRun& run : folder.manifest->before)
    pages.push_back(fmt::format("{{{:#x}, {}, {}}}", run.address.value, run.pages,
                                run.first ? static_cast<std::int64_t>(*run.first) : -1));
  tables.table("Pages", "PAGES", pages, "{0, 0, -1}");
  std::vector<std::string> limits;
  for (const bundle::Limit& limit : folder.manifest->limits)
    limits.push_back(fmt::format("{{{}, {}u}}", limit.limit & 0x7fffffff, limit.value));
  tables.table("Limit", "LIMITS", limits, "{-1, 0}");
}

void add_code_tables(Tables& tables, const Manifest& manifest) {
  std::vector<std::string> images, variables, kernels, attributes, parameters;
  for (std::size_t i = 0; i < manifest.modules.size(); i++) {
    const bundle::Module& module = manifest.modules[i];
    images.push_back(cpp_text(image_file(manifest.images[module.image])));
    for (const bundle::Variable& one : module.variables)
      variables.push_back(
          fmt::format("{{{}, {}, {:#x}, {}, {}}}", i, cpp_text(one.name), one.address.value,
                      one.size, one.before ? static_cast<std::int64_t>(one.before->offset) : -1));
  }
  for (std::size_t i = 0; i < manifest.kernels.size(); i++) {
    const bundle::Kernel& kernel = manifest.kernels[i];
    kernels.push_back(fmt::format("{{{}, {}}}", kernel.module, cpp_text(kernel.name)));
    for (const bundle::Attribute& one : kernel.attributes)
      attributes.push_back(
          fmt::format("{{{}, {}, {}}}", i, static_cast<std::int32_t>(one.attribute), one.value));
    for (const bundle::Parameter& one : kernel.parameters)
      parameters.push_back(fmt::format("{{{}, {}, {}}}", i, one.offset, one.size));
  }
  tables.table("char* const", "IMAGES", images, "nullptr");
  tables.table("Variable", "VARIABLES", variables, "{0, \"\", 0, 0, -1}");
  tables.table("Kernel", "KERNELS", kernels, "{0, \"\"}");
  tables.table("Attribute", "ATTRIBUTES", attributes, "{-1, 0, 0}");
  tables.table("Parameter", "PARAMETERS", parameters, "{-1, 0, 0}");
}

std::vector<std::string> rows_of(std::size_t number, const std::vector<Occurrence::Part>& parts) {
  std::vector<std::string> rows;
  rows.reserve(parts.size());
  for (const Occurrence::Part& part : parts)
    rows.push_back(fmt::format("{{{}, {:#x}, {}, {}}}", number, part.range.begin, part.range.size(),
                               part.bytes.offset));
  return rows;
}

void add_launch_tables(Tables& tables, const ExportedFolder& folder) {
  constexpr std::uint64_t ATTRIBUTE = 72;
  std::vector<std::string> launches, inputs, outputs;
  for (std::size_t i = 0; i < folder.occurrences.size(); i++) {
    const Occurrence& occurrence = folder.occurrences[i];
    const bundle::Launch& launch = folder.launch_of(occurrence);
    bundle::Extent attributes = launch.attributes.value_or(bundle::Extent{});
    launches.push_back(fmt::format(
        "{{{}, {}, {{{}, {}, {}}}, {{{}, {}, {}}}, {}, {}, {}, {}, {}, {}}}",
        folder.tape->steps()[occurrence.step].operation->call, launch.kernel, launch.grid[0],
        launch.grid[1], launch.grid[2], launch.block[0], launch.block[1], launch.block[2],
        launch.shared, launch.cooperative, launch.parameters.offset, launch.parameters.size,
        attributes.offset, attributes.size / ATTRIBUTE));
    for (std::string& row : rows_of(i, occurrence.in)) inputs.push_back(std::move(row));
    for (std::string& row : rows_of(i, occurrence.out)) outputs.push_back(std::move(row));
  }
  tables.table("Occurrence", "OCCURRENCES", launches, "");
  tables.table("Copy", "INPUTS", inputs, "{-1, 0, 0, 0}");
  tables.table("Copy", "OUTPUTS", outputs, "{-1, 0, 0, 0}");
  tables.line(fmt::format("constexpr u64 DATA_SIZE = {};", folder.manifest->data_size));
}

}  // namespace

std::string launch_program(const ExportedFolder& folder) {
  Tables tables;
  tables.line(fmt::format("constexpr const char* KERNEL_NAME = {};",
                          cpp_text(demangle(folder.kernel().name))));
  add_memory_tables(tables, folder);
  add_code_tables(tables, *folder.manifest);
  add_launch_tables(tables, folder);
  std::string text = LAUNCH_TEMPLATE;
  return text.replace(text.find(MARK), MARK.size(), tables.take());
}

}  // namespace cudabpf::replay
