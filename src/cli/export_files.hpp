// The files that an export goes to: where they are, and that they are written whole.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/export/byte_stream.hpp"
#include "sink/trace_file.hpp"
#include "util/result.hpp"

namespace cudabpf::cli {

class ExportFiles {
 public:
  struct File {
    std::string path;
    analyze::ByteStream* stream;
  };

  // `output` is what the user asked for; empty: files go into the current folder. They get the
  // trace's name.
  ExportFiles(std::string output, std::vector<std::string> trace);

  bool to_stdout() const { return output_ == "-"; }

  // What the user named, or TRACE.ENDING, in the folder that the user named. As with traces, a file
  // that is there is replaced.
  Result<analyze::ByteStream*> add(const std::string& ending);
  // Both in a folder TRACE.ENDING, or in the one that the user named.
  Result<std::vector<analyze::ByteStream*>> add_folder(const std::string& ending,
                                                       const std::vector<std::string>& names);
  // The user named a folder for all of them.
  Result<> make_folder();

  // Takes away what is not whole.
  void discard();
  // Why something could not be written.
  std::optional<Error> failure() const;
  Result<> finish();
  std::vector<File> files() const;

 private:
  struct Open {
    std::string path;
    TraceFile file;
    int error = 0;  // errno, of the first write that failed
    std::unique_ptr<analyze::ByteStream> stream;
  };

  Result<analyze::ByteStream*> open(const std::string& path);
  std::string chosen(const std::string& ending) const;
  bool is_folder() const;

  std::string output_;
  std::vector<std::string> trace_;  // its files
  std::string name_;                // of the trace, without what its kind adds
  std::string new_folder_;          // that was made for some of them
  std::vector<std::unique_ptr<Open>> files_;
};

}  // namespace cudabpf::cli
