// The statements of fake_calls that copy.
#include <cstring>

#include "calls.hpp"

namespace workload {
namespace {

constexpr uint32_t kHost = 1, kDevice = 2, kUnified = 4;

struct Direction {
  uint32_t to, from;
};

Direction direction_of(A a) {
  static const std::map<std::string, Direction> known = {{"htod", {kDevice, kHost}},
                                                         {"dtoh", {kHost, kDevice}},
                                                         {"dtod", {kDevice, kDevice}},
                                                         {"htoh", {kHost, kHost}},
                                                         {"unified", {kUnified, kUnified}}};
  const auto found = known.find(a.text(1));
  if (found == known.end())
    refuse(a.statement(), "the direction is none of htod dtoh dtod htoh unified");
  return found->second;
}

// DIRECTION TO FROM WIDTH HEIGHT, then DEPTH for three dimensions.
template <typename Copy>
Copy make_copy(A a) {
  Copy copy;
  memset(&copy, 0, sizeof copy);
  const Direction direction = direction_of(a);
  copy.dst_type = direction.to;
  copy.src_type = direction.from;
  if (direction.to == kHost)
    copy.dst_host = a.handle(2);
  else
    copy.dst_device = a.word(2);
  if (direction.from == kHost)
    copy.src_host = a.handle(3);
  else
    copy.src_device = a.word(3);
  copy.width = copy.src_pitch = copy.dst_pitch = a.word(4);
  copy.height = a.word(5);
  return copy;
}

Memcpy3D make_copy_3d(A a) {
  auto copy = make_copy<Memcpy3D>(a);
  copy.depth = a.word(6);
  copy.src_height = copy.dst_height = copy.height;
  return copy;
}

// The same, then the context that the copy goes to and the one that it comes from.
Memcpy3D make_copy_3d_peer(A a) {
  Memcpy3D copy = make_copy_3d(a);
  copy.dst_context = a.handle(7);
  copy.src_context = a.handle(8);
  return copy;
}

Status copy_batch(D d, A a) {
  std::vector<DevicePtr> to, from;
  std::vector<uint64_t> sizes;
  for (size_t i = 3; i <= a.count(); ++i) {
    to.push_back(a.word(1));
    from.push_back(a.word(2));
    sizes.push_back(a.word(i));
  }
  Word attributes[4] = {1};  // copy in stream order
  uint64_t first = 0;
  return d.cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), sizes.size(), attributes,
                              &first, 1, nullptr);
}

}  // namespace

const std::map<std::string, Make>& copy_calls() {
  static const std::map<std::string, Make> calls = {
      {"htod", [](D d, A a) { return d.cuMemcpyHtoD(a.word(1), a.handle(2), a.word(3)); }},
      {"dtoh", [](D d, A a) { return d.cuMemcpyDtoH(a.handle(1), a.word(2), a.word(3)); }},
      {"dtod", [](D d, A a) { return d.cuMemcpyDtoD(a.word(1), a.word(2), a.word(3)); }},
      {"copy", [](D d, A a) { return d.cuMemcpy(a.word(1), a.word(2), a.word(3)); }},
      {"htod-async",
       [](D d, A a) {
         return d.cuMemcpyHtoDAsync(a.word(1), a.handle(2), a.word(3), a.stream(4));
       }},
      {"dtoh-async",
       [](D d, A a) {
         return d.cuMemcpyDtoHAsync(a.handle(1), a.word(2), a.word(3), a.stream(4));
       }},
      {"dtod-async",
       [](D d, A a) { return d.cuMemcpyDtoDAsync(a.word(1), a.word(2), a.word(3), a.stream(4)); }},
      {"copy-async",
       [](D d, A a) { return d.cuMemcpyAsync(a.word(1), a.word(2), a.word(3), a.stream(4)); }},
      {"peer",
       [](D d, A a) {
         return d.cuMemcpyPeer(a.word(1), a.handle(2), a.word(3), a.handle(4), a.word(5));
       }},
      {"peer-async",
       [](D d, A a) {
         return d.cuMemcpyPeerAsync(a.word(1), a.handle(2), a.word(3), a.handle(4), a.word(5),
                                    a.stream(6));
       }},
      {"copy-batch", copy_batch},
      {"copy2d",
       [](D d, A a) {
         const auto copy = make_copy<Memcpy2D>(a);
         return d.cuMemcpy2D(&copy);
       }},
      {"copy2d-unaligned",
       [](D d, A a) {
         const auto copy = make_copy<Memcpy2D>(a);
         return d.cuMemcpy2DUnaligned(&copy);
       }},
      {"copy2d-async",
       [](D d, A a) {
         const auto copy = make_copy<Memcpy2D>(a);
         return d.cuMemcpy2DAsync(&copy, a.stream(6));
       }},
      {"copy3d",
       [](D d, A a) {
         const Memcpy3D copy = make_copy_3d(a);
         return d.cuMemcpy3D(&copy);
       }},
      {"copy3d-async",
       [](D d, A a) {
         const Memcpy3D copy = make_copy_3d(a);
         return d.cuMemcpy3DAsync(&copy, a.stream(7));
       }},
      {"copy3d-peer",
       [](D d, A a) {
         const Memcpy3D copy = make_copy_3d_peer(a);
         return d.cuMemcpy3DPeer(&copy);
       }},
      {"copy3d-peer-async",
       [](D d, A a) {
         const Memcpy3D copy = make_copy_3d_peer(a);
         return d.cuMemcpy3DPeerAsync(&copy, a.stream(9));
       }},
  };
  return calls;
}

}  // namespace workload
