// What an extraction keeps: its folder's memory, code and tape.
#include <algorithm>
#include <chrono>
#include <thread>

#include "replay/export/granules.hpp"
#include "replay/worker/extraction.hpp"

namespace cudabpf::replay {

namespace {

bundle::Operation operation_for(Action action, const bundle::Operation& of) {
  bundle::Operation operation;
  operation.action = action;
  operation.call = of.call;
  operation.device = of.device;
  return operation;
}

}  // namespace

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

// Memory has what these leave already, but where the launch is timed, it is run again after each.
Result<> Extraction::write_fills(bundle::FolderWriter& writer, const Taken& taken) const {
  for (std::size_t fill : bench_->player().fills_before(taken.step)) {
    const Step& step = bench_->tape().steps()[fill];
    bool is_row = step.set->rows.height == 1 && step.set->rows.depth == 1;
    std::uint64_t at = step.set->to.address->value;
    if (!is_row || !have(given_, {at, at + step.set->rows.bytes()})) continue;
    bundle::Operation operation = operation_for(Action::set, *step.operation);
    operation.set = *step.set;
    TRY(writer.add(operation));
  }
  return ok();
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
    TRY(bench_->player().work_on(taken.step, nullptr).result());
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
  TRY(write_fills(writer, taken));
  TRY(writer.add(operation));
  auto varying = TRY(run_again(taken, before, after));
  for (std::size_t k = 0; k < taken.written.size(); k++) {
    const Range& written = taken.written[k];
    for (const Range& part : without_all({written}, parts_in(varying, written)))
      TRY(write_copy(writer, taken, part,
                     std::string_view(after[k]).substr(part.begin - written.begin, part.size()),
                     true));
  }
  taken.said.in = size_of(given_);
  taken.said.not_deterministic = addresses_of(varying);
  return ok();
}

// What the blocks have in each page that one of the ranges touches.
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

}  // namespace cudabpf::replay
