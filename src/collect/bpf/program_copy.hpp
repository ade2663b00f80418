// Another copy of a loaded program of type tracing, which serves only one function of the kernel.
#pragma once

#include <bpf/bpf.h>

#include "collect/bpf/kernel_btf.hpp"
#include "util/result.hpp"
#include "util/system/fd.hpp"

struct bpf_object;
struct bpf_program;

namespace cudabpf {

Result<Fd> load_copy(const bpf_object& object, const bpf_program& program, bpf_attach_type at,
                     KernelBtf::Function function);

}  // namespace cudabpf
