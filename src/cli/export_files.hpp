// The files that an export goes to: decides where they are, and sees that they are written in full.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/export/byte_stream.hpp"
#include "trace/files/trace_file.hpp"
#include "util/result.hpp"

namespace cudabpf::cli {

class ExportFiles {
 public:
  struct File {
    std::string path;
    analyze::ByteStream* stream;
    std::string ending;  // its usual extension: what kind of file it is
  };

  // `output` is what the user gave; empty: files go into the current folder, named after the
  // trace.
  ExportFiles(std::string output, std::vector<std::string> trace);

  bool to_stdout() const { return output_ == "-"; }

  // The file that the user named, or TRACE.ENDING in the folder that the user named. As with
  // traces, an existing file is replaced.
  Result<analyze::ByteStream*> add(const std::string& ending);
  // The files go into a folder TRACE.ENDING, or into the one that the user named.
  Result<std::vector<analyze::ByteStream*>> add_folder(const std::string& ending,
                                                       const std::vector<std::string>& names);
  // Creates the folder that the user named for all files.
  Result<> make_folder();

  // Removes the files, which are incomplete.
  void discard();
  // Why something could not be written.
  std::optional<Error> failure() const;
  Result<> finish();
  std::vector<File> files() const;

 private:
  struct Open {
    std::string path, ending;
    TraceFile file;
    int error = 0;  // errno of the first write that failed
    std::unique_ptr<analyze::ByteStream> stream;
  };

  Result<analyze::ByteStream*> open(const std::string& path, const std::string& ending);
  std::string chosen(const std::string& ending) const;
  bool is_folder() const;

  std::string output_;
  std::vector<std::string> trace_;  // its files
  std::string name_;                // of the trace, without its extensions
  std::string new_folder_;          // a folder that was made for some of them
  std::vector<std::unique_ptr<Open>> files_;
};

}  // namespace cudabpf::cli
