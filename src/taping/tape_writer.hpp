// Calls to operations: what the manifest has for each stream, event, kernel and image that they
// name, and the operations themselves.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bundle/folder.hpp"
#include "cudabpf/taped_process.hpp"
#include "taping/handles.hpp"
#include "taping/kept_call.hpp"
#include "taping/kept_nodes.hpp"
#include "taping/snapshot.hpp"

namespace cudabpf::taping {

// A module of the manifest, and its handle.
struct PlacedModule {
  std::uint32_t module = 0;
  std::uint64_t owner = 0;
};

class TapeWriter {
 public:
  // `thread` stands: it is asked what kernels are. `contents`: bytes of copies are kept.
  TapeWriter(bundle::FolderWriter& folder, bundle::Manifest& manifest, const TapedProcess& process,
             const Handles& handles, StoppedThread& thread, bool contents);

  // Writes them in the order in which they took effect.
  Result<> write(std::vector<KeptCall> calls);
  const std::vector<PlacedModule>& modules() const { return placed_; }

 private:
  // An executable graph, as its last launch had it.
  struct GraphOnTape {
    std::uint32_t number = 0;  // of the manifest's
    bool has_nodes = false;    // on the tape
    std::shared_ptr<const ExecutableGraph> written;
    std::vector<std::uint64_t> waits, records;  // events that nodes wait for, and record
    std::optional<std::string> refused;
  };

  Result<> add(const KeptCall& call);
  Result<> add_launch(const KeptCall& call);
  Result<> add_graph(const KeptCall& call);
  Result<> add_copy(const KeptCall& call);
  Result<> add_copy_of_rows(const KeptCall& call, const Payload& payload);
  Result<> write_copy(const KeptCall& call, bundle::Copy copy,
                      const std::optional<Payload>& payload);
  Result<> add_set(const KeptCall& call);
  Result<> add_memory(const KeptCall& call);
  bool add_event(const KeptCall& call, bundle::Operation& operation);
  bool add_wait(const KeptCall& call, bundle::Operation& operation);
  Result<> describe_graph(const KeptCall& call, GraphOnTape& graph, bundle::Operation& operation);
  // What keeps the node's graph from being run again; empty: nothing does.
  Result<std::string> add_node(const KeptNode& node, bundle::Operation& operation);
  std::string add_copy_node(const KeptNode& node, bundle::Operation& operation) const;
  bool is_pinned(const bundle::Rows& rows, const bundle::Place& place) const;
  void refuse(const std::string& what, const std::string& why);

  bundle::Operation operation_of(const KeptCall& call, bundle::Action action);
  std::uint32_t stream(const KeptCall& call, std::uint64_t handle);
  std::uint32_t event(std::uint64_t handle);
  // `name`: mangled, if it is known. `shared`: that a launch of it has.
  Result<std::uint32_t> kernel(std::uint64_t handle, const std::string& name, std::uint32_t shared);
  Result<std::uint32_t> known_kernel(std::uint64_t handle, const std::string& name);
  Result<std::optional<abi::ci_kernel>> about(std::uint64_t handle);
  Result<std::vector<abi::ci_kernel>> same_kernels(std::uint64_t handle,
                                                   const abi::ci_kernel& launched);
  Result<std::optional<std::uint32_t>> module_of(std::uint64_t handle,
                                                 const abi::ci_kernel& launched);
  Result<std::optional<std::uint32_t>> module(std::uint64_t owner);
  Result<std::optional<std::string>> code_in(const Payload& payload);

  bundle::FolderWriter& folder_;
  bundle::Manifest& manifest_;
  const TapedProcess& process_;
  const Handles& handles_;
  StoppedThread& thread_;
  const bool contents_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> streams_;  // 2nd: see stream()
  std::map<std::uint64_t, std::uint32_t> events_, kernels_;
  std::map<std::uint64_t, std::optional<std::uint32_t>> modules_;
  std::vector<PlacedModule> placed_;
  std::map<std::uint64_t, GraphOnTape> graphs_;  // by executable graph
  std::map<std::pair<std::string, std::string>, std::uint64_t> refused_;
};

}  // namespace cudabpf::taping
