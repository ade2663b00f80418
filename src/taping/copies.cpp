// Copies, on the tape: those of calls, and those of graphs' nodes.
#include "taping/copied_rows.hpp"
#include "taping/tape_writer.hpp"

namespace cudabpf::taping {

using bundle::Action;
using bundle::Address;

Result<> TapeWriter::add_copy(const KeptCall& call) {
  const Details& details = call.details;
  auto payload = call.payload ? process_.payload(call.payload) : std::nullopt;
  if (payload && payload->more.size() == sizeof(abi::ci_rows))
    return add_copy_of_rows(call, *payload);
  bool is_row = details.size && details.dst && details.src &&
                call.function->size.kind == SizeRule::Kind::product;
  if (!is_row) {
    refuse(std::string(call.function->name),
           payload && payload->state == abi::CI_UNREADABLE
               ? "what it was given could not be read"
               : "copies of arrays and in batches, and those between GPUs that a struct describes, "
                 "are not captured");
    return ok();
  }
  bundle::Copy copy;
  copy.rows.width = *details.size;
  bool from_host = payload ? payload->from_host : details.op == Op::HtoD;
  bool to_host = payload ? !payload->from_host : details.op == Op::DtoH;
  if (!from_host) copy.from.address = Address{*details.src};
  if (!to_host) copy.to.address = Address{*details.dst};
  return write_copy(call, copy, payload);
}

Result<> TapeWriter::add_copy_of_rows(const KeptCall& call, const Payload& payload) {
  auto copied = copied_rows(payload.more);
  if (!copied) {
    refuse(std::string(call.function->name), "it " + copied.error().message);
    return ok();
  }
  bundle::Copy copy;
  copy.rows = copied->rows;
  if (copy.rows.is_empty()) return ok();
  if (!copied->from_host) copy.from = copied->from;
  bool is_known = !copied->to_host || (copied->from_host && is_pinned(copy.rows, copied->to));
  if (is_known) copy.to = copied->to;
  if (copied->from_host && !is_known) return ok();  // from the host to the host
  return write_copy(call, copy, payload);
}

Result<> TapeWriter::write_copy(const KeptCall& call, bundle::Copy copy,
                                const std::optional<Payload>& payload) {
  bundle::Operation operation = operation_of(call, Action::copy);
  bool has_bytes =
      payload && payload->state == abi::CI_FILLED && payload->bytes.size() == copy.rows.bytes();
  if (contents_ && has_bytes && (!copy.from.address || !copy.to.address))
    copy.data = TRY(folder_.add_data(payload->bytes));
  if (contents_ && !copy.from.address && !copy.data)
    operation.refused = "the bytes that came from the host could not be kept";
  operation.copy = copy;
  return folder_.add(operation);
}

// Bytes that come from the host are not kept. Those in pinned memory are, with all of it.
std::string TapeWriter::add_copy_node(const KeptNode& node, bundle::Operation& operation) const {
  auto copied = copied_rows(node.given);
  if (!copied) return "a copy in it " + copied.error().message;
  if (copied->rows.is_empty()) return {};
  bundle::Copy copy;
  copy.rows = copied->rows;
  if (!copied->from_host || is_pinned(copy.rows, copied->from)) copy.from = copied->from;
  if (!copied->to_host || is_pinned(copy.rows, copied->to)) copy.to = copied->to;
  if (contents_ && !copy.from.address)
    return "a copy in it comes from memory of the host that is not pinned, which is not captured";
  operation.nodes.emplace_back().copy = copy;
  return {};
}

bool TapeWriter::is_pinned(const bundle::Rows& rows, const bundle::Place& place) const {
  std::uint64_t address = place.address->value, size = *bundle::extent_of(rows, place);
  for (const bundle::Block& block : manifest_.blocks)
    if (block.kind == bundle::BlockKind::pinned && address >= block.address.value &&
        size <= block.size && address - block.address.value <= block.size - size)
      return true;
  return false;
}

}  // namespace cudabpf::taping
