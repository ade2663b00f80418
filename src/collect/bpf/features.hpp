// What this kernel lets cudabpf do: found out by trying, never from the kernel's version.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cudabpf/sink.hpp"
#include "util/result.hpp"

namespace cudabpf {

// Names that --no-feature takes.
namespace feature {
inline constexpr const char* UPROBE_MULTI = "uprobe_multi";
inline constexpr const char* UPROBE_SESSION = "uprobe_session";
inline constexpr const char* UPROBE_PROCESS = "uprobe_process";
inline constexpr const char* SLEEPABLE = "sleepable";
inline constexpr const char* WATCH_MAPPINGS = "watch_mappings";
inline constexpr const char* PROCESS_EVENTS = "process_events";
inline constexpr const char* DRIVER_FENTRY = "driver_fentry";
inline constexpr const char* DRIVER_KPROBES = "driver_kprobes";
inline constexpr const char* SYSCALL_TRACEPOINTS = "syscall_tracepoints";
inline constexpr const char* XID_TRACEPOINT = "xid_tracepoint";
// The ways of tracing the driver, best first.
inline constexpr const char* DRIVER_WAYS[] = {DRIVER_FENTRY, DRIVER_KPROBES, SYSCALL_TRACEPOINTS};
// Only --kernel needs these.
inline bool is_of_driver(std::string_view name) {
  return name == DRIVER_FENTRY || name == DRIVER_KPROBES || name == SYSCALL_TRACEPOINTS ||
         name == XID_TRACEPOINT;
}
}  // namespace feature

// All of them, in the order in which they are tried.
std::vector<std::string> feature_names();

class Features {
 public:
  // Features that are wanted besides those that every trace uses.
  struct Wanted {
    bool driver = false;       // --kernel
    bool one_process = false;  // probes only in some processes
  };
  // Tries each feature that is wanted and not disabled. An unknown name is an error.
  static Result<Features> detect(const std::vector<std::string>& disabled, const Wanted& wanted);

  const std::vector<Feature>& list() const { return features_; }
  bool has(std::string_view name) const;
  bool is_disabled(std::string_view name) const;  // by the user
  // The first feature that can trace the driver; null if there is none.
  const char* driver_way() const;

 private:
  std::vector<Feature> features_;
};

// Can cudabpf trace here at all? The error says which capability or kernel option is missing.
Result<> check_permissions();
Result<> check_kernel();

// The capabilities that tracing needs and this process lacks, by name.
std::vector<std::string> missing_capabilities();

// A capability that is kept during the trace.
struct KeptCapability {
  int number;
  const char* name;
  const char* why;
};
std::vector<KeptCapability> kept_capabilities(const Features& features, bool driver);

}  // namespace cudabpf
