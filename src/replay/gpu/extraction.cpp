#include "replay/gpu/extraction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "replay/export/granules.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf::replay {

namespace {

constexpr std::uint64_t NEAR = 64 << 10;  // what lies nearer than this is copied as one

Range range_of_block(const bundle::Block& block) {
  return {block.address.value, block.address.value + block.size};
}

bundle::Operation operation_for(Action action, const bundle::Operation& of) {
  bundle::Operation operation;
  operation.action = action;
  operation.call = of.call;
  operation.device = of.device;
  return operation;
}

}  // namespace

Result<> Extraction::run(std::size_t step) {
  TRY(play_up_to_(step + 1));
  if (!bench_->player().skipped_steps().contains(step)) return ok();
  std::string why;
  for (const Skipped& skipped : bench_->player().skipped()) why = skipped.why;
  return Error{fmt::format("{} was not run: {}", bench_->player().description(step), why), {}};
}

void Extraction::need(const bundle::Block& block) {
  bundle::Block& known = blocks_.try_emplace(block.address.value, block).first->second;
  known.size = std::max(known.size, block.size);
}

// In the order of addresses, so that it goes from one to the next.
void Extraction::need_touching(const LiveBlocks& live) {
  for (std::size_t i = 0; i + 1 < live.all().size(); i++) {
    const bundle::Block &block = live.all()[i], &next = live.all()[i + 1];
    if (blocks_.contains(block.address.value) && block.kind == next.kind &&
        range_of_block(block).end == next.address.value)
      need(next);
  }
}

std::vector<const GpuCode::Variable*> Extraction::variables() const {
  const Manifest& manifest = bench_->folder().manifest();
  std::vector<bool> is_own(manifest.modules.size());
  for (const Taken& taken : taken_)
    is_own[manifest.kernels[launch_at(taken.step).kernel].module] = true;
  std::vector<const GpuCode::Variable*> own;
  for (std::size_t i = 0; i < is_own.size(); i++)
    for (const bundle::Variable& captured : manifest.modules[i].variables)
      for (const GpuCode::Variable& variable : bench_->code().variables())
        if (is_own[i] && variable.captured == &captured) own.push_back(&variable);
  return own;
}

std::vector<Range> Extraction::block_ranges() const {
  std::vector<Range> all;
  for (const auto& [address, block] : blocks_) all.push_back(range_of_block(block));
  return merged(std::move(all));
}

Result<> Extraction::survey(MemoryTaken memory) {
  MemoryView::Fingerprints first;
  for (Taken& taken : taken_) {
    TRY(play_up_to_(taken.step));
    auto before = TRY(view_.fingerprints());
    if (first.empty()) first = before;
    auto differing = view_.changes(first, before);
    differing_.insert(differing_.end(), differing.begin(), differing.end());
    TRY(add_needed(taken, memory));
    TRY(run(taken.step));
    taken.written = view_.changes(before, TRY(view_.fingerprints()));
    differing_.insert(differing_.end(), taken.written.begin(), taken.written.end());
    LiveBlocks live(bench_->folder().manifest(), bench_->tape(), taken.step);
    for (const bundle::Block& block : live.all())
      if (!parts_in(taken.written, range_of_block(block)).empty()) need(block);
    if (memory == MemoryTaken::touching) need_touching(live);
  }
  differing_ = merged(std::move(differing_));
  return settle_regions();
}

// A pointer to a table of pointers needs what these point to, too; the table may be anywhere in a
// large block.
Result<> Extraction::follow(const LiveBlocks& live, std::vector<FoundPointer> pointers,
                            std::vector<bool>& is_needed) const {
  constexpr int MOST_LEVELS = 4;
  constexpr std::uint64_t MOST_TABLE = 64 << 10;
  constexpr std::size_t MOST_TABLES = 4096;
  std::map<std::uint64_t, bool> seen;
  for (int level = 0; level < MOST_LEVELS && !pointers.empty(); level++) {
    std::vector<FoundPointer> further;
    for (const FoundPointer& pointer : pointers) {
      is_needed[pointer.block] = true;
      std::uint64_t begin = pointer.to / sizeof(std::uint64_t) * sizeof(std::uint64_t);
      if (seen.size() == MOST_TABLES || !seen.try_emplace(begin, true).second) continue;
      Range block = range_of_block(live.all()[pointer.block]);
      Range table{std::max(begin, block.begin), std::min(begin + MOST_TABLE, block.end)};
      auto found = pointers_in(TRY(view_.read(table)), live, true);
      further.insert(further.end(), found.begin(), found.end());
    }
    pointers = std::move(further);
  }
  return ok();
}

Result<> Extraction::add_needed(Taken& taken, MemoryTaken memory) {
  LiveBlocks live(bench_->folder().manifest(), bench_->tape(), taken.step);
  const bundle::Extent& parameters = launch_at(taken.step).parameters;
  auto found =
      pointers_in(bench_->player().data().substr(parameters.offset, parameters.size), live, false);
  for (const FoundPointer& pointer : found) {
    const bundle::Block& block = live.all()[pointer.block];
    taken.said.pointers.push_back(
        {static_cast<std::uint32_t>(pointer.offset), {pointer.to}, {block.address, block.size}});
  }
  std::vector<bool> is_needed(live.all().size(), memory == MemoryTaken::all);
  TRY(follow(live, found, is_needed));
  for (std::size_t i = 0; i < is_needed.size(); i++)
    if (is_needed[i]) need(live.all()[i]);
  return ok();
}

Result<> Extraction::settle_regions() {
  std::vector<Range> all = block_ranges();
  for (const GpuCode::Variable* variable : variables()) all.push_back(range_of(*variable));
  regions_ = merged(std::move(all));
  given_ = joined(differing_, regions_, NEAR);
  if (size_of(given_) > host_memory() / 4)
    return Error{fmt::format("{} are not the same for all of the launches, which is more than this "
                             "machine has memory for",
                             human_bytes(size_of(given_))),
                 "take fewer of them with --occurrences"};
  for (Taken& taken : taken_) {
    taken.said.changed = size_of(joined(taken.written, regions_, 1));
    taken.written = joined(taken.written, regions_, NEAR);
  }
  return ok();
}

// ----- what is kept

Result<> Extraction::write_copy(bundle::FolderWriter& writer, const Taken& taken,
                                const Range& range, std::string_view bytes, bool is_to_host) const {
  bundle::Operation operation =
      operation_for(Action::copy, *bench_->tape().steps()[taken.step].operation);
  operation.copy.emplace();
  operation.copy->rows.width = range.size();
  (is_to_host ? operation.copy->from : operation.copy->to).address = bundle::Address{range.begin};
  operation.copy->data = TRY(writer.add_data(bytes));
  return writer.add(operation);
}

// Whether it does the same again: what does not is not compared.
Result<std::vector<Range>> Extraction::run_again(Taken& taken,
                                                 const std::vector<std::string>& before,
                                                 const std::vector<std::string>& after) {
  constexpr int TIMES = 3, MORE_TIMES = 24;  // where something differs, more of it does
  std::vector<Range> varying;
  for (int i = 0; i < (varying.empty() ? TIMES : MORE_TIMES); i++) {
    for (std::size_t k = 0; k < taken.written.size(); k++)
      TRY(view_.write(taken.written[k], before[k]));
    TRY(driver_->synchronize());
    TRY(bench_->player().launch_on(taken.step, nullptr).result());
    TRY(driver_->synchronize());
    for (std::size_t k = 0; k < taken.written.size(); k++) {
      auto differs =
          differences_between(after[k], TRY(view_.read(taken.written[k])), taken.written[k]);
      varying.insert(varying.end(), differs.begin(), differs.end());
    }
  }
  return merged(std::move(varying));
}

Result<> Extraction::write_launch(bundle::FolderWriter& writer, Taken& taken) {
  TRY(play_up_to_(taken.step));
  for (const Range& range : given_)
    TRY(write_copy(writer, taken, range, TRY(view_.read(range)), false));
  std::vector<std::string> before, after;
  for (const Range& range : taken.written) before.push_back(TRY(view_.read(range)));
  if (&taken == &taken_.front()) {
    made_.before = TRY(write_pages(writer, block_ranges()));
    TRY(write_variables(writer, false));
  }
  TRY(run(taken.step));
  for (const Range& range : taken.written) after.push_back(TRY(view_.read(range)));
  if (&taken == &taken_.back()) {
    made_.after = TRY(write_pages(writer, given_));
    TRY(write_variables(writer, true));
  }
  bundle::Operation operation =
      operation_for(Action::launch, *bench_->tape().steps()[taken.step].operation);
  bundle::Launch& launch = operation.launch.emplace(launch_at(taken.step));
  std::string_view data = bench_->player().data();
  auto kept = [&](const bundle::Extent& extent) {
    return writer.add_data(data.substr(extent.offset, extent.size));
  };
  launch.kernel = kernels_.at(launch.kernel);
  launch.parameters = TRY(kept(launch.parameters));
  if (launch.attributes) launch.attributes = TRY(kept(*launch.attributes));
  TRY(writer.add(operation));
  auto varying = TRY(run_again(taken, before, after));
  for (std::size_t k = 0; k < taken.written.size(); k++) {
    std::vector<Range> compared{taken.written[k]};
    for (const Range& part : parts_in(varying, taken.written[k]))
      compared = without(compared, part);
    for (const Range& part : compared)
      TRY(write_copy(
          writer, taken, part,
          std::string_view(after[k]).substr(part.begin - taken.written[k].begin, part.size()),
          true));
  }
  taken.said.in = size_of(given_);
  taken.said.not_deterministic = addresses_of(varying);
  return ok();
}

// Of each page that one of the ranges touches, what the blocks have there.
Result<std::vector<bundle::PageRun>> Extraction::write_pages(bundle::FolderWriter& writer,
                                                             const std::vector<Range>& of) {
  std::vector<bundle::PageRun> runs;
  std::vector<Range> blocks = block_ranges();
  for (const Range& pages : rounded(of, PAGE))
    for (std::uint64_t at = pages.begin; at < pages.end; at += PAGE) {
      std::vector<Range> parts = parts_in(blocks, {at, at + PAGE});
      if (parts.empty()) continue;  // a variable's
      std::string page(PAGE, '\0');
      for (const Range& part : parts) TRY(view_.read(part, page.data() + (part.begin - at)));
      auto number = TRY(writer.add_page(page));
      bool follows = !runs.empty() && runs.back().address.value + runs.back().pages * PAGE == at &&
                     runs.back().first.has_value() == number.has_value();
      if (follows)
        runs.back().pages++;
      else
        runs.push_back({{at}, 1, number});
    }
  return runs;
}

Result<> Extraction::write_variables(bundle::FolderWriter& writer, bool are_after) {
  for (const GpuCode::Variable* variable : variables()) {
    if (!variable->captured->before || !variable->captured->size) continue;
    for (bundle::Module& module : made_.modules)
      for (bundle::Variable& kept : module.variables)
        if (kept.address == variable->captured->address && kept.name == variable->captured->name) {
          auto extent = TRY(writer.add_data(TRY(view_.read(range_of(*variable)))));
          (are_after ? kept.after : kept.before) = extent;
        }
  }
  return ok();
}

Result<> Extraction::take_code(bundle::FolderWriter& writer) {
  const Manifest& from = bench_->folder().manifest();
  for (const Taken& taken : taken_) {
    std::uint32_t number = launch_at(taken.step).kernel;
    if (kernels_.contains(number)) continue;
    bundle::Kernel kernel = from.kernels[number];
    if (!modules_.contains(kernel.module)) {
      bundle::Module module = from.modules[kernel.module];
      const bundle::Image& image = from.images[module.image];
      module.image = TRY(writer.add_image(image.kind, TRY(bench_->folder().image(module.image))));
      for (bundle::Variable& variable : module.variables) variable.before = variable.after = {};
      modules_[kernel.module] = static_cast<std::uint32_t>(made_.modules.size());
      made_.modules.push_back(std::move(module));
    }
    kernel.module = modules_[kernel.module];
    kernels_[number] = static_cast<std::uint32_t>(made_.kernels.size());
    made_.kernels.push_back(std::move(kernel));
  }
  return ok();
}

Result<> Extraction::write(bundle::FolderWriter& writer) {
  made_ = bench_->folder().manifest();
  made_.streams.resize(1);
  made_.events = made_.graphs = 0;
  made_.images.clear();
  made_.modules.clear();
  made_.kernels.clear();
  made_.refused.clear();
  made_.blocks.clear();
  for (const auto& [address, block] : blocks_) made_.blocks.push_back(block);
  TRY(take_code(writer));
  for (Taken& taken : taken_) TRY(write_launch(writer, taken));
  return ok();
}

// It waits for the disk, which may take longer than a kernel may.
Result<> Extraction::finish(bundle::FolderWriter& writer) {
  std::jthread beating([this](const std::stop_token& stop) {
    constexpr std::chrono::milliseconds OFTEN{50};
    while (!stop.stop_requested()) {
      progress_->beat();
      std::this_thread::sleep_for(OFTEN);
    }
  });
  return writer.finish(made_);
}

Result<Extracted> Extraction::extract(const Request& request) {
  for (std::uint64_t step : request.launches) {
    if (step >= bench_->tape().steps().size() || !bench_->tape().steps()[step].launch ||
        (!taken_.empty() && step <= taken_.back().step))
      return Error{"there is no such launch", {}};
    taken_.push_back({step, {}, {}});
    taken_.back().said.step = step;
  }
  if (taken_.empty()) return Error{"there is no launch to take", {}};
  TRY(survey(request.memory));
  auto writer = TRY(bundle::FolderWriter::create(request.output));
  TRY(write(writer));
  TRY(finish(writer));
  Extracted done;
  done.blocks = blocks_.size();
  for (const auto& [address, block] : blocks_) done.block_bytes += block.size;
  for (Taken& taken : taken_) done.launches.push_back(std::move(taken.said));
  return done;
}

}  // namespace cudabpf::replay
