// Options that take one word of a few.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace cudabpf::cli {

// The words are checked, shown by --help and completed by shells: all from this one list.
CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words);

// What each word stands for. Several may stand for the same; --help shows the first.
template <typename Value>
using Meanings = std::vector<std::pair<std::string, Value>>;

// An option that sets `value` to what the word stands for.
template <typename Value>
CLI::Option* one_of(CLI::App& app, const std::string& name, Value& value,
                    const Meanings<Value>& meanings, const std::string& help) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : meanings) words.push_back(word);
  auto set = [&value, meanings](const std::string& given) {
    for (const auto& [word, meaning] : meanings)
      if (word == given) value = meaning;
  };
  auto now = [&value, meanings] {
    for (const auto& [word, meaning] : meanings)
      if (meaning == value) return word;
    return std::string();
  };
  return one_of(app.add_option_function<std::string>(name, set, help), words)
      ->default_function(now);
}

}  // namespace cudabpf::cli
