#include "state/kernel_classes.hpp"

#include <algorithm>
#include <string>

#include "util/demangle/demangle.hpp"

namespace cudabpf {

namespace {

using enum KernelClass;

// The first rule that fits decides. `function` is looked for in the function's own name, `anywhere`
// in the whole name: namespaces, template arguments, parameters. Both are in lower case; "^": the
// name begins with it.
struct Rule {
  std::string_view function;
  std::string_view anywhere;
  KernelClass kernel_class;
};

constexpr Rule RULES[] = {
    // Between GPUs: NCCL, vLLM's and TensorRT-LLM's own, DeepEP, NVSHMEM.
    {"^nccl", "", collective},
    {"allreduce", "", collective},
    {"all_reduce", "", collective},
    {"cross_device_reduce", "", collective},
    {"allgather", "", collective},
    {"all_gather", "", collective},
    {"reducescatter", "", collective},
    {"reduce_scatter", "", collective},
    {"alltoall", "", collective},
    {"all_to_all", "", collective},
    {"nvshmem", "", collective},
    {"", "deep_ep::", collective},

    // Triton's compiler (torch.compile) names kernels after what it fused: first those that this
    // settles.
    {"^triton_poi", "", elementwise},
    {"^triton_for", "", elementwise},
    {"^triton_tem", "attention", attention},
    {"^triton_tem", "", matrix_multiply},
    {"^triton_", "softmax", normalisation},
    {"^triton_", "_norm", normalisation},
    {"^triton_red", "", reduction},
    {"^triton_per", "", reduction},

    // FlashAttention 2 and 3, FlashInfer, xFormers, cuDNN, TensorRT-LLM, vLLM.
    {"flash_fwd", "", attention},
    {"flash_bwd", "", attention},
    {"fmha", "", attention},
    {"flash_mla", "", attention},
    {"attention", "", attention},
    {"attn_fwd", "", attention},
    {"attn_bwd", "", attention},
    {"_attn", "", attention},
    {"withpagedkvcache", "", attention},
    {"withraggedkvcache", "", attention},
    {"_sdpa_", "", attention},
    {"device_kernel", "flash::", attention},
    {"device_kernel", "fmha", attention},

    // A fused kernel counts as its norm, since the rest waits for the norm.
    {"softmax", "", normalisation},
    {"layer_norm", "", normalisation},
    {"layernorm", "", normalisation},
    {"rms_norm", "", normalisation},
    {"rmsnorm", "", normalisation},
    {"add_norm", "", normalisation},
    {"groupnorm", "", normalisation},
    {"group_norm", "", normalisation},
    {"rowwisemoments", "", normalisation},
    {"batch_norm", "", normalisation},
    {"bn_fw", "", normalisation},
    {"bn_bw", "", normalisation},
    {"l2norm", "", normalisation},
    {"ln_fwd_", "", normalisation},
    {"ln_bwd_", "", normalisation},

    // Kernels of matrix and convolution libraries that are neither.
    {"nchwtonhwc", "", copy_set},
    {"nhwctonchw", "", copy_set},
    {"convert", "", copy_set},
    {"^scal_kernel", "", elementwise},
    {"^axpy", "", elementwise},
    {"^dot_kernel", "", reduction},
    {"reduce_1block_kernel", "", reduction},
    {"asum", "", reduction},
    {"nrm2", "", reduction},
    {"op_tensor_kernel", "", elementwise},
    {"pooling_", "", reduction},
    {"max_pool", "", reduction},
    {"avg_pool", "", reduction},

    // cuBLAS, cuBLASLt, CUTLASS, DeepGEMM, Marlin, MoE's grouped multiplications, Triton's own.
    {"gemm", "", matrix_multiply},
    {"gemv", "", matrix_multiply},
    {"^nvjet", "", matrix_multiply},
    {"xmma", "", matrix_multiply},
    {"cutlass", "", matrix_multiply},
    {"^kernel", "cutlass", matrix_multiply},
    {"^device_kernel", "cutlass::", matrix_multiply},
    {"splitkreduce", "", matrix_multiply},
    {"matmul", "", matrix_multiply},
    {"marlin", "", matrix_multiply},
    {"^bmm_", "", matrix_multiply},
    {"_mm_kernel", "", matrix_multiply},
    {"fused_moe_kernel", "", matrix_multiply},
    {"trsm", "", matrix_multiply},
    {"syrk", "", matrix_multiply},
    {"kernel", "gemvx::", matrix_multiply},
    {"kernel", "cublaslt::", matrix_multiply},

    // Convolutions: cuDNN's, PyTorch's. Winograd and Fourier transforms are parts of one.
    {"conv", "", matrix_multiply},
    {"scudnn", "", matrix_multiply},
    {"cudnn_infer_", "", matrix_multiply},
    {"dgrad", "", matrix_multiply},
    {"wgrad", "", matrix_multiply},
    {"fprop", "", matrix_multiply},
    {"winograd", "", matrix_multiply},

    // Copies made by a general kernel, recognised by its arguments.
    {"elementwise_kernel", "copy_kernel", copy_set},
    {"elementwise_kernel", "copy_device_to_device", copy_set},
    {"elementwise_kernel", "fillfunctor", copy_set},
    {"elementwise_kernel", "index_kernel", copy_set},
    {"elementwise_kernel", "index_put", copy_set},
    {"elementwise_kernel", "gather", copy_set},
    {"elementwise_kernel", "scatter", copy_set},
    {"im2col", "", copy_set},
    {"col2im", "", copy_set},
    {"index_elementwise", "", copy_set},
    {"copy", "", copy_set},
    {"fill", "", copy_set},
    {"memcpy", "", copy_set},
    {"memset", "", copy_set},
    {"catarray", "", copy_set},
    {"_cat_", "", copy_set},
    {"transpose", "", copy_set},
    {"permute", "", copy_set},
    {"indexselect", "", copy_set},
    {"index_select", "", copy_set},
    {"topk", "", other},
    {"gather", "", copy_set},
    {"scatter", "", copy_set},
    {"rotary", "", elementwise},
    {"rope", "", elementwise},
    {"embedding", "", copy_set},
    {"reshape_and_cache", "", copy_set},
    {"concat_and_cache", "", copy_set},
    {"appendpagedkvcache", "", copy_set},

    // CUB's and Thrust's kernels are named after the algorithm.
    {"devicescan", "", reduction},
    {"reduce", "", reduction},
    {"reduction", "", reduction},
    {"cumsum", "", reduction},
    {"tensor_kernel_scan", "", reduction},
    {"scan_", "", reduction},
    {"argmax", "", reduction},
    {"argmin", "", reduction},
    {"nll_loss", "", reduction},
    {"cross_entropy", "", reduction},

    {"elementwise", "", elementwise},
    {"act_and_mul", "", elementwise},
    {"activation", "", elementwise},
    {"silu", "", elementwise},
    {"swiglu", "", elementwise},
    {"elu", "", elementwise},  // relu, gelu, …
    {"sigmoid", "", elementwise},
    {"dropout", "", elementwise},
    {"distribution_", "", elementwise},
    {"quant", "", elementwise},
    {"multi_tensor_apply", "", elementwise},
    {"bias", "", elementwise},
    {"pointwise", "", elementwise},
    {"vector_add", "", elementwise},
    {"vectoradd", "", elementwise},
    {"saxpy", "", elementwise},
    {"eigenmetakernel", "reducer", reduction},
    {"eigenmetakernel", "", elementwise},
    {"^loop_", "", elementwise},  // XLA's fusions: JAX
};

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

bool fits(std::string_view pattern, std::string_view text) {
  if (pattern.starts_with('^')) return text.starts_with(pattern.substr(1));
  return text.find(pattern) != std::string_view::npos;
}

}  // namespace

std::string_view to_string(KernelClass kernel_class) {
  constexpr std::string_view NAMES[KERNEL_CLASSES] = {
      "copy/set",    "matrix multiply", "attention",  "normalisation",
      "elementwise", "reduction",       "collective", "other"};
  return NAMES[static_cast<std::size_t>(kernel_class)];
}

KernelClass class_of_kernel(std::string_view name) {
  constexpr std::size_t ENOUGH = 4096;  // of a name that was made long on purpose
  name = name.substr(0, ENOUGH);
  std::string function = in_lower_case(short_name(name)), whole = in_lower_case(name);
  for (const Rule& rule : RULES)
    if (fits(rule.function, function) && fits(rule.anywhere, whole)) return rule.kernel_class;
  return other;
}

}  // namespace cudabpf
