#include "cli/export_files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/request/trace_paths.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

ExportFiles::ExportFiles(std::string output, std::vector<std::string> trace)
    : output_(std::move(output)), trace_(std::move(trace)), name_(name_of_trace(trace_.front())) {}

bool ExportFiles::is_folder() const {
  std::error_code ignored;
  return std::filesystem::is_directory(output_, ignored);
}

std::string ExportFiles::chosen(const std::string& ending) const {
  std::string name = fmt::format("{}.{}", name_, ending);
  return output_.empty() ? name : (std::filesystem::path(output_) / name).string();
}

Result<> ExportFiles::make_folder() {
  if (output_.empty()) return ok();
  return make_parent_folder(std::filesystem::path(output_) / name_);
}

Result<analyze::ByteStream*> ExportFiles::add(const std::string& ending) {
  return open(output_.empty() || is_folder() ? chosen(ending) : output_, ending);
}

Result<std::vector<analyze::ByteStream*>> ExportFiles::add_folder(
    const std::string& ending, const std::vector<std::string>& names) {
  std::string folder = output_.empty() || !files_.empty() ? chosen(ending) : output_;
  if (!exists(folder)) new_folder_ = folder;
  std::vector<analyze::ByteStream*> streams;
  for (const std::string& name : names) {
    std::string path = std::filesystem::path(folder) / name;
    TRY(make_parent_folder(path));
    streams.push_back(TRY(open(path, name)));
  }
  return streams;
}

Result<analyze::ByteStream*> ExportFiles::open(const std::string& path, const std::string& ending) {
  TRY(is_no_trace(path, trace_));
  auto file = to_stdout() ? TraceFile::stream(Fd(::dup(STDOUT_FILENO)))
                          : TRY(TraceFile::create(path, true));
  auto& added =
      files_.emplace_back(std::make_unique<Open>(Open{path, ending, std::move(file), 0, nullptr}));
  added->stream =
      std::make_unique<analyze::ByteStream>([open = added.get()](std::string_view bytes) {
        if (open->file.append_whole(bytes)) return true;
        open->error = errno;
        return false;
      });
  return added->stream.get();
}

std::optional<Error> ExportFiles::failure() const {
  auto failed = std::find_if(files_.begin(), files_.end(),
                             [](const auto& file) { return file->stream->failed(); });
  if (failed == files_.end()) return std::nullopt;
  return Error{
      fmt::format("cannot write {}: {}", to_stdout() ? "to standard output" : (*failed)->path,
                  std::strerror((*failed)->error)),
      (*failed)->file.is_stream() ? "what was written is incomplete"
                                  : "the incomplete file was deleted",
      exit_code::OUTPUT_FAILED};
}

void ExportFiles::discard() {
  for (auto& file : files_)
    if (!file->file.is_stream()) ::unlink(file->path.c_str());
  if (!new_folder_.empty()) ::rmdir(new_folder_.c_str());
}

Result<> ExportFiles::finish() {
  for (auto& file : files_) file->stream->flush();
  if (auto why = failure()) return *why;
  return ok();
}

std::vector<ExportFiles::File> ExportFiles::files() const {
  std::vector<File> files;
  for (const auto& file : files_) files.push_back({file->path, file->stream.get(), file->ending});
  return files;
}

}  // namespace cudabpf::cli
