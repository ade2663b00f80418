# The BPF programs, and cudabpf, which loads them.
find_program(CLANG NAMES clang clang-14 clang-15 clang-16 clang-17 clang-18 clang-19 REQUIRED)
find_program(LLVM_STRIP NAMES llvm-strip llvm-strip-14 llvm-strip-18 llvm-strip-19 REQUIRED)
# Ubuntu keeps bpftool in a folder named after the kernel.
file(GLOB BPFTOOL_FOLDERS /usr/lib/linux-tools/* /usr/lib/linux-tools-*)
find_program(BPFTOOL bpftool PATHS /usr/sbin /sbin ${BPFTOOL_FOLDERS} REQUIRED)
find_package(CLI11 REQUIRED)
pkg_check_modules(LIBBPF REQUIRED IMPORTED_TARGET libbpf>=1.3)

# bpf_object(OBJECT ARCH CLANG): compiles bpf/cudabpf.bpf.c for one architecture
file(GLOB BPF_HEADERS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bpf/*.h)
function(bpf_object object arch clang)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${clang} -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror
            -D__TARGET_ARCH_${arch} -I${CMAKE_SOURCE_DIR}/include -I${CMAKE_SOURCE_DIR}/bpf
            -c ${CMAKE_SOURCE_DIR}/bpf/cudabpf.bpf.c -o ${object}
    COMMAND ${LLVM_STRIP} -g ${object}
    DEPENDS ${CMAKE_SOURCE_DIR}/bpf/cudabpf.bpf.c ${BPF_HEADERS}
            ${CMAKE_SOURCE_DIR}/include/cudabpf/abi.h
    COMMENT "BPF for ${arch}, by ${clang}")
endfunction()
bpf_object(${GENERATED}/cudabpf.x86.o x86 ${CLANG})
bpf_object(${GENERATED}/cudabpf.arm64.o arm64 ${CLANG})
add_custom_target(bpf_objects ALL DEPENDS ${GENERATED}/cudabpf.x86.o ${GENERATED}/cudabpf.arm64.o)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(BPF_ARCH arm64)
else()
  set(BPF_ARCH x86)
endif()
add_custom_command(
  OUTPUT ${GENERATED}/cudabpf.skel.h
  COMMAND ${BPFTOOL} gen skeleton ${GENERATED}/cudabpf.${BPF_ARCH}.o name cudabpf_bpf
          > ${GENERATED}/cudabpf.skel.h
  DEPENDS ${GENERATED}/cudabpf.${BPF_ARCH}.o)
add_custom_target(bpf_skeleton DEPENDS ${GENERATED}/cudabpf.skel.h)

file(GLOB BPF_SOURCES CONFIGURE_DEPENDS src/collect/bpf/*.cpp)
add_library(cudabpf_bpf OBJECT ${BPF_SOURCES})
add_dependencies(cudabpf_bpf bpf_skeleton)
# A program for tests has another one in its place.
set_source_files_properties(src/collect/bpf/nvidia_devices.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_link_libraries(cudabpf_bpf PUBLIC cudabpf_core PkgConfig::LIBBPF)

# Each file that includes CLI11 takes five seconds more to compile, so only these do.
file(GLOB_RECURSE CLI_SOURCES CONFIGURE_DEPENDS src/cli/*.cpp)
list(FILTER CLI_SOURCES EXCLUDE REGEX "/src/cli/request/") # cudabpf_core has these
add_executable(cudabpf src/main.cpp ${CLI_SOURCES})
target_link_libraries(cudabpf PRIVATE cudabpf_bpf CLI11::CLI11)
target_precompile_headers(cudabpf PRIVATE <CLI/CLI.hpp> <nlohmann/json.hpp>)

foreach(target cudabpf_bpf cudabpf)
  target_compile_options(${target} PRIVATE ${STRICTER} ${OPTIMIZED})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${CUDABPF_AT_ONCE})
endforeach()
target_link_options(cudabpf PRIVATE $<$<CONFIG:Release>:-s>) # symbols are four fifths of it
set_target_properties(cudabpf PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
