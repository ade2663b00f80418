#include "replay/export/exporter.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "replay/export/choice.hpp"
#include "replay/export/exported_folder.hpp"
#include "replay/export/launch_program.hpp"
#include "replay/export/readme.hpp"
#include "replay/ready.hpp"

namespace cudabpf::replay {

namespace {

namespace fs = std::filesystem;

// What is in the way of a new folder is not touched.
Result<> is_free(const std::string& path) {
  std::error_code failed;
  if (!fs::exists(fs::symlink_status(path, failed)) || fs::is_empty(path, failed)) return ok();
  return Error{path + " is there already, and is not an empty folder", "name another one",
               exit_code::OUTPUT_FAILED};
}

// Only what a writer of folders has made.
void empty_folder(const std::string& path) {
  std::error_code failed;
  for (const char* name :
       {"manifest.json", "manifest.json.part", "tape.jsonl", "data", "memory", "images"})
    fs::remove_all(fs::path(path) / name, failed);
}

class Exporter {
 public:
  Exporter(const bundle::Folder& folder, const Tape& tape, const ExportOptions& options)
      : folder_(&folder), tape_(&tape), options_(&options) {}

  Result<ExportedKernel> run() {
    TRY(is_free(options_->output));
    auto candidates = TRY(candidates_for(options_->kernel, *folder_, *tape_));
    if (candidates.empty())
      return Error{"no launch of it can be run again", "see --list", exit_code::NO_TARGET};
    if (!folder_->manifest().contents)
      return Error{"the capture has no contents of memory, which the kernel needs", {}};
    made_.kernel = options_->kernel;
    made_.live_launches = candidates.size();
    auto steps = chosen_steps(candidates, options_->occurrences);
    request_.task = Task::extract;
    request_.folder = options_->folder;
    request_.output = options_->output;
    request_.launches.assign(steps.begin(), steps.end());
    for (MemoryTaken memory : {MemoryTaken::pointers, MemoryTaken::touching, MemoryTaken::all}) {
      made_.memory = request_.memory = memory;
      TRY(extract());
      auto why = TRY(what_is_wrong());
      if (why.empty()) break;
      if (made_.why_more_memory.empty()) made_.why_more_memory = why;
      if (memory != MemoryTaken::all) empty_folder(options_->output);
    }
    return finished();
  }

 private:
  Result<> extract() {
    if (!worker_) {
      Answer ready = TRY(start_ready(worker_, {.task = Task::prepare, .folder = options_->folder},
                                     options_->patience));
      made_.gpu = ready.gpu.value_or(Gpu{});
      made_.notes = ready.notes;
    }
    Answer answer = worker_->ask(request_);
    if (answer.error || !answer.extracted) {
      empty_folder(options_->output);
      Error error = answer.error ? error_of(answer) : Error{"the process gave no answer", {}};
      if (answer.step && *answer.step < tape_->steps().size())
        error.message = description_of(tape_->steps()[*answer.step], folder_->manifest()) + ": " +
                        error.message;
      return error;
    }
    made_.extracted = std::move(*answer.extracted);
    return ok();
  }

  // Runs what was made in new processes, which have nothing but the folder's memory.
  Result<std::string> what_is_wrong() {
    worker_.reset();
    auto folder = TRY(bundle::Folder::open(options_->output));
    auto tape = TRY(Tape::read(folder));
    if (!occurrences_in(tape, folder.manifest())) {
      empty_folder(options_->output);
      return Error{"it changes no memory when it runs here, so nothing could be compared",
                   "if its results are the same each time, they were there before it ran"};
    }
    Options options;
    options.folder = options_->output;
    options.patience = options_->patience;
    options.runs = 0;
    auto check = Replayer(folder.manifest(), tape, options).full();
    if (!check) return check.error().message;
    made_.check = std::move(*check);
    if (!made_.check.failures.empty()) return made_.check.failures.front().text();
    return std::string(made_.check.is_different() ? "what it left was not what is expected" : "");
  }

  Result<ExportedKernel> finished() {
    auto folder = TRY(bundle::Folder::open(options_->output));
    auto tape = TRY(Tape::read(folder));
    auto occurrences = occurrences_in(tape, folder.manifest());
    if (!occurrences) return Error{"the new folder is not what was written", {}};
    ExportedFolder exported{&folder.manifest(), &tape, *occurrences};
    TRY(write_text(options_->output, "launch.cpp", launch_program(exported)));
    TRY(write_text(options_->output, "README.md", readme_text(made_, exported)));
    return std::move(made_);
  }

  const bundle::Folder* folder_;
  const Tape* tape_;
  const ExportOptions* options_;
  Request request_;
  ExportedKernel made_;
  std::optional<WorkerProcess> worker_;
};

}  // namespace

Result<ExportedKernel> export_kernel(const bundle::Folder& folder, const Tape& tape,
                                     const ExportOptions& options) {
  return Exporter(folder, tape, options).run();
}

}  // namespace cudabpf::replay
