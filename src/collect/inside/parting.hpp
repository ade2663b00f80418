// Ends connections. Unread messages of strangers are closed with a connection, and that may take as
// long as they like: a socket that lingers, say, waits for an hour. So where such messages are
// left, another process closes the connection.
#pragma once

#include <cstddef>
#include <list>

#include "util/elf/elf_reader.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

class Parting {
 public:
  explicit Parting(const elf::Reader& reader) : reader_(reader) {}
  Parting(const Parting&) = delete;
  Parting& operator=(const Parting&) = delete;
  ~Parting();

  void with(Fd socket);
  // Another thread may still be reading from it.
  void with_one_in_use(Fd socket);
  // Tries again those that could not be ended at once.
  void go_on();
  bool is_behind() const;

 private:
  const elf::Reader& reader_;
  std::list<Fd> left_;
};

}  // namespace cudabpf
