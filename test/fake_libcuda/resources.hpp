// The kernel driver's objects: ioctls that allocate, control, map and free them. Each function
// makes one ioctl, unless it says otherwise, and returns the driver's status.
#pragma once

#include <cstdint>

#include "nodes.hpp"
#include "nvos.hpp"

namespace fake {

// The structs that have a status, and those that have none.
template <typename T>
uint32_t* status_of(T& structure) {
  if constexpr (requires { structure.status; }) return &structure.status;
  return nullptr;
}

template <typename T>
uint32_t escape(const Node& node, uint32_t number, T& structure, Subject subject = {}) {
  subject.number = number;
  return Ioctl(node, subject, &structure, sizeof structure, status_of(structure)).status();
}

template <typename T>
uint32_t uvm_ioctl(const Node& node, uint32_t number, T& structure, Subject subject = {}) {
  subject.uvm = true;
  return escape(node, number, structure, subject);
}

// The caller chooses handles, except for a client's.
uint32_t new_object_handle();

// A place among objects: what a new one belongs to.
struct Parent {
  const Node& node;
  uint32_t client, object;
};

// Uses NVOS64 or NVOS21, the driver's two structs for it. A client, too, is allocated this way,
// with a parent of zeros.
template <typename Request = nvos::Alloc64>
uint32_t allocate_object(const Parent& parent, uint32_t klass, uint32_t& object,
                         void* parameters = nullptr, uint32_t size = 0);
uint32_t allocate_memory(const Parent& parent, uint32_t klass, uint32_t& object, uint64_t bytes,
                         uint32_t va_space);
uint32_t describe_memory(const Parent& parent, uint32_t& object, void* address, uint64_t bytes);
uint32_t free_object(const Parent& parent, uint32_t object);

template <typename T>
uint32_t control(const Parent& of, uint32_t command, T& parameters, Subject subject = {}) {
  nvos::Control request = {
      of.client,         of.object, command, 0, reinterpret_cast<uint64_t>(&parameters),
      sizeof parameters, 0};
  subject.control = command;
  subject.client = of.client;
  subject.object = of.object;
  return escape(of.node, nvos::kControl, request, subject);
}

// Makes memory visible at GPU addresses: two ioctls.
uint32_t map_for_gpu(const Node& uvm, const Parent& memory, const nvos::Uuid& gpu, uint64_t base,
                     uint64_t bytes);
uint32_t unmap_for_gpu(const Node& uvm, uint64_t base, uint64_t bytes);

}  // namespace fake
