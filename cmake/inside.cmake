# libcudabpf-inside.so, which libcuda loads into traced processes. It stands alone: no C++, nothing of
# cudabpf_core, and no vector registers, in which the traced calls' arguments may be.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  return()
endif()
enable_language(ASM)
# What the library is made of, which tests link, too (test/inside).
function(add_inside_objects target)
  set(sources call.S copies.c cupti.c descriptors.c driver.c gpu.c gpu_buffers.c gpu_operations.c gpu_windows.c graphs.c holder.c libraries.c
              memory.c orders.c parameters.c patch.c process.c python.c python_text.c range_names.c ranges.c reader.c record.c ring.c
              stacks.c system.c taping.c)
  list(TRANSFORM sources PREPEND ${CMAKE_SOURCE_DIR}/inside/)
  add_library(${target} OBJECT ${sources})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/inside ${CMAKE_SOURCE_DIR}/include)
  target_compile_definitions(${target} PUBLIC _GNU_SOURCE)
  target_compile_options(
    ${target}
    PRIVATE $<$<COMPILE_LANGUAGE:C>:${STRICTER} -O2 -mgeneral-regs-only -fvisibility=hidden
            -fno-stack-protector -fno-strict-aliasing -ffreestanding>)
  set_target_properties(${target} PROPERTIES C_STANDARD 11 POSITION_INDEPENDENT_CODE ON)
endfunction()
if(CUDABPF_CORE_ONLY)
  return()
endif()
add_inside_objects(inside_objects)
add_library(cudabpf-inside MODULE $<TARGET_OBJECTS:inside_objects>)
# Once loaded, it stays: libcuda's functions jump into it. Nothing is bound on a call's path.
target_link_options(cudabpf-inside PRIVATE -Wl,-z,now,-z,nodelete,-z,defs $<$<CONFIG:Release>:-s>)
# Before glibc 2.34 some of libc's functions were in these, which still exist.
target_link_options(cudabpf-inside PRIVATE
                    LINKER:--push-state,--no-as-needed,-l:libdl.so.2,-l:libpthread.so.0,--pop-state)
set_target_properties(cudabpf-inside PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
                                                LINKER_LANGUAGE C)
