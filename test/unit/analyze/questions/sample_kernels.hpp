// Names of kernels that real programs launch, with what they do. Those of PyTorch on an H200 are
// from traces; others are from libraries' sources and programs' profiles.
#pragma once

#include "analyze/questions/kernel_classes.hpp"

struct SampleKernel {
  cudabpf::analyze::KernelClass kernel_class;
  const char* name;
};

using cudabpf::analyze::KernelClass;
inline constexpr SampleKernel SAMPLE_KERNELS[] = {
    // From traces.
    {KernelClass::other, "add(float const*, float const*, float*, int)"},
    {KernelClass::attention,
     "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float, "
     "cutlass::arch::Sm80, true, 64, 64, 64, true, true>::Params)"},
    {KernelClass::matrix_multiply, "nvjet_sm90_hsh_64x8_64x16_4x1_v_bz_bias_NNT"},
    {KernelClass::matrix_multiply, "nvjet_sm90_hsh_64x8_64x16_4x1_v_bz_splitK_bias_NNT"},
    {KernelClass::matrix_multiply,
     "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float, float, "
     "float, false, true, true, false, 7, false, cublasGemvParamsEx<int, "
     "cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float const>, "
     "cublasGemvTensorStridedBatched<float>, float> >(cublasGemvParamsEx<int, "
     "cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float const>, "
     "cublasGemvTensorStridedBatched<float>, float>)"},
    {KernelClass::elementwise,
     "void (anonymous namespace)::elementwise_kernel_with_index<int, "
     "at::native::arange_cuda_out(c10::Scalar const&, c10::Scalar const&, c10::Scalar const&, "
     "at::Tensor&)::{lambda()#1}::operator()() const::{lambda()#4}::operator()() "
     "const::{lambda(long)#1}>(int, at::native::arange_cuda_out(c10::Scalar const&, c10::Scalar "
     "const&, c10::Scalar const&, at::Tensor&)::{lambda()#1}::operator()() "
     "const::{lambda()#4}::operator()() const::{lambda(long)#1}, "
     "function_traits<at::native::arange_cuda_out(c10::Scalar const&, c10::Scalar const&, "
     "c10::Scalar const&, at::Tensor&)::{lambda()#1}::operator()() "
     "const::{lambda()#4}::operator()() const::{lambda(long)#1}>::result_type*)"},
    {KernelClass::copy_set,
     "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous "
     "namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(at::native::(anonymous "
     "namespace)::OpaqueType<2u>*, at::native::(anonymous "
     "namespace)::CatArrInputTensorMetadata<at::native::(anonymous namespace)::OpaqueType<2u>, "
     "unsigned int, 64, 64>, at::native::(anonymous namespace)::TensorSizeStride<unsigned int, "
     "4u>, int, unsigned int)"},
    {KernelClass::copy_set,
     "void at::native::(anonymous "
     "namespace)::CatArrayBatchedCopy_alignedK_contig<at::native::(anonymous "
     "namespace)::OpaqueType<8u>, unsigned int, 2, 128, 1, 16>(at::native::(anonymous "
     "namespace)::OpaqueType<8u>*, at::native::(anonymous "
     "namespace)::CatArrInputTensorMetadata<at::native::(anonymous namespace)::OpaqueType<8u>, "
     "unsigned int, 128, 1>, at::native::(anonymous namespace)::TensorSizeStride<unsigned int, "
     "4u>, int, unsigned int)"},
    {KernelClass::copy_set,
     "void at::native::(anonymous "
     "namespace)::CatArrayBatchedCopy_vectorized<at::native::(anonymous "
     "namespace)::OpaqueType<2u>, unsigned int, 3, 128, 1, 16, 8>(char*, at::native::(anonymous "
     "namespace)::CatArrInputTensorMetadata<at::native::(anonymous namespace)::OpaqueType<2u>, "
     "unsigned int, 128, 1>, at::native::(anonymous namespace)::TensorSizeStride<unsigned int, "
     "4u>, int, unsigned int)"},
    {KernelClass::copy_set,
     "void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::Half, long, unsigned int, "
     "2, 2, -2>(at::cuda::detail::TensorInfo<c10::Half, unsigned int>, "
     "at::cuda::detail::TensorInfo<c10::Half const, unsigned int>, "
     "at::cuda::detail::TensorInfo<long const, unsigned int>, int, int, unsigned int, long)"},
    {KernelClass::copy_set,
     "void at::native::(anonymous namespace)::indexSelectSmallIndex<float, long, unsigned int, 2, "
     "2, -2>(at::cuda::detail::TensorInfo<float, unsigned int>, at::cuda::detail::TensorInfo<float "
     "const, unsigned int>, at::cuda::detail::TensorInfo<long const, unsigned int>, int, int, "
     "unsigned int, long)"},
    {KernelClass::normalisation,
     "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float, "
     "false>(int, float, c10::Half const*, c10::Half const*, c10::Half const*, float*, float*, "
     "c10::Half*)"},
    {KernelClass::normalisation,
     "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, "
     "false>(int, float, float const*, float const*, float const*, float*, float*, float*)"},
    {KernelClass::reduction,
     "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::Half, "
     "at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >(at::native::ReduceOp<c10::Half, "
     "at::native::ArgMaxOps<float>, unsigned int, long, 4, 4>)"},
    {KernelClass::reduction,
     "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
     "at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >(at::native::ReduceOp<float, "
     "at::native::ArgMaxOps<float>, unsigned int, long, 4, 4>)"},
    {KernelClass::elementwise,
     "void at::native::vectorized_elementwise_kernel<2, at::native::CUDAFunctorOnSelf_add<long>, "
     "std::array<char*, 2ul> >(int, at::native::CUDAFunctorOnSelf_add<long>, std::array<char*, "
     "2ul>)"},
    {KernelClass::elementwise,
     "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous "
     "namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, "
     "at::native::detail::ClampLimits)::{lambda()#1}::operator()() "
     "const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >(int, "
     "at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, "
     "c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() "
     "const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>)"},
    {KernelClass::elementwise,
     "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
     "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"},
    {KernelClass::copy_set,
     "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
     "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"},
    {KernelClass::elementwise,
     "void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous "
     "namespace)::pow_tensor_scalar_kernel_impl<c10::Half, c10::Half>(at::TensorIteratorBase&, "
     "c10::Half)::{lambda(c10::Half)#2}, std::array<char*, 2ul> >(int, at::native::(anonymous "
     "namespace)::pow_tensor_scalar_kernel_impl<c10::Half, c10::Half>(at::TensorIteratorBase&, "
     "c10::Half)::{lambda(c10::Half)#2}, std::array<char*, 2ul>)"},
    {KernelClass::elementwise,
     "void at::native::vectorized_elementwise_kernel<8, at::native::AUnaryFunctor<c10::Half, "
     "c10::Half, c10::Half, at::native::binary_internal::MulFunctor<float> >, std::array<char*, "
     "2ul> >(int, at::native::AUnaryFunctor<c10::Half, c10::Half, c10::Half, "
     "at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul>)"},
    {KernelClass::elementwise,
     "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::Half, "
     "c10::Half, c10::Half, at::native::binary_internal::MulFunctor<float> >, std::array<char*, "
     "3ul> >(int, at::native::BinaryFunctor<c10::Half, c10::Half, c10::Half, "
     "at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul>)"},
    {KernelClass::elementwise,
     "void at::native::vectorized_elementwise_kernel<8, "
     "at::native::CUDAFunctorOnSelf_add<c10::Half>, std::array<char*, 2ul> >(int, "
     "at::native::CUDAFunctorOnSelf_add<c10::Half>, std::array<char*, 2ul>)"},
    {KernelClass::elementwise,
     "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::Half>, "
     "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::Half>, std::array<char*, "
     "3ul>)"},
    {KernelClass::elementwise,
     "void at::native::vectorized_elementwise_kernel<8, "
     "at::native::tanh_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() "
     "const::{lambda()#3}::operator()() const::{lambda(c10::Half)#1}, std::array<char*, 2ul> "
     ">(int, at::native::tanh_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() "
     "const::{lambda()#3}::operator()() const::{lambda(c10::Half)#1}, std::array<char*, 2ul>)"},
    {KernelClass::copy_set,
     "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, "
     "long, long, bool)"},
    {KernelClass::matrix_multiply,
     "void cublasLt::epilogue::impl::globalKernel<8, 32, float, float, float, true, true, 1>(int, "
     "int, long, float*, cublasLtEpilogue_t, int, float*, long, void*, long, long, long, float*, "
     "long, int*)"},
    {KernelClass::matrix_multiply,
     "void cublasLt::splitKreduce_kernel<32, 16, int, float, __half, float, __half, false, float, "
     "__half, __half, true, true, false, false>(cublasLt::cublasSplitKParams<float>, float const*, "
     "__half const*, float*, __half*, float const*, float const*, __half const*, float const*, "
     "__half*, void*, long, float*, int*, float*, float*, float const*, float const*, float "
     "const*, float const*, float const*)"},
    {KernelClass::matrix_multiply,
     "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, false, float, "
     "float, float, true, true, false, false>(cublasLt::cublasSplitKParams<float>, float const*, "
     "float const*, float*, float*, float const*, float const*, float const*, float const*, "
     "float*, void*, long, float*, int*, float*, float*, float const*, float const*, float const*, "
     "float const*, float const*)"},
    {KernelClass::matrix_multiply,
     "void "
     "cutlass::Kernel2<cutlass_75_wmma_tensorop_f16_s161616gemm_f16_32x32_128x1_tn_align1>(cutlass_"
     "75_wmma_tensorop_f16_s161616gemm_f16_32x32_128x1_tn_align1::Params)"},
    {KernelClass::matrix_multiply,
     "void "
     "cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_tn_align1>(cutlass_80_simt_sgemm_64x64_8x5_"
     "tn_align1::Params)"},
    {KernelClass::matrix_multiply,
     "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 10, 11, false, "
     "cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float const>, "
     "cublasGemvTensorStridedBatched<float> "
     ">(cublasGemmSmallNParams<cublasGemvTensorStridedBatched<float const>, "
     "cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float>, float>)"},
    {KernelClass::matrix_multiply,
     "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 14, 15, false, "
     "cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float const>, "
     "cublasGemvTensorStridedBatched<float> "
     ">(cublasGemmSmallNParams<cublasGemvTensorStridedBatched<float const>, "
     "cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float>, float>)"},
    {KernelClass::matrix_multiply,
     "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 6, 7, false, "
     "cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float const>, "
     "cublasGemvTensorStridedBatched<float> "
     ">(cublasGemmSmallNParams<cublasGemvTensorStridedBatched<float const>, "
     "cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float>, float>)"},
    {KernelClass::matrix_multiply,
     "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 8, 9, false, "
     "cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float const>, "
     "cublasGemvTensorStridedBatched<float> "
     ">(cublasGemmSmallNParams<cublasGemvTensorStridedBatched<float const>, "
     "cublasGemvTensorStridedBatched<float const>, cublasGemvTensorStridedBatched<float>, float>)"},
    {KernelClass::matrix_multiply,
     "void gemv2T_kernel_val<int, int, __half, __half, __half, float, 128, 16, 4, 4, false, false, "
     "cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<__half const>, "
     "cublasGemvTensorStridedBatched<__half const>, cublasGemvTensorStridedBatched<__half>, float> "
     ">(cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<__half const>, "
     "cublasGemvTensorStridedBatched<__half const>, cublasGemvTensorStridedBatched<__half>, "
     "float>, float, float)"},
    {KernelClass::attention,
     "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, "
     "cutlass::half_t, Flash_kernel_traits<64, 128, 128, 4, cutlass::half_t> >, false, false, "
     "false, false, false, true, false, false>(pytorch_flash::Flash_fwd_params)"},
    {KernelClass::attention,
     "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, "
     "cutlass::half_t, Flash_kernel_traits<64, 128, 128, 4, cutlass::half_t> >, false, true, "
     "false, false, false, true, false, false>(pytorch_flash::Flash_fwd_params)"},
    {KernelClass::elementwise,
     "void scal_kernel<float, float, 1, true, 6, 5, 5, 3>(cublasTransposeParams<float>, float "
     "const*, float*, float const*)"},
    {KernelClass::matrix_multiply,
     "void sgemm_largek_lds64<true, false, 5, 5, 4, 4, 4, 34>(float*, float const*, float const*, "
     "int, int, int, int, int, int, float const*, float const*, float, float, int, int, int*, "
     "int*)"},
    // Collective
    {KernelClass::collective,
     "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"},
    {KernelClass::collective,
     "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"},
    {KernelClass::collective,
     "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"},
    {KernelClass::collective, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"},
    {KernelClass::collective, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"},
    {KernelClass::collective,
     "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals, "
     "vllm::Signal*, __nv_bfloat16*, int, int)"},
    {KernelClass::collective,
     "void tensorrt_llm::kernels::oneShotAllReduceKernel<__nv_bfloat16, 8, "
     "false>(tensorrt_llm::kernels::AllReduceParams)"},
    {KernelClass::collective,
     "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*, int*)"},
    // Attention
    {KernelClass::attention,
     "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, "
     "cutlass::bfloat16_t, Flash_kernel_traits<128, 128, 64, 4, cutlass::bfloat16_t> >, false, "
     "true, false, false, false, true, false, false>(flash::Flash_fwd_params)"},
    {KernelClass::attention,
     "void pytorch_flash::flash_fwd_splitkv_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 64, "
     "256, 4, false, false, cutlass::half_t>, false>(pytorch_flash::Flash_fwd_params)"},
    {KernelClass::attention,
     "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<256, 64, 64, 4>, 4, 1, "
     "true>(flash::Flash_fwd_params)"},
    {KernelClass::attention,
     "void "
     "cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::"
     "CollectiveMainloopFwdSm90<2, cute::C<1> > > > >(flash::Params)"},
    {KernelClass::attention,
     "void vllm::paged_attention_v1_kernel<unsigned short, unsigned short, 128, 16, 128, "
     "(vllm::Fp8KVCacheDataType)0, false>(unsigned short*)"},
    {KernelClass::attention,
     "void vllm::paged_attention_v2_reduce_kernel<unsigned short, 128, 128, 512>(unsigned short*, "
     "float const*, float const*)"},
    {KernelClass::attention, "kernel_unified_attention_2d"},
    {KernelClass::attention,
     "fmhaSm100fKernel_"
     "QkvFp16OFp16H128PagedKvCausalP64MultiCtasKvVarSeqQ32Kv128StaticSwapsAbForGen"},
    {KernelClass::attention,
     "fmha_v2_flash_attention_bf16_64_128_S_q_paged_kv_128_causal_tma_ws_sm90_kernel"},
    {KernelClass::attention,
     "void "
     "flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<(flashinfer::"
     "MaskMode)1, 128u> >(flashinfer::PagedParams)"},
    {KernelClass::attention,
     "void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u, "
     "4u>(flashinfer::Params)"},
    {KernelClass::attention,
     "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3i_128x128x128_4x1x1_"
     "kernel0_0"},
    {KernelClass::attention, "masked_multihead_attention_kernel"},
    {KernelClass::attention, "_attn_fwd"},
    {KernelClass::attention, "triton_tem_fused_flex_attention_3"},
    // Normalisation
    {KernelClass::normalisation,
     "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, "
     "false>(float*, float const*, int, int, int, bool const*, int, bool)"},
    {KernelClass::normalisation,
     "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::Half, float, c10::Half, "
     "at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(c10::Half*, c10::Half const*, "
     "int)"},
    {KernelClass::normalisation,
     "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float, float>(long, float, "
     "float const*, float*, float*)"},
    {KernelClass::normalisation,
     "void at::native::batch_norm_transform_input_kernel<float, float, float, true, int>(float "
     "const*)"},
    {KernelClass::normalisation,
     "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, c10::BFloat16 const*, long, "
     "c10::BFloat16 const*, float, int, int)"},
    {KernelClass::normalisation,
     "std::enable_if<((8) > (0)) && (vllm::_typeConvert<c10::Half>::exists), void>::type "
     "vllm::fused_add_rms_norm_kernel<c10::Half, 8>(c10::Half*, long, c10::Half*)"},
    {KernelClass::normalisation,
     "void flashinfer::norm::RMSNormKernel<(unsigned int)8, __half>(T2 *, T2 *, T2 *, unsigned "
     "int)"},
    {KernelClass::normalisation,
     "void tensorrt_llm::kernels::generalLayerNorm<__half, true>(__half const*)"},
    {KernelClass::normalisation,
     "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(cudnn::bnFwTrainParams)"},
    {KernelClass::normalisation, "triton_per_fused__softmax_5"},
    {KernelClass::normalisation, "triton_red_fused__to_copy_add_mean_mul_native_layer_norm_2"},
    {KernelClass::normalisation, "_layer_norm_fwd_1pass_kernel"},
    // Matrix multiply
    {KernelClass::matrix_multiply, "ampere_sgemm_32x32_sliced1x4_tn"},
    {KernelClass::matrix_multiply, "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_32x3_nn"},
    {KernelClass::matrix_multiply, "volta_sgemm_64x32_sliced1x4_nn"},
    {KernelClass::matrix_multiply,
     "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_"
     "tensor16x8x16_kernel"},
    {KernelClass::matrix_multiply,
     "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_"
     "k_off_kernel__5x_cublas"},
    {KernelClass::matrix_multiply, "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT"},
    {KernelClass::matrix_multiply, "nvjet_sm90_hss_64x8_64x16_1x1_h_bz_splitK_NNT"},
    {KernelClass::matrix_multiply,
     "void "
     "cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x64_32x4_tn_align8>(cutlass_80_"
     "tensorop_bf16_s16816gemm_bf16_256x64_32x4_tn_align8::Params)"},
    {KernelClass::matrix_multiply,
     "_ZN7cutlass7Kernel2I66cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128_32x3_tn_"
     "align8EEvNT_6ParamsE"},
    {KernelClass::matrix_multiply,
     "void "
     "cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cutlass::gemm::kernel::"
     "GemmUniversal<cute::tuple<int, int, int> > > >(Params)"},
    {KernelClass::matrix_multiply,
     "void splitKreduce_kernel<float, float, float>(cublasSplitKParams<float>, float const*, float "
     "const*, float*)"},
    {KernelClass::matrix_multiply,
     "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false, "
     "cublasGemvParamsEx<int> >(cublasGemvParamsEx<int>)"},
    {KernelClass::matrix_multiply,
     "void gemvNSP_kernel<float, float, float, float, 1, 32, 4, 1024, cublasGemvParams<float> "
     ">(cublasGemvParams<float>)"},
    {KernelClass::matrix_multiply,
     "void marlin_moe_wna16::Marlin<__nv_bfloat16, 1099511628032l, 256, 4, 4, 8>(int4 const*)"},
    {KernelClass::matrix_multiply,
     "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 7168u, 2048u>(float*, int*)"},
    {KernelClass::matrix_multiply,
     "bmm_E2m1_E2m1E2m1_Fp32_t128x8x512_s6_et128x8_m128x8x64_cga1x1x1_16dp256b_TN_transOut_schedS_"
     "bN_ldgsts_rgTma_clmp_swiGlu_dynBatch_sm100f"},
    {KernelClass::matrix_multiply, "fused_moe_kernel"},
    {KernelClass::matrix_multiply, "_w8a8_block_fp8_matmul"},
    {KernelClass::matrix_multiply, "matmul_kernel_persistent"},
    {KernelClass::matrix_multiply, "triton_tem_fused_mm_12"},
    {KernelClass::matrix_multiply,
     "void cudnn::detail::implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, true, "
     "false, true>(int, int, int, float const*)"},
    {KernelClass::matrix_multiply,
     "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false, false, true>(int)"},
    {KernelClass::matrix_multiply,
     "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_stage3_"
     "warpsize2x2x1_g1_tensor16x8x16_execute_kernel_cudnn"},
    {KernelClass::matrix_multiply, "maxwell_scudnn_winograd_128x128_ldg1_ldg4_relu_tile418n_nt"},
    {KernelClass::matrix_multiply, "volta_scudnn_128x64_relu_small_nn_v1"},
    {KernelClass::matrix_multiply,
     "void cudnn::detail::wgrad_alg0_engine<float, 512, 6, 5, 3, 3, 3, true, 512>(int)"},
    {KernelClass::matrix_multiply,
     "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3, float, int>(float "
     "const*)"},
    // Copy/set
    {KernelClass::copy_set,
     "void at::native::elementwise_kernel<128, 4, "
     "at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{"
     "lambda()#3}::operator()() const::{lambda()#7}::operator()() "
     "const::{lambda(float)#1}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int)"},
    {KernelClass::copy_set,
     "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
     "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"},
    {KernelClass::copy_set,
     "void at::native::index_elementwise_kernel<128, 4, "
     "at::native::gpu_index_kernel<at::native::index_kernel_impl<at::native::OpaqueType<4> > > "
     ">(int)"},
    {KernelClass::copy_set,
     "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous "
     "namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>(int)"},
    {KernelClass::copy_set,
     "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::Half, long, unsigned int, "
     "2, 2, -2, true>(int)"},
    {KernelClass::copy_set,
     "void at::native::_scatter_gather_elementwise_kernel<128, 8, "
     "at::native::_cuda_scatter_gather_internal_kernel<false> >(int)"},
    {KernelClass::copy_set, "void at::native::im2col_kernel<float>(long, float const*)"},
    {KernelClass::copy_set,
     "void at::native::detail::split_with_sizes_copy_out_contiguous_no_cast_kernel(char**, "
     "char**)"},
    {KernelClass::copy_set,
     "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, "
     "(vllm::Fp8KVCacheDataType)0>(__nv_bfloat16 const*)"},
    {KernelClass::copy_set,
     "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, __nv_bfloat16, "
     "(vllm::Fp8KVCacheDataType)0>(int)"},
    {KernelClass::copy_set,
     "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, true, true, "
     "(cudnnKernelDataType_t)0>(int)"},
    {KernelClass::copy_set,
     "void cudnn::ops::genericTranspose_kernel<float, __half, float, true, "
     "(cudnnKernelDataType_t)0>(int)"},
    {KernelClass::copy_set,
     "void cudnn::ops::convertTensor_kernel<float, __half, float, "
     "(cudnnKernelDataType_t)0>(float)"},
    {KernelClass::copy_set, "memcpy32_post"},
    {KernelClass::copy_set,
     "void flashinfer::AppendPagedKVCacheKernel<128u, 8u, __half, int>(int)"},
    // Reduction
    {KernelClass::reduction,
     "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, "
     "at::native::MeanOps<float, float, float, float>, unsigned int, float, 4, 4> >(int)"},
    {KernelClass::reduction,
     "void cub::CUB_200200_800_900_NS::DeviceReduceSingleTileKernel<cub::Policy, float*, float*, "
     "int, cub::Sum, float, float>(float*)"},
    {KernelClass::reduction,
     "void "
     "at_cuda_detail::cub::DeviceScanKernel<at_cuda_detail::cub::DeviceScanPolicy<int>::Policy900, "
     "int const*>(int const*)"},
    {KernelClass::reduction,
     "void at::native::tensor_kernel_scan_innermost_dim<float, std::plus<float> >(float*)"},
    {KernelClass::reduction,
     "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float const>, "
     "cublasGemvTensorStridedBatched<float> > >(int)"},
    {KernelClass::reduction,
     "void reduce_1Block_kernel<float, 128, 7, cublasGemvTensorStridedBatched<float> >(float "
     "const*)"},
    {KernelClass::reduction, "triton_red_fused_argmax_0"},
    {KernelClass::reduction, "triton_per_fused_sum_1"},
    {KernelClass::reduction,
     "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, long>(long)"},
    {KernelClass::reduction,
     "void cudnn::detail::pooling_fw_4d_kernel<float, float, cudnn::detail::maxpooling_func<float, "
     "(cudnnNanPropagation_t)0>, 0, false>(int)"},
    {KernelClass::reduction, "input_reduce_fusion"},
    // Elementwise
    {KernelClass::elementwise,
     "void at::native::elementwise_kernel<128, 2, "
     "at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<float, float, float, "
     "at::native::binary_internal::MulFunctor<float> > "
     ">(at::TensorIteratorBase&)::{lambda(int)#1}>(int)"},
    {KernelClass::elementwise,
     "void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<c10::Half>, "
     "std::array<char*, 3ul>, 4>(int)"},
    {KernelClass::elementwise,
     "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, "
     "1, 4, bool>(int)"},
    {KernelClass::elementwise,
     "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
     "namespace)::TensorListMetadata<3>, at::native::(anonymous "
     "namespace)::FusedAdamMathFunctor<float, 4> >(int)"},
    {KernelClass::elementwise,
     "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 "
     "vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*)"},
    {KernelClass::elementwise,
     "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)"},
    {KernelClass::elementwise,
     "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheHeadParallelismKernel<false, 128u, 8u, "
     "16u, __half, long>(__half*)"},
    {KernelClass::elementwise,
     "void vllm::scaled_fp8_quant_kernel_strided_dynamic<c10::BFloat16, c10::Float8_e4m3fn>(int)"},
    {KernelClass::elementwise,
     "void op_tensor_kernel<2, float, float, float, 32, 1, 4, 2, (cudnnOpTensorOp_t)2, "
     "(cudnnNanPropagation_t)0>(int)"},
    {KernelClass::elementwise, "triton_poi_fused_add_mul_native_layer_norm_3"},
    {KernelClass::elementwise, "triton_poi_fused__to_copy_silu_mul_9"},
    {KernelClass::elementwise, "loop_add_fusion"},
    {KernelClass::elementwise,
     "void "
     "Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<Eigen::"
     "TensorMap<float>, Eigen::TensorCwiseUnaryOp<Eigen::internal::scalar_left<float, float> > >, "
     "Eigen::GpuDevice>, int>(int)"},
    // Other
    {KernelClass::other,
     "void at::native::bitonicSortKVInPlace<-2, -1, 16, 16, float, long, at::native::GTOp<float, "
     "true>, unsigned int>(int)"},
    {KernelClass::other, "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)"},
    {KernelClass::other, "void vllm::moe::moe_align_block_size_kernel<int>(int const*)"},
    {KernelClass::other,
     "void regular_fft<1024u, (EPT)4, 32u, (padding_t)1, (twiddle_t)0>(kernel_arguments_t<unsigned "
     "int>)"},
    {KernelClass::other,
     "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u, (cub::BlockScanAlgorithm)0, "
     "true, float, int>(float*)"},
    {KernelClass::other, "my_kernel(float*)"},
    {KernelClass::other, "(more names than are kept)"},
};
