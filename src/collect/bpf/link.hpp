// A program attached to its hook; destroying the link detaches it.
#pragma once

#include <bpf/libbpf.h>

#include <utility>

#include "util/system/fd.hpp"

namespace cudabpf {

// One of libbpf's links, or a descriptor that libbpf does not know.
class Link {
 public:
  Link() = default;
  explicit Link(bpf_link* link) : link_(link) {}
  explicit Link(Fd fd) : fd_(std::move(fd)) {}
  Link(Link&& other) noexcept
      : link_(std::exchange(other.link_, nullptr)), fd_(std::move(other.fd_)) {}
  Link& operator=(Link&& other) noexcept {
    std::swap(link_, other.link_);
    fd_ = std::move(other.fd_);
    return *this;
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() { bpf_link__destroy(link_); }

  explicit operator bool() const { return link_ || fd_; }

 private:
  bpf_link* link_ = nullptr;
  Fd fd_;
};

}  // namespace cudabpf
