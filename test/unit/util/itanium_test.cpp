#include "util/demangle/itanium.hpp"

#include <cxxabi.h>
#include <fcntl.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <memory>
#include <string>

#include "util/elf/elf.hpp"
#include "util/system/procfs.hpp"

using namespace cudabpf;

namespace {

std::string own(const std::string& mangled) {
  return itanium::demangle(mangled).value_or("nothing");
}

std::string library_demangle(const std::string& mangled) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> full(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  return full ? full.get() : "nothing";
}

// "A<B<C> >" and "A<B<C>>" are the same; the library writes one or the other.
std::string without_gaps(std::string text) {
  for (std::size_t at; (at = text.find("> >")) != text.npos;) text.erase(at + 1, 1);
  return text;
}

}  // namespace

TEST_CASE("Names are demangled as the C++ library demangles them") {
  for (const char* mangled : {
           "_Z3foov",
           "_Z3fooi",
           "_ZL3foov",
           "_ZN2ns3fooEPKcRKiOf",
           "_ZNK2ns1A3getEv",
           "_ZNKR2ns1A3getEv",
           "_ZNO2ns1A3getEv",
           "_ZN2ns1AC2Ei",
           "_ZN2ns1AD0Ev",
           "_ZN2ns5valueE",
           "_ZNSt6vectorIiSaIiEE9push_backEOi",
           "_Z3fooSs",
           "_Z3fooRKSt6vectorISsSaISsEE",
           "_Z3fooIiEvT_",
           "_Z3fooIPKcET_S2_",
           "_Z3fooIJifPcEEvDpRKT_",
           "_Z3fooIJEEvDpT_",
           "_Z3fooIiJfdEEvT_DpT0_",
           "_Z3fooIRiEvOT_",
           "_Z3fooIOiEvRT_",
           "_Z3fooILi4ELm3ELb1ELin7ELc65ELN2ns4EnumE2EEvv",
           "_Z3fooPFivE",
           "_Z3fooPFiPKcfE",
           "_Z3fooPPFivE",
           "_Z3fooRA4_i",
           "_Z3fooPA4_A5_Ki",
           "_Z3fooIFbiEEvv",
           "_Z3fooM1AFivE",
           "_Z3fooM1AKFivE",
           "_Z3fooM1Ai",
           "_Z3fooPVKi",
           "_Z3fooPrKf",
           "_Z3fooDv4_f",
           "_Z3fooDn",
           "_ZN12_GLOBAL__N_13fooEv",
           "_ZZ3fooiENKUlfE_clEf",
           "_ZZ3fooiENKUlT_E0_clIiEEDaS_",
           "_ZZN1A3fooEvE5local",
           "_ZZN1A3fooEvE5local_0",
           "_ZZ3foovEs",
           "_ZN1A3fooEvENUt_C1Ev",
           "_ZN2nsltIiEEbRKNS_1AIT_EES5_",
           "_ZNK1AcvbEv",
           "_ZNK1AIfEcvSt6vectorIiEIcEEv",
           "_ZlsRSoi",
           "_Zli3_kme",
           "_ZN1AnwEm",
           "_ZN1A3fooB5cxx11Ev",
           "_Z3fooi.constprop.0",
           "_Z3fooi.constprop.0.cold",
           "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
           "11FillFunctorIfEESt5arrayIPcLm1EEEEvi"
           "T0_T1_",
           "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastINS0_"
           "11FillFunc"
           "torIfEEEEvRNS_18TensorIteratorBaseERKT_EUliE_EEviT1_",
           "_ZN7cutlass7Kernel2I66cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_32x6_tn_"
           "align8x"
           "xEEvNT_6ParamsE",
           "_Z3fooIZ3barIiEvT_EUlvE_EvS1_",
           // What was kept in one function's scope is encoded again in another's.
           "_ZN4llvm25ComputeMappedEditDistanceIcZNS_19ComputeEditDistanceIcEEjNS_8ArrayRefIT_EES4_"
           "bjEUlRKcE_EEjS4_S4_T0_bj",
           // PyTorch's randint().
           "_ZN2at6native60_GLOBAL__N__2b2da9da_27_DistributionRandomKernel_cu_f88cee4443"
           "distribution_elementwise_grid_stride_kernelIjLi4EZZZNS0_9templates4cuda21random_from_"
           "to_"
           "kernelIPNS_17CUDAGeneratorImplEEEvRNS_18TensorIteratorBaseEmlT_ENKUlvE_clEvENKUlvE2_"
           "clEvEUlP24curandStatePhilox4_32_10E0_ZNS1_27distribution_nullary_kernelIlj5uint4S7_SF_"
           "ZZZS5_IS7_EvS9_mlSA_ENKSB_clEvENKSC_clEvEUljE_EEvS9_T2_RKT3_T4_EUlijE_EEvlNS_"
           "15PhiloxCudaStateET1_SJ_",
           // PyTorch's randn(): an entity local to one template names one in another that is local
           // to a third.
           "_ZN2at6native54_GLOBAL__N__d8ceb000_21_DistributionNormal_cu_0c5b6e8543distribution_"
           "elementwise_grid_stride_kernelIfLi4EZNS0_9templates4cuda20normal_and_"
           "transformIN3c104HalfEf"
           "PNS_17CUDAGeneratorImplEZZZNS4_13normal_kernelIS9_EEvRKNS_10TensorBaseEddT_ENKUlvE_"
           "clEvENKU"
           "lvE1_clEvEUlfE_EEvRNS_18TensorIteratorBaseET1_T2_EUlP24curandStatePhilox4_32_10E0_ZNS1_"
           "27di"
           "stribution_nullary_kernelIS7_f6float4S9_SO_SH_EEvSJ_SL_RKT3_T4_EUlifE_EEvlNS_"
           "15PhiloxCudaSt"
           "ateESK_SL_",
       }) {
    CAPTURE(mangled);
    CHECK(without_gaps(own(mangled)) == without_gaps(library_demangle(mangled)));
  }
}

TEST_CASE("A conversion's type may name its class's template arguments") {
  CHECK(own("_ZNK1AIfEcvSt6vectorIT_EEv") == "A<float>::operator std::vector<float>() const");
}

TEST_CASE("What is no name, or more than the reader knows, gives nothing") {
  for (const char* mangled : {
           "",
           "_",
           "_Z",
           "_Z3fo",
           "_Z99foo",
           "_Z0v",
           "foo",
           "i",
           "_Z3foo ",
           "_Z3fooE",
           "_Z3fooiE",
           "_ZN",
           "_ZNE",
           "_ZN3foo",
           "_ZN3fooI",
           "_ZNIiEE",
           "_Z3fooS_",
           "_Z3fooiS5_",
           "_Z3fooT_",
           "_Z3fooIiEvT0_",
           "_Z3fooIJifEEvT_",
           "_Z3fooDpi",
           "_Z3fooILiEEvv",
           "_Z3fooILi4",
           "_Z3fooP",
           "_Z3fooF",
           "_Z3fooFi",
           "_Z3fooA",
           "_Z3fooA3",
           "_Z3fooM",
           "_ZZ3foo",
           "_ZZ3foovE",
           "_Z3foo.",
           "_Z3fooi.",
           "_Z3fooDv4",
           "_ZTV3foo",
           "_ZGV3foo",
           "_ZN1AIXadL_Z3barvEEE3fooEv",
           "_Z3fooS99999999999999999999_",
           "_Z99999999999999999999999foo",
           "_ZC1v",
           "_ZN1AC",
           "_ZN1ACx",
           "_ZNC1Ev",
           // A conversion's template arguments come after its type, which uses them.
           "_ZN1AIfEcvSt4pairIT_iEIiEEv",
       }) {
    CAPTURE(mangled);
    CHECK_FALSE(itanium::demangle(mangled));
  }
}

TEST_CASE("Names of more than 1024 characters are demangled") {
  std::string mangled = "_ZN7cutlass13device_kernelIN4cute5tupleIJ";
  std::string type = "cute::tuple<";
  for (int i = 0; i < 150; i++) {
    // S3_ is cute::C, once the first has named it.
    mangled += (i == 0 ? "NS1_1CILi" : "NS3_ILi") + std::to_string(i) + "EEE";
    type += (i == 0 ? "" : ", ") + ("cute::C<" + std::to_string(i)) + ">";
  }
  mangled += "EEEEEvT_";
  type += " >";
  REQUIRE(mangled.size() > 1024);
  CHECK(library_demangle(mangled) == "nothing");
  CHECK(own(mangled) == "void cutlass::device_kernel<" + type + " >(" + type + ")");
}

TEST_CASE("A name made to grow ends with nothing, and soon") {
  SECTION("each type twice the one before") {
    std::string mangled = "_Z1f1AIiE";
    for (int i = 1; i < 35; i++) {
      char digit = static_cast<char>(i < 11 ? '0' + i - 1 : 'A' + i - 11);
      std::string before = std::string("S") + digit + '_';
      mangled += "S_I" + before + before + "E";
    }
    CHECK_FALSE(itanium::demangle(mangled));
  }
  SECTION("packs in packs") {
    std::string mangled = "_Z1fIJ" + std::string(1000, 'i') + "EEv";
    for (int i = 0; i < 50; i++) mangled += "DpSt5tupleIJ";
    mangled += "T_" + std::string(50, 'E');
    CHECK_FALSE(itanium::demangle(mangled));
  }
  SECTION("depth") {
    for (const char* opening :
         {"P", "F", "A1_", "N1AI", "1AI", "1AIJ", "Z1f", "M", "Dp", "K", "UlP"}) {
      CAPTURE(opening);
      std::string mangled = "_Z1f";
      while (mangled.size() < 16'000) mangled += opening;
      CHECK_FALSE(itanium::demangle(mangled));
      CHECK_FALSE(itanium::demangle(mangled + std::string(5000, 'E')));
    }
  }
  SECTION("many references to one long part") {
    std::string mangled = "_Z1f" + std::to_string(6000) + std::string(6000, 'A');
    for (int i = 0; i < 3000; i++) mangled += "S_";
    CHECK_FALSE(itanium::demangle(mangled));
  }
}

TEST_CASE("All functions of the C++ library have the names that it gives them itself") {
  std::string path;
  for (const Mapping& mapping : Procfs().maps(getpid())) {
    if (mapping.path.find("/libstdc++.so") != std::string::npos) path = mapping.path;
  }
  if (path.empty()) SKIP("this program is linked statically: no libstdc++.so is mapped");
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Result<elf::Image> library = elf::Image::open(fd);
  REQUIRE(library);
  std::size_t read = 0;
  for (const elf::Function& function : library->functions("_Z")) {
    const std::string& name = function.name;
    std::optional<std::string> full = itanium::demangle(name);
    if (!full) continue;
    read++;
    if (without_gaps(*full) != without_gaps(library_demangle(name))) {
      CAPTURE(name);
      CHECK(*full == library_demangle(name));
    }
  }
  CHECK(read > 3000);
}
