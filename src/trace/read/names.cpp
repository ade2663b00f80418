#include "trace/read/names.hpp"

#include <cstring>

#include "util/hash.hpp"

namespace cudabpf::analyze {

namespace {

// The table's words by their names' numbers; 0: it is none.
struct WordsByName {
  static constexpr std::size_t SIZE =
      TableWords::FIRST + std::size(TYPE_NAMES) + std::size(OP_NAMES);
  std::array<std::uint8_t, SIZE> types{}, ops{};
};
constexpr WordsByName BY_NAME = [] {
  WordsByName words;
  for (std::size_t i = 1; i < TABLE_WORDS.types.size(); i++)
    words.types[TABLE_WORDS.types[i]] = static_cast<std::uint8_t>(i);
  for (std::size_t i = 1; i < TABLE_WORDS.ops.size(); i++)
    words.ops[TABLE_WORDS.ops[i]] = static_cast<std::uint8_t>(i);
  return words;
}();

}  // namespace

const Meaning& meaning_of_call(Name type, Name op) {
  auto word = [](const auto& words, Name name) {
    return name.id < words.size() ? words[name.id] : std::uint8_t{0};
  };
  return meaning_of_call(static_cast<Type>(word(BY_NAME.types, type)),
                         static_cast<Op>(word(BY_NAME.ops, op)));
}

namespace {
constexpr std::size_t CHUNK = std::size_t{1} << 18;
constexpr std::string_view TOO_MANY = "(more names than are kept)";
}  // namespace

Names::Names() : slots_(1024) {
  next({});
  add(TOO_MANY);
  for (std::string_view type : TYPE_NAMES) add(type);
  for (std::string_view op : OP_NAMES) add(op);
}

Name Names::add(std::string_view text) {
  if (text.empty()) return {};
  if (this->text(last_) == text) return last_;  // lines come in runs
  auto hash = static_cast<std::uint32_t>(hash_of(text));
  std::size_t slot = slot_of(text, hash);
  if (!slots_[slot].id) {
    if (size_ >= LIMIT || text.size() > LONGEST || kept_ + text.size() > TEXT_LIMIT)
      return NOT_KEPT;
    last_ = next(keep(text));
    slots_[slot] = {hash, last_.id};
    if (size_ * 2 > slots_.size()) grow();
    return last_;
  }
  return last_ = {slots_[slot].id};
}

// Where the text is, or where it goes.
std::size_t Names::slot_of(std::string_view text, std::uint32_t hash) const {
  std::size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot].id && (slots_[slot].hash != hash || this->text({slots_[slot].id}) != text))
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void Names::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& known : old)
    if (known.id) slots_[slot_of(text({known.id}), known.hash)] = known;
}

Name Names::next(std::string_view kept) {
  auto& page = texts_[size_ / PAGE];
  if (!page) page = std::make_unique<std::string_view[]>(PAGE);
  page[size_ % PAGE] = kept;
  return {static_cast<std::uint32_t>(size_++)};
}

std::string_view Names::keep(std::string_view text) {
  kept_ += text.size();
  if (text.size() > free_) {
    free_ = std::max(CHUNK, text.size());
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(free_));
  }
  // The chunk is filled from its end.
  free_ -= text.size();
  char* at = chunks_.back().get() + free_;
  std::memcpy(at, text.data(), text.size());
  return {at, text.size()};
}

}  // namespace cudabpf::analyze
