# libcudabpf-inside.so, which libcuda loads into traced processes. It stands alone: no C++, nothing of
# cudabpf_core, and no vector registers, in which the traced calls' arguments may be.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  return()
endif()
enable_language(ASM)
add_library(cudabpf-inside MODULE
            inside/call.S inside/driver.c inside/memory.c inside/patch.c inside/process.c
            inside/reader.c inside/record.c inside/ring.c inside/system.c)
target_include_directories(cudabpf-inside PRIVATE inside include)
target_compile_definitions(cudabpf-inside PRIVATE _GNU_SOURCE)
target_compile_options(
  cudabpf-inside
  PRIVATE $<$<COMPILE_LANGUAGE:C>:${STRICTER} -O2 -mgeneral-regs-only -fvisibility=hidden
          -fno-stack-protector -fno-strict-aliasing -ffreestanding>)
# Once loaded, it stays: libcuda's functions jump into it. Nothing is bound on a call's path.
target_link_options(cudabpf-inside PRIVATE -Wl,-z,now,-z,nodelete,-z,defs $<$<CONFIG:Release>:-s>)
target_link_libraries(cudabpf-inside PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(cudabpf-inside PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                                                C_STANDARD 11 POSITION_INDEPENDENT_CODE ON)
include(GNUInstallDirs)
install(TARGETS cudabpf-inside LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/cudabpf)
