# cudabpf-static: the same objects, linked into one file that can be copied to any machine. It is
# not part of `all`: cmake --build build --target cudabpf-static
set(ONLY_SHARED simdjson Zydis) # in most distributions
set(MADE_STATIC "")
foreach(name ${ONLY_SHARED})
  find_library(${name}_STATIC lib${name}.a)
  if(NOT ${name}_STATIC)
    set(${name}_STATIC ${CMAKE_BINARY_DIR}/static/lib${name}.a)
    list(APPEND MADE_STATIC ${${name}_STATIC})
  endif()
  list(APPEND STATIC_LIBRARIES ${${name}_STATIC})
endforeach()
# Distributions have a static one, which wants all of GnuTLS.
list(APPEND MADE_STATIC ${CMAKE_BINARY_DIR}/static/libmicrohttpd.a)
list(APPEND STATIC_LIBRARIES ${CMAKE_BINARY_DIR}/static/libmicrohttpd.a)
add_custom_command(
  OUTPUT ${MADE_STATIC}
  COMMAND ${CMAKE_SOURCE_DIR}/scripts/static-libraries ${CMAKE_BINARY_DIR}/static
  COMMENT "Building static libraries, which distributions have only as shared ones, or with too much")
add_custom_target(static_libraries DEPENDS ${MADE_STATIC})

set(STATIC_PARTS ${CMAKE_SOURCE_DIR}/cmake) # what the distributions' static libraries lack
add_executable(cudabpf-static EXCLUDE_FROM_ALL
               $<TARGET_OBJECTS:cudabpf> $<TARGET_OBJECTS:cudabpf_bpf>
               $<FILTER:$<FILTER:$<TARGET_OBJECTS:cudabpf_core>,EXCLUDE,/nvml_library\\.cpp>,EXCLUDE,/cuda_library\\.cpp>
               ${STATIC_PARTS}/fmt_static.cpp ${STATIC_PARTS}/libelf_static.c
               ${STATIC_PARTS}/nvml_static.cpp ${STATIC_PARTS}/cuda_static.cpp)
add_dependencies(cudabpf-static static_libraries)
set_source_files_properties(${STATIC_PARTS}/fmt_static.cpp
                            PROPERTIES COMPILE_OPTIONS -fkeep-inline-functions)
target_include_directories(cudabpf-static PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
target_link_options(cudabpf-static PRIVATE -static -s)
target_link_libraries(cudabpf-static PRIVATE fmt::fmt-header-only ${STATIC_LIBRARIES}
                      ${LIBBPF_STATIC_LIBRARIES} ${ZSTD_STATIC_LIBRARIES} ${ZLIB_STATIC_LIBRARIES}
                      Threads::Threads)
