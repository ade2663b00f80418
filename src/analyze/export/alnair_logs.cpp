#include "analyze/export/alnair_logs.hpp"

#include <algorithm>

#include "trace/header.hpp"

namespace cudabpf::analyze {

namespace {

// Alnair's `kind` is that of a cudaMemcpy, and -1 for calls that are not copies.
enum CopyKind : int {
  NO_COPY = -1,
  HOST_TO_HOST = 0,
  HOST_TO_DEVICE = 1,
  DEVICE_TO_HOST = 2,
  DEVICE_TO_DEVICE = 3,
  INFERRED = 4,  // by the driver, from the addresses
};

bool on_device(MemoryKind kind) { return kind != MemoryKind::host; }

}  // namespace

AlnairLogs::AlnairLogs(Names& names, ByteStream& metrics, ByteStream& timeline, Part part)
    : names_(names), part_(part), metrics_(metrics), timeline_(timeline), memory_(names, *this) {}

void AlnairLogs::line(const Line& line) {
  memory_.line(line);
  if (line.kind == LineKind::header && !realtime_) realtime_ = line.header->began();
  if (line.kind != LineKind::call) return;
  if (line.name.id >= functions_.size()) functions_.resize(names_.size());
  Function& function = functions_[line.name.id];
  function.count++;
  if (!line.has(Field::duration)) return;
  function.ns += line.duration;
  timeline_.text("name:");
  timeline_.text(printable(std::string(names_.text(line.name))));
  timeline_.text(", start:");
  timeline_.number(realtime_ + line.ts);
  timeline_.text(", burst:");
  timeline_.number(line.duration / 1000);
  timeline_.text(", bytes:");
  timeline_.number(line.size);
  timeline_.text(", kind:");
  timeline_.number(kind_of_copy(line));
  timeline_.text("\n");
}

int AlnairLogs::kind_of_copy(const Line& call) const {
  if (call.type != Type::transfer || call.op == Op::decompress) return NO_COPY;
  if (call.inferred) return INFERRED;
  if (call.op == Op::HtoH) return HOST_TO_HOST;
  if (call.op == Op::HtoD || call.op == Op::HtoA) return HOST_TO_DEVICE;
  if (call.op == Op::DtoH || call.op == Op::AtoH) return DEVICE_TO_HOST;
  for (Op op : {Op::DtoD, Op::peer, Op::AtoD, Op::DtoA, Op::AtoA})
    if (call.op == op) return DEVICE_TO_DEVICE;
  return INFERRED;
}

void AlnairLogs::finish(const TraceFacts&) {
  metrics_.text("name:mem_used,count:");
  metrics_.number(used_);
  metrics_.text("\n");
  for (std::uint32_t id = 0; id < functions_.size(); id++) {
    if (!functions_[id].count) continue;
    metrics_.text("name:");
    metrics_.text(printable(std::string(names_.text({id}))));
    metrics_.text(",count:");
    metrics_.number(functions_[id].count);
    metrics_.text(",burst:");
    metrics_.number(functions_[id].ns / 1000);
    metrics_.text("\n");
  }
}

void AlnairLogs::allocated(const LiveMemory::Block& block) {
  if (on_device(block.kind) && block.since < part_.to) used_ += block.size;
}

// Memory that ended with its process was in use to the end.
void AlnairLogs::ended(const LiveMemory::Block& block, std::uint64_t ts, LiveMemory::Ended how) {
  if (block.since >= part_.to || ts >= part_.to) return;
  if (on_device(block.kind) && how != LiveMemory::Ended::with_process)
    used_ -= std::min(used_, block.size);
}

}  // namespace cudabpf::analyze
