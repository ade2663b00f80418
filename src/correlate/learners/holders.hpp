// Whose code asked the driver for memory: a record that follows that of the call names its file.
#pragma once

#include <string_view>

#include "correlate/calls/learner.hpp"
#include "correlate/calls/open_calls.hpp"
#include "cudabpf/record.hpp"

namespace cudabpf {

// A file's name as a program asks for it: "libnccl.so.2" of "libnccl.so.2.19.3", whose numbers
// differ only in what they mend.
std::string_view holder_name(std::string_view file);

class Holders : public Learner {
 public:
  explicit Holders(OpenCalls& open) : open_(open) {}

  void on_record(const Record& record);

 private:
  OpenCalls& open_;
};

}  // namespace cudabpf
