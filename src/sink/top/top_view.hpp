// The user's view of `cudabpf top`. Only keys change it, and equal keys give equal views: it is a
// pure function of the keys and of what they were pressed on.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sink/top/top_columns.hpp"
#include "sink/top/top_model.hpp"
#include "util/console/keys.hpp"

namespace cudabpf {

// What a key requests from the program that shows the page.
enum class TopRequest : std::uint8_t {
  nothing,
  end,
  write,   // write what happened last into a file
  redraw,  // redraw all of it: something else wrote on the terminal
};

class TopView {
 public:
  enum class Mode : std::uint8_t { table, help, sort, columns, filter, search };

  // `rows`: of processes, on the page.
  TopRequest press(const Key& key, const TopInterval& interval, std::size_t rows);

  // The processes that are shown, in their order; those that ended are the last.
  std::vector<const TopProcess*> processes(const TopInterval& interval) const;
  // The selected one's place among them. It stays selected wherever sorting moves it.
  std::size_t selected(const std::vector<const TopProcess*>& shown) const;
  bool shows(TopColumn::Id column) const { return !hidden_.test(static_cast<std::size_t>(column)); }
  bool is_expanded(std::uint32_t pid) const { return expanded_.contains(pid); }

  Mode mode() const { return mode_; }
  bool paused() const { return paused_; }
  bool all_gpus() const { return all_gpus_; }
  TopColumn::Id sorted_by() const { return sorted_by_; }
  bool inverted() const { return inverted_; }
  const std::string& filter() const { return filter_; }
  const std::string& search() const { return search_; }
  std::size_t chosen() const { return chosen_; }  // in the list of columns

 private:
  TopRequest press_in_table(const Key& key, const TopInterval& interval, std::size_t rows);
  TopRequest press_letter(char32_t letter, const TopInterval& interval);
  void press_in_list(const Key& key);
  void press_in_prompt(const Key& key, const TopInterval& interval);
  void move(const Key& key, const TopInterval& interval, std::size_t rows);
  void select(const std::vector<const TopProcess*>& shown, std::size_t at);
  void select_next_found(const TopInterval& interval, std::size_t from);
  void expand(const TopInterval& interval);
  void choose(Mode mode);

  Mode mode_ = Mode::table;
  bool paused_ = false, inverted_ = false, all_gpus_ = false;
  TopColumn::Id sorted_by_ = TopColumn::Id::in_cuda;
  std::bitset<static_cast<std::size_t>(TopColumn::Id::count_)> hidden_;
  std::set<std::uint32_t> expanded_;
  std::optional<std::uint32_t> pid_;  // selected; nothing: the process that is at `at_`
  std::size_t at_ = 0;
  std::size_t chosen_ = 0;
  std::string filter_, search_;
};

}  // namespace cudabpf
