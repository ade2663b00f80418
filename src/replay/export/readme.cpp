#include "replay/export/readme.hpp"

#include <fmt/format.h>

#include "replay/layout.hpp"
#include "replay/listing.hpp"
#include "util/console/terminal.hpp"
#include "util/demangle/demangle.hpp"
#include "util/text/printable.hpp"

namespace cudabpf::replay {

namespace {

// Names are the program's: they must end neither a line nor a piece of code.
std::string as_code(std::string_view text) {
  std::string made;
  for (char letter : text)
    made += letter == '`' ? '\'' : letter < ' ' && letter >= 0 ? ' ' : letter;
  return '`' + made + '`';
}

std::string occurrence_rows(const ExportedKernel& made, const ExportedFolder& folder) {
  std::string rows;
  for (std::size_t i = 0; i < folder.occurrences.size(); i++) {
    const Occurrence& occurrence = folder.occurrences[i];
    const bundle::Launch& launch = folder.launch_of(occurrence);
    std::uint64_t varying = i < made.extracted.launches.size()
                                ? size_of(made.extracted.launches[i].not_deterministic)
                                : 0;
    rows += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n",
                        folder.tape->steps()[occurrence.step].operation->call,
                        dim_text(launch.grid), dim_text(launch.block), with_commas(launch.shared),
                        with_commas(bytes_in(occurrence.in)), with_commas(bytes_in(occurrence.out)),
                        with_commas(varying));
  }
  return rows;
}

std::string pointer_rows(const ExportedKernel& made, const ExportedFolder& folder) {
  std::string rows;
  for (std::size_t i = 0; i < made.extracted.launches.size() && i < folder.occurrences.size(); i++)
    for (const Pointer& pointer : made.extracted.launches[i].pointers)
      rows += fmt::format("| {} | {} | {:#x} | {:#x}, {} | {} |\n",
                          folder.tape->steps()[folder.occurrences[i].step].operation->call,
                          pointer.offset, pointer.to.value, pointer.block.begin.value,
                          human_bytes(pointer.block.size),
                          with_commas(pointer.to.value - pointer.block.begin.value));
  return rows;
}

constexpr const char* HOW_TO_RUN = R"(
## Run it

With cudabpf, which compares what it leaves, times it, and tries other code in its place:

```
cudabpf replay .                        # equal, or not
cudabpf replay . --isolated             # how long it takes
cudabpf replay . --with other.cubin     # whether other code does the same, and how fast
```

Without it, with nothing but a compiler and the driver:

```
g++ -O2 -o launch launch.cpp -lcuda
./launch
./launch --image other.cubin
```

Where the linker finds no libcuda.so, `-l:libcuda.so.1` is the driver's own. `launch` prints for
each occurrence the median of its times, from an event before it to one after it, and whether all
bytes are as expected. Its exit status is 0 if they are, and 1 if not. `--with` notices more: it
poisons what the kernel writes, and runs the occurrences in a random order.

Other code is a cubin, a fat binary or PTX. It takes the same parameters, and has the kernel's
mangled name (with `nvcc -cubin`, declare the kernel as it was declared), or is the only kernel in
its file.
)";

}  // namespace

std::string memory_sentence(const ExportedKernel& made) {
  std::string blocks = count_of(made.extracted.blocks, "block of memory", "blocks of memory");
  if (made.memory == MemoryTaken::pointers)
    return fmt::format("It has the {} that its parameters lead to or that it writes", blocks);
  std::string which = made.memory == MemoryTaken::all
                          ? "that were live then"
                          : "that its parameters lead to, with those that follow without a gap";
  return fmt::format("It has the {} {}, since with fewer it did not do the same ({})", blocks,
                     which, made.why_more_memory);
}

std::string readme_text(const ExportedKernel& made, const ExportedFolder& folder) {
  std::string whole = demangle(made.kernel);
  std::string text = fmt::format("# {}\n\n", printable(short_name(whole)));
  text +=
      "**This folder holds data of the program it was captured from: code, weights, inputs.** "
      "Give it to nobody who may not have these.\n\n";
  text += fmt::format(
      "One kernel of a captured program, with {} of the {} that the program made "
      "of it.\n\n",
      count_of(folder.occurrences.size(), "launch", "launches"), with_commas(made.live_launches));
  text += fmt::format("- kernel: {}\n- mangled: {}\n", as_code(whole), as_code(made.kernel));
  text += fmt::format("- from: {}\n", printable(origin_of(*folder.manifest)));
  for (const bundle::Module& module : folder.manifest->modules)
    text += fmt::format("- code: {}\n", as_code(image_file(folder.manifest->images[module.image])));
  text += fmt::format("- memory: {}. {}.\n", human_bytes(made.extracted.block_bytes),
                      printable(memory_sentence(made)));
  text += fmt::format(
      "- checked: on {}, {}.\n", made.gpu.name,
      made.is_right() ? "it leaves what is expected" : "**it does not leave what is expected**");
  text +=
      "\n## Occurrences\n\nIn any order: before each, `in` bytes are copied to the GPU, which "
      "are all that any of them writes and all that is not the same for all of them; after it, "
      "`out` bytes are compared. Bytes that are not the same each time it runs are not "
      "compared.\n\n| call | grid | block | shared | in | out | not deterministic |\n"
      "|---|---|---|---|---|---|---|\n" +
      occurrence_rows(made, folder);
  std::string pointers = pointer_rows(made, folder);
  if (!pointers.empty())
    text +=
        "\n## Pointers in its parameters\n\nWords that are addresses in live memory; one that "
        "is at no multiple of 8 may be none.\n\n| call | offset | address | block | byte of "
        "the block |\n|---|---|---|---|---|\n" +
        pointers;
  return text + HOW_TO_RUN;
}

}  // namespace cudabpf::replay
