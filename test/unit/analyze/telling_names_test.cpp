#include "analyze/telling_names.hpp"

#include <catch2/catch_test_macros.hpp>

using cudabpf::analyze::telling_names;
using KernelTexts = std::vector<std::string>;

TEST_CASE("A name that no other kernel has needs no template arguments") {
  CHECK(telling_names({"void at::native::foo<4, float>(int)", "bar(float*)", "_Z3bazi"}) ==
        KernelTexts{"foo", "bar", "baz"});
  CHECK(telling_names({}).empty());
}

TEST_CASE("Kernels of one function are named by what they differ in") {
  CHECK(telling_names({"void n::each<4, n::Add<float>, std::array<char*, 3ul> >(int)",
                       "void n::each<8, n::Mul<float>, std::array<char*, 2ul> >(int)",
                       "void n::other<4>(int)"}) == KernelTexts{"each<Add>", "each<Mul>", "other"});
  SECTION("by numbers, where there is nothing else") {
    CHECK(telling_names({"void gemm<float, 128, 8>(P)", "void gemm<float, 128, 6>(P)"}) ==
          KernelTexts{"gemm<8>", "gemm<6>"});
  }
  SECTION("by more than one, those that need it") {
    CHECK(telling_names({"void k<n::A, 1>(P)", "void k<n::A, 2>(P)", "void k<n::B, 1>(P)"}) ==
          KernelTexts{"k<A, 1>", "k<A, 2>", "k<B>"});
  }
  SECTION("by arguments of arguments") {
    CHECK(telling_names({"void reduce<512, n::Op<float, n::Max<float> > >(int)",
                         "void reduce<512, n::Op<float, n::Sum<float> > >(int)"}) ==
          KernelTexts{"reduce<Max>", "reduce<Sum>"});
  }
  SECTION("by the function that a lambda is in") {
    CHECK(
        telling_names(
            {"void each<n::clamp(n::T&)::{lambda()#1}::operator()() const::{lambda(float)#1}>(int)",
             "void each<n::Add<float> >(int)"}) == KernelTexts{"each<clamp>", "each<Add>"});
  }
}

TEST_CASE("A function that is called kernel is named by where it is") {
  CHECK(telling_names({"std::enable_if<!(false), void>::type internal::gemvx::kernel<int>(P<int>)",
                       "kernel(int)"}) == KernelTexts{"gemvx::kernel", "kernel"});
}

TEST_CASE("Texts that are no signatures are shown as they are") {
  CHECK(telling_names({"a<", "a<", ">>((", ""}) == KernelTexts{"a<", "a<", ">>((", ""});
}

TEST_CASE("Names of thousands of arguments are shortened to the first of them") {
  std::string same, other;
  for (int i = 0; i < 2000; i++) same += "1, ";
  other = same;
  other[0] = '2';
  auto names = [](const std::string& arguments) { return "f<" + arguments + "3>(int)"; };
  std::string a = names(same), b = names(other), c = names(same + "9, ");
  CHECK(telling_names({a, b}) == std::vector<std::string>{"f<1>", "f<2>"});
  CHECK(telling_names({a, c}) == std::vector<std::string>{"f", "f"});
}
