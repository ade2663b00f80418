// The kernel driver's device nodes, and the true record of what was done to them: one line per
// operation in DIR/ioctls.PID.jsonl (FAKE_CUDA_COUNTS=DIR). README.md describes the fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fake {

struct Node {
  std::string name;  // "nvidiactl", whatever path it has
  int fd = -1;
  bool is_open() const { return fd >= 0; }
};

Node open_node(const std::string& name);  // not open: there is none
void close_node(Node& node);
// Maps some of its memory; null if it gives none.
void* map_node(const Node& node, uint64_t size);
void poll_node(const Node& node, int timeout_ms);

// What an ioctl is about, for the record.
struct Subject {
  uint32_t number = 0;  // an escape's, or UVM's command
  bool uvm = false;
  bool indirect = false;  // through NV_ESC_IOCTL_XFER_CMD
  std::optional<uint32_t> control, klass, client, parent, object;
  std::optional<uint64_t> size, base, timeslice_us;
};

// One ioctl with a struct that contains `status` (if any): made on construction, and recorded on
// destruction, so that what the driver wrote can be added to the subject in between.
class Ioctl {
 public:
  Ioctl(const Node& node, const Subject& about, void* structure, uint32_t size, uint32_t* status);
  Ioctl(const Ioctl&) = delete;
  Ioctl& operator=(const Ioctl&) = delete;
  ~Ioctl();

  uint32_t status() const { return status_.value_or(0); }

  Subject subject;

 private:
  const Node& node_;
  uint32_t command_ = 0;
  int64_t result_ = 0;
  std::optional<uint32_t> status_;
  uint64_t begin_ns_, end_ns_;
};

// If other files take the place of the devices, nothing answers: then what the ioctl would return
// is put into its struct beforehand.
bool nodes_pretend();

void restart_node_record();  // after fork: the child's operations go to its own file

}  // namespace fake
