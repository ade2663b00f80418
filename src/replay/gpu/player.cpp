#include "replay/gpu/player.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "replay/gpu/copies.hpp"
#include "replay/gpu/events.hpp"
#include "replay/gpu/memory.hpp"
#include "util/console/terminal.hpp"
#include "util/demangle/demangle.hpp"

namespace cudabpf::replay {

namespace {

constexpr unsigned NON_BLOCKING = 1;  // a stream
constexpr std::size_t NOWHERE = ~std::size_t{0};
constexpr std::uint32_t COOPERATIVE = 2, PROGRAMMATIC_EVENT = 7, COMPLETION_EVENT = 12,
                        UPDATABLE_NODE = 13;  // CUlaunchAttributeIDs

// The program's events and graph nodes mean nothing here.
bool has_handle(std::uint32_t attribute) {
  return attribute == PROGRAMMATIC_EVENT || attribute == COMPLETION_EVENT ||
         attribute == UPDATABLE_NODE;
}

std::uint64_t place_of(const char* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

bool is_work(const Step& step) { return step.launch || step.copy || step.set; }

}  // namespace

Result<> Player::read_data() {
  constexpr std::uint64_t PIECE = 64 << 20;
  std::uint64_t size = folder_->manifest().data_size;
  if (size > host_memory())
    return Error{fmt::format("the capture's data is {}, more than this machine has memory",
                             human_bytes(size)),
                 {}};
  data_ = TRY(HostBuffer::make(size));
  for (std::uint64_t at = 0; at < size; at += PIECE) {
    std::string piece = TRY(folder_->data({at, std::min(PIECE, size - at)}));
    std::memcpy(data_.data() + at, piece.data(), piece.size());
    progress_->beat();
  }
  return ok();
}

Result<> Player::prepare_copies() {
  std::uint64_t to_host = 0, largest = 0;
  for (std::size_t i = 0; i < tape_->steps().size(); i++) {
    const bundle::Copy* copy = tape_->steps()[i].copy;
    if (!copy) continue;
    bool is_to_host = !copy->to.address, has_data = copy->data.has_value();
    if (is_to_host && has_data) {
      received_at_[i] = to_host;
      copies_to_host_.push_back({i, *copy->data, to_host});
      to_host += copy->data->size;
    } else if (is_to_host || (!copy->from.address && !has_data)) {
      largest = std::max(largest, copy->rows.bytes());
    }
    if (std::max(to_host, largest) > host_memory())
      return Error{"the tape copies more to the host than this machine has memory", {}};
  }
  received_ = TRY(HostBuffer::make(to_host));
  scratch_ = TRY(HostBuffer::make(largest));
  return ok();
}

Result<> Player::make_stream(std::uint32_t number) {
  if (!number || streams_.contains(number)) return ok();
  const bundle::Stream& captured = folder_->manifest().streams[number];
  return driver_->create_stream(&streams_[number], captured.non_blocking ? NON_BLOCKING : 0,
                                captured.priority);
}

Result<> Player::prepare() {
  std::size_t kernels = folder_->manifest().kernels.size(), steps = tape_->steps().size();
  left_kernels_.resize(kernels);
  by_pointers_.resize(kernels);
  left_steps_.resize(steps);
  received_at_.resize(steps, NOWHERE);
  streams_[0] = nullptr;  // the legacy default stream
  TRY(read_data());
  TRY(prepare_copies());
  // Copies from and to pinned memory need not wait for the host. What cannot be pinned works, too.
  for (const HostBuffer* buffer : {&data_, &received_, &scratch_})
    if (buffer->size())
      static_cast<void>(driver_->register_host.status_of(buffer->data(), buffer->size(), 0));
  for (const Step& step : tape_->steps()) {
    TRY(make_stream(step.stream()));
    if (!step.launch) continue;
    for (const LaunchAttribute& one : captured_attributes(*step.launch))
      attributes_dropped_ += has_handle(one.id);
  }
  return ok();
}

void Player::leave_out(const std::vector<std::uint32_t>& kernels,
                       const std::vector<std::uint64_t>& steps) {
  for (std::uint32_t kernel : kernels)
    if (kernel < left_kernels_.size()) left_kernels_[kernel] = true;
  for (std::uint64_t step : steps)
    if (step < left_steps_.size()) left_steps_[step] = true;
}

Result<> Player::give(const Way& way) {
  if (!way.begin) {
    skipped_.clear();
    skipped_steps_.clear();
  }
  for (std::size_t i = way.begin; i < std::min(way.end, tape_->steps().size()); i++) {
    progress_->at(i);
    TRY(run(i, way));
  }
  return ok();
}

Result<> Player::finish() {
  TRY(driver_->synchronize());
  progress_->at_no_step();
  return ok();
}

Result<> Player::play(const Way& way) {
  TRY(give(way));
  return finish();
}

Result<> Player::run(std::size_t number, const Way& way) {
  const Step& step = tape_->steps()[number];
  Handle stream = streams_[step.stream()];
  if (std::string why = reason_against(number, step); !why.empty()) {
    skip(number, why);
    return ok();
  }
  if (!is_work(step)) return wait(step, stream);
  if (way.watch) TRY(way.watch->before(number, stream));
  TRY(judge(number, work_on(number, stream)));
  if (way.watch) TRY(way.watch->after(number, stream));
  // The program may have gone on only when it had the copy's bytes.
  bool is_with_host =
      step.copy && (!step.copy->to.address || (!step.copy->from.address && !step.stream()));
  if (way.waits_for_each || is_with_host) return driver_->synchronize_stream(stream);
  return ok();
}

Result<> Player::wait(const Step& step, Handle stream) {
  switch (step.action) {
    case Action::record:
      return driver_->record_event(TRY(event(*step.operation->event)), stream);
    case Action::wait:
      return driver_->wait_event(stream, TRY(event(*step.operation->event)), 0);
    case Action::await:
      return driver_->synchronize_event(TRY(event(*step.operation->event)));
    case Action::sync:
      return driver_->synchronize_stream(stream);
    case Action::drain:
      return driver_->synchronize();
    default:  // memory is there all the time
      return ok();
  }
}

Result<Handle> Player::event(std::uint32_t number) {
  Handle& known = events_[number];
  if (!known) TRY(driver_->create_event(&known, WITHOUT_TIME));
  return known;
}

std::string Player::reason_against(std::size_t number, const Step& step) const {
  std::string why = refusal_of(step, folder_->manifest());
  if (!why.empty() || !is_work(step)) return why;
  if (step.launch && !code_->kernel(step.launch->kernel).unusable.empty())
    return code_->kernel(step.launch->kernel).unusable;
  bool is_left_out = left_steps_[number] || (step.launch && left_kernels_[step.launch->kernel]);
  return is_left_out ? "it ended the process that ran it" : "";
}

void Player::skip(std::size_t number, const std::string& why) {
  const Step& step = tape_->steps()[number];
  const Manifest& manifest = folder_->manifest();
  std::string what = step.launch
                         ? short_name(demangle(manifest.kernels[step.launch->kernel].name))
                         : std::string(bundle::ACTIONS[static_cast<std::size_t>(step.action)]);
  Skip& known = skipped_[{what, why}];
  if (!known.count++) known.call = step.operation->call;
  skipped_steps_.insert(number);
}

Result<> Player::judge(std::size_t number, const Status& status) {
  if (status.is_refusal()) {
    skip(number, status.text());
    return ok();
  }
  return status.result();
}

std::vector<std::size_t> Player::fills_before(std::size_t launch) const {
  auto fills = replay::fills_before(*tape_, launch, folder_->manifest());
  std::erase_if(fills, [&](std::size_t fill) { return skipped_steps_.contains(fill); });
  return fills;
}

std::vector<Skipped> Player::skipped() const {
  std::vector<Skipped> all;
  for (const auto& [what, skip] : skipped_)
    all.push_back({what.first, what.second, skip.count, skip.call});
  return all;
}

std::vector<std::string> Player::notes() const {
  std::vector<std::string> all = code_->notes();
  if (attributes_dropped_)
    all.push_back(fmt::format(
        "{} attributes of launches that name events or graph nodes of the program were left out",
        attributes_dropped_));
  return all;
}

std::vector<Handle> Player::streams() const {
  std::vector<Handle> all;
  for (const auto& [number, stream] : streams_) all.push_back(stream);
  return all;
}

// ----- what the steps do

std::vector<LaunchAttribute> Player::captured_attributes(const bundle::Launch& launch) const {
  std::vector<LaunchAttribute> all;
  if (!launch.attributes) return all;
  all.resize(launch.attributes->size / sizeof(LaunchAttribute));
  if (!all.empty())
    std::memcpy(all.data(), data_.data() + launch.attributes->offset,
                all.size() * sizeof(LaunchAttribute));
  return all;
}

std::vector<LaunchAttribute> Player::attributes_of(const bundle::Launch& launch) const {
  std::vector<LaunchAttribute> all = captured_attributes(launch);
  std::erase_if(all, [](const LaunchAttribute& one) { return has_handle(one.id); });
  bool is_there = std::any_of(all.begin(), all.end(),
                              [](const LaunchAttribute& one) { return one.id == COOPERATIVE; });
  if (launch.cooperative && !is_there) {
    LaunchAttribute cooperative{COOPERATIVE};
    cooperative.value[0] = 1;
    all.push_back(cooperative);
  }
  return all;
}

Status Player::work_on(std::size_t number, Handle stream) {
  progress_->at(number);
  const Step& step = tape_->steps()[number];
  if (step.launch) return launch(*step.launch, stream);
  return step.copy ? copy(number, *step.copy, stream) : fill(*step.set, stream);
}

Status Player::work_on(const std::vector<std::size_t>& steps, Handle stream) {
  Status status;
  for (std::size_t i = 0; i < steps.size() && status.succeeded(); i++)
    status = work_on(steps[i], stream);
  return status;
}

Status Player::launch(const bundle::Launch& launch, Handle stream) {
  auto attributes = attributes_of(launch);
  LaunchConfig config{{launch.grid[0], launch.grid[1], launch.grid[2]},
                      {launch.block[0], launch.block[1], launch.block[2]},
                      launch.shared,
                      stream,
                      attributes.data(),
                      static_cast<std::uint32_t>(attributes.size())};
  Handle kernel = code_->kernel(launch.kernel).handle;
  std::size_t size = launch.parameters.size;
  char* buffer = data_.data() + launch.parameters.offset;
  if (!size) return driver_->launch.status_of(&config, kernel, nullptr, nullptr);
  Status status;
  if (!by_pointers_[launch.kernel]) {
    // A pointer and a size, each after a number that says so; then the end.
    void* extra[] = {reinterpret_cast<void*>(1), buffer,  // NOLINT(performance-no-int-to-ptr)
                     reinterpret_cast<void*>(2), &size,   // NOLINT(performance-no-int-to-ptr)
                     nullptr};
    status = driver_->launch.status_of(&config, kernel, nullptr, extra);
  }
  const auto& parameters = folder_->manifest().kernels[launch.kernel].parameters;
  bool fit = std::all_of(parameters.begin(), parameters.end(), [&](const auto& parameter) {
    return parameter.offset <= size && parameter.size <= size - parameter.offset;
  });
  bool is_tried = by_pointers_[launch.kernel] || status.code == Status::INVALID_VALUE;
  if (!is_tried || !fit || parameters.empty()) return status;
  std::vector<void*> pointers;
  pointers.reserve(parameters.size());
  for (const auto& parameter : parameters) pointers.push_back(buffer + parameter.offset);
  Status second = driver_->launch.status_of(&config, kernel, pointers.data(), nullptr);
  if (second.succeeded()) by_pointers_[launch.kernel] = true;
  return second.succeeded() || by_pointers_[launch.kernel] ? second : status;
}

Status Player::fill(const bundle::Set& set, Handle stream) {
  return fill_rows(*driver_, set, code_->here(set.to.address->value, set.rows.bytes()), stream);
}

Status Player::copy(std::size_t number, const bundle::Copy& copy, Handle stream) {
  auto side = [&](const bundle::Place& place, bool is_target) {
    if (place.address)
      return CopySide{code_->here(place.address->value, copy.rows.bytes()), false, place.pitch,
                      place.slice};
    const char* at = scratch_.data();
    if (is_target && received_at_[number] != NOWHERE) at = received_.data() + received_at_[number];
    if (!is_target && copy.data) at = data_.data() + copy.data->offset;
    // What the folder has lies row by row, whatever lay between the rows in the program.
    return CopySide{place_of(at), true, copy.rows.width, copy.rows.width * copy.rows.height};
  };
  return copy_rows(*driver_, copy.rows, side(copy.to, true), side(copy.from, false), stream);
}

}  // namespace cudabpf::replay
