#include "util/demangle/demangle.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

TEST_CASE("Mangled names are demangled, and others left as they are") {
  CHECK(demangle("_Z3fooi") == "foo(int)");
  CHECK(demangle("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPc"
                 "Lm1EEEEviT0_T1_") ==
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
        "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)");
  // As nvcc names what is in an anonymous namespace.
  CHECK(demangle("_ZN41_GLOBAL__N__5e9ae1b1_9_kernel_cu_1b2c3d4e5scaleEPf") ==
        "(anonymous namespace)::scale(float*)");
  CHECK(demangle("_Z3fooi.constprop.0") == "foo(int) [clone .constprop.0]");

  CHECK(demangle("").empty());
  CHECK(demangle("i") == "i");  // the type int, for the demangler
  CHECK(demangle("saxpy") == "saxpy");
  CHECK(demangle("_Z") == "_Z");
  CHECK(demangle("_Zfoo") == "_Zfoo");
  CHECK(demangle("triton_poi_fused_add_0") == "triton_poi_fused_add_0");
}

TEST_CASE(
    "A mangled name of absurd length, or that would grow without bound, comes back as it is") {
  auto mangled = [](std::size_t length) {
    return "_Z" + std::to_string(length) + std::string(length, 'k') + "v";
  };
  bool read = demangle(mangled(16'000)) == std::string(16'000, 'k') + "()";
  CHECK(read);
  std::string absurd = mangled(20'000);
  bool unchanged = demangle(absurd) == absurd;
  CHECK(unchanged);

  // Each type holds the one before twice: 2^34 of the first.
  std::string growing = "_Z1f1AIiE";
  for (int i = 1; i < 35; i++) {
    char digit = static_cast<char>(i < 11 ? '0' + i - 1 : 'A' + i - 11);
    growing += std::string("S_IS") + digit + "_S" + digit + "_E";
  }
  CHECK(demangle(growing) == growing);
  CHECK(short_name(growing) == "f");
  // Names that only the C++ library's demangler reads have the same bound.
  CHECK(demangle("_ZTV1AIiE") == "vtable for A<int>");
  std::string table = "_ZTV" + growing.substr(4);
  CHECK(demangle(table) == table);
  // Packs in packs: each expansion repeats what is in it a hundred times.
  auto packs = [](std::size_t depth) {
    std::string name = "_Z1fIJ" + std::string(100, 'i') + "EEv";
    for (std::size_t i = 0; i < depth; i++) name += "Dp1AIJT_";
    return name + std::string(2 * depth, 'E');
  };
  CHECK(demangle(packs(1)).starts_with("void f<int, int, "));
  for (std::size_t depth : {2, 3}) {
    unchanged = demangle(packs(depth)) == packs(depth);
    CHECK(unchanged);
  }
}

TEST_CASE("A table shows the function's own name") {
  struct Case {
    const char* full;
    const char* name;
  };
  const Case cases[] = {
      // Plain functions and kernels.
      {"foo(int)", "foo"},
      {"foo()", "foo"},
      {"void foo<int>(int)", "foo"},
      {"ns::foo(int)", "foo"},
      {"ns::foo", "foo"},
      {"::foo()", "foo"},
      {"foo<int>", "foo"},
      {"void foo<int> (T1 *)", "foo"},
      {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
       "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
       "vectorized_elementwise_kernel"},
      {"void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64>, (bool)1>(Params)",
       "flash_fwd_splitkv_kernel"},

      // Names that are not signatures stay whole.
      {"", ""},
      {"saxpy", "saxpy"},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_execute",
       "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_execute"},
      {"ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_stages_64x5_tn",
       "ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_stages_64x5_tn"},
      {"triton_red_fused__softmax_3", "triton_red_fused__softmax_3"},
      {"_kernel_0d1d2d", "_kernel_0d1d2d"},
      {"foo.constprop.0", "foo.constprop.0"},
      {"[CUDA memcpy HtoD]", "[CUDA memcpy HtoD]"},

      // CUTLASS hides the kernel's real name in its one argument.
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_32x6_tn_align8>("
       "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_32x6_tn_align8::Params)",
       "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_32x6_tn_align8"},
      {"void cutlass::Kernel<cutlass_75_wmma_gemm>(cutlass_75_wmma_gemm::Params)",
       "cutlass_75_wmma_gemm"},
      {"void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwd<A> > >(B)",
       "device_kernel"},
      {"void cutlass::Kernel<cutlass::gemm::Gemm<4> >(int)", "Kernel"},
      {"void mine::Kernel2<plain>(int)", "Kernel2"},

      // Anonymous namespaces.
      {"(anonymous namespace)::foo(int)", "foo"},
      {"void (anonymous namespace)::foo<bar>(baz)", "foo"},
      {"void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, (anonymous "
       "namespace)::Op<float> >(float*, float const*, int)",
       "cunn_SoftMaxForward"},

      // Operators, with the class they belong to.
      {"Scale::operator()(int) const", "Scale::operator()"},
      {"void ns::Scale<4>::operator()<float>(float) const", "Scale::operator()"},
      {"bool ns::operator< <int>(ns::A<int> const&, ns::A<int> const&)", "ns::operator<"},
      {"operator<<(std::ostream&, int)", "operator<<"},
      {"ns::A& ns::operator<< <int>(ns::A&, int)", "ns::operator<<"},
      {"ns::A::operator<=>(ns::A const&) const", "A::operator<=>"},
      {"ns::A::operator->() const", "A::operator->"},
      {"ns::A::operator->*(int)", "A::operator->*"},
      {"ns::A::operator-(ns::A)", "A::operator-"},
      {"ns::A ns::operator-<int>(ns::A)", "ns::operator-"},
      {"ns::A::operator,(int)", "A::operator,"},
      {"ns::A::operator[](unsigned long)", "A::operator[]"},
      {"A::operator>>=(int)", "A::operator>>="},
      {"A::operator bool() const", "A::operator bool"},
      {"A::operator std::vector<int, std::allocator<int> >()", "A::operator std::vector"},
      {"operator new(unsigned long)", "operator new"},
      {"operator new[](unsigned long)", "operator new[]"},
      {"operator delete(void*)", "operator delete"},
      {"operator\"\" _km(long double)", "operator\"\" _km"},
      {"operators(int)", "operators"},
      {"ns::operator_table(int)", "operator_table"},

      // Constructors and destructors.
      {"ns::A<int>::A(int)", "A"},
      {"ns::A<int>::~A()", "~A"},

      // Lambdas, with the function that they are in.
      {"foo(int)::{lambda(float)#1}::operator()(float) const", "foo::{lambda#1}"},
      {"foo(int)::{lambda(float)#1}::_FUN(float)", "foo::{lambda#1}"},
      {"void foo<4>(int)::{lambda(auto:1)#2}::operator()<int>(int) const", "foo::{lambda#2}"},
      {"at::native::add_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() "
       "const::{lambda()#4}::operator()() const::{lambda(float)#1}::operator()(float) const",
       "add_kernel::{lambda#1}::{lambda#4}::{lambda#1}"},
      {"{lambda(int)#1}::operator()(int) const", "{lambda#1}"},
      {"foo(int)::{unnamed type#1}::go()", "go"},
      {"foo(int)::'lambda'(float)::operator()(float) const", "foo::'lambda'"},
      {"void kernel<foo()::{lambda(int)#1}>(int, foo()::{lambda(int)#1})", "kernel"},

      // What is local to a function.
      {"foo(int)::Local::go(char)", "go"},
      {"ns::A::foo(int) const::Local::go(char) const", "go"},
      {"ns::A::foo(int) const &", "foo"},
      {"void ns::A::foo(int) volatile &&", "foo"},

      // Return types of all kinds.
      {"unsigned long foo<int>(int)", "foo"},
      {"int const& ns::foo<int>(int)", "foo"},
      {"std::vector<int, std::allocator<int> >* ns::foo<int>()", "foo"},
      {"decltype ((x)+(y)) add<int>(int, int)", "add"},
      {"decltype(auto) foo<int>(int)", "foo"},
      {"std::enable_if<((4)>(3)), void>::type foo<4>(int)", "foo"},
      {"std::enable_if<((sizeof (T))<(8)), ns::X<int> >::type ns::foo<4>(int)", "foo"},
      {"decltype (((x)->go)(y)) ns::foo<A, B>(A, B)", "foo"},
      {"void (*foo(int))(char)", "foo"},
      {"void (*ns::foo<int>(int))(char)", "foo"},
      {"void (&ns::foo<int>(int))(char)", "foo"},

      // Suffixes.
      {"foo(int) [clone .constprop.0]", "foo.constprop.0"},
      {"ns::foo(int) const [clone .isra.0] [clone .part.1]", "foo.isra.0.part.1"},
      {"foo[abi:cxx11](int)", "foo"},

      // Brackets that do not close: better all of it than a wrong part.
      {"foo<int", "foo<int"},
      {"foo(int", "foo(int"},
      {"ns::", "ns"},
      {"(", "("},
      {"<", "<"},
      {"::", "::"},
      {")", ")"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.full);
    CHECK(short_name(c.full) == c.name);
  }
}

TEST_CASE("Demangling and shortening go together") {
  CHECK(short_name(demangle("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEE"
                            "St5arrayIPcLm1EEEEviT0_T1_")) == "vectorized_elementwise_kernel");
  CHECK(short_name(demangle("_ZZ3fooiENKUlfE_clEf")) == "foo::{lambda#1}");
  CHECK(short_name(demangle("_ZN2nsltIiEEbRKNS_1AIT_EES5_")) == "ns::operator<");
  CHECK(short_name(demangle("_ZNK1AcvbEv")) == "A::operator bool");
  CHECK(short_name(demangle("_Z3fooIiEDTplfp_fp0_ET_S1_")) == "foo");

  // Still mangled.
  CHECK(short_name("_Z3fooi") == "foo");
  CHECK(short_name("_ZL3fooi") == "foo");
  CHECK(short_name("_ZN7cutlass13device_kernelIN5flash11enable_sm90E") == "device_kernel");
  CHECK(short_name("_ZNKSt6vectorIiSaIiEE4sizeEv") == "vector");
  CHECK(short_name("_ZN2nsL3fooEi") == "foo");
  CHECK(short_name("_Z") == "_Z");
  CHECK(short_name("_ZN") == "_ZN");
  CHECK(short_name("_ZTV3foo") == "_ZTV3foo");
  CHECK(short_name("_Z99foo") == "_Z99foo");
  CHECK(short_name("_Z99999999999999999999foo") == "_Z99999999999999999999foo");
}

TEST_CASE("Nesting without end is read in linear time") {
  std::string deep;
  for (int i = 0; i < 200'000; i++) deep += "(*";
  CHECK(short_name(deep) == deep);
  std::string closed = deep + "f" + std::string(200'000, ')');
  CHECK_FALSE(short_name(closed).empty());
  std::string angles = "f" + std::string(200'000, '<');
  CHECK(short_name(angles) == angles);
}
