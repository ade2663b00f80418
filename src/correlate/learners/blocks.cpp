#include "correlate/learners/blocks.hpp"

#include <algorithm>

namespace cudabpf {

namespace {

bool begins_after(std::uint64_t address, const Block& block) { return address < block.address; }

}  // namespace

std::optional<Blocks::Place> Blocks::place_of(std::uint64_t address) const {
  auto after = std::upper_bound(firsts_.begin(), firsts_.end(), address);
  if (after == firsts_.begin()) return std::nullopt;
  auto number = static_cast<std::size_t>(after - firsts_.begin()) - 1;
  const Chunk& chunk = chunks_[number];
  auto next = std::upper_bound(chunk.begin(), chunk.end(), address, begins_after);
  return Place{number, static_cast<std::size_t>(next - chunk.begin()) - 1};
}

const Block* Blocks::containing(std::uint64_t address) const {
  auto place = place_of(address);
  if (!place) return nullptr;
  const Block& block = chunks_[place->chunk][place->index];
  return address - block.address < block.size ? &block : nullptr;
}

Block* Blocks::at(std::uint64_t address) {
  auto place = place_of(address);
  if (!place) return nullptr;
  Block& block = chunks_[place->chunk][place->index];
  return block.address == address ? &block : nullptr;
}

const Block* Blocks::overlapping(std::uint64_t address, std::uint64_t size) const {
  if (const Block* around = containing(address)) return around;
  auto after = place_of(address);
  Place next = after ? Place{after->chunk, after->index + 1} : Place{0, 0};
  if (next.chunk < chunks_.size() && next.index == chunks_[next.chunk].size())
    next = {next.chunk + 1, 0};
  if (next.chunk == chunks_.size()) return nullptr;
  const Block& block = chunks_[next.chunk][next.index];
  return block.address - address < size ? &block : nullptr;
}

std::size_t Blocks::bytes() const {
  std::size_t bytes = chunks_.capacity() * sizeof(Chunk) + firsts_.capacity() * sizeof(firsts_[0]);
  for (const Chunk& chunk : chunks_) bytes += chunk.capacity() * sizeof(Block);
  return bytes;
}

void Blocks::insert(const Block& block) {
  if (chunks_.empty()) {
    chunks_.emplace_back();
    firsts_.push_back(block.address);
  }
  auto before = place_of(block.address);
  std::size_t number = before ? before->chunk : 0;
  if (chunks_[number].size() == CHUNK) {
    split(number, number + 1 == chunks_.size() && before && before->index + 1 == CHUNK);
    if (block.address >= firsts_[number + 1]) number++;
  }
  Chunk& chunk = chunks_[number];
  chunk.insert(std::upper_bound(chunk.begin(), chunk.end(), block.address, begins_after), block);
  firsts_[number] = chunk.front().address;
  size_++;
}

// Splits a chunk in halves, but keeps the first one full if blocks arrive in address order.
void Blocks::split(std::size_t number, bool at_end) {
  Chunk& chunk = chunks_[number];
  auto middle = chunk.begin() + static_cast<long>(at_end ? CHUNK - 1 : CHUNK / 2);
  Chunk second(middle, chunk.end());
  chunk.erase(middle, chunk.end());
  auto at = static_cast<long>(number) + 1;
  firsts_.insert(firsts_.begin() + at, second.front().address);
  chunks_.insert(chunks_.begin() + at, std::move(second));
}

void Blocks::erase(std::uint64_t address) {
  auto place = place_of(address);
  if (!place) return;
  Chunk& chunk = chunks_[place->chunk];
  if (chunk[place->index].address != address) return;
  chunk.erase(chunk.begin() + static_cast<long>(place->index));
  size_--;
  if (chunk.empty()) {
    chunks_.erase(chunks_.begin() + static_cast<long>(place->chunk));
    firsts_.erase(firsts_.begin() + static_cast<long>(place->chunk));
    return;
  }
  firsts_[place->chunk] = chunk.front().address;
  join(place->chunk);
  if (place->chunk) join(place->chunk - 1);
}

// Joins a chunk with the next if both are far from full, so chunks are never nearly empty for long.
void Blocks::join(std::size_t left) {
  constexpr std::size_t FEW = CHUNK * 3 / 4;
  if (left + 1 >= chunks_.size()) return;
  Chunk &chunk = chunks_[left], &next = chunks_[left + 1];
  if (chunk.size() + next.size() > FEW) return;
  chunk.insert(chunk.end(), next.begin(), next.end());
  chunks_.erase(chunks_.begin() + static_cast<long>(left) + 1);
  firsts_.erase(firsts_.begin() + static_cast<long>(left) + 1);
}

}  // namespace cudabpf
