# cudabpf-static: the same objects, linked into one file that can be copied to any machine. It is
# not part of `all`: cmake --build build --target cudabpf-static
find_library(SIMDJSON_STATIC libsimdjson.a)
if(NOT SIMDJSON_STATIC)
  set(SIMDJSON_STATIC ${CMAKE_BINARY_DIR}/static/libsimdjson.a)
  add_custom_command(
    OUTPUT ${SIMDJSON_STATIC}
    COMMAND ${CMAKE_SOURCE_DIR}/scripts/static-simdjson ${CMAKE_BINARY_DIR}/static
    COMMENT "Building a static libsimdjson, which distributions have only as a shared library")
endif()
add_custom_target(static_simdjson DEPENDS ${SIMDJSON_STATIC})

set(STATIC_PARTS ${CMAKE_SOURCE_DIR}/cmake) # what the distributions' static libraries lack
add_executable(cudabpf-static EXCLUDE_FROM_ALL
               $<TARGET_OBJECTS:cudabpf> $<TARGET_OBJECTS:cudabpf_bpf>
               $<TARGET_OBJECTS:cudabpf_core>
               ${STATIC_PARTS}/fmt_static.cpp ${STATIC_PARTS}/libelf_static.c)
add_dependencies(cudabpf-static static_simdjson)
set_source_files_properties(${STATIC_PARTS}/fmt_static.cpp
                            PROPERTIES COMPILE_OPTIONS -fkeep-inline-functions)
target_link_options(cudabpf-static PRIVATE -static -s)
target_link_libraries(cudabpf-static PRIVATE fmt::fmt-header-only ${SIMDJSON_STATIC}
                      ${LIBBPF_STATIC_LIBRARIES} ${ZSTD_STATIC_LIBRARIES} ${ZLIB_STATIC_LIBRARIES}
                      Threads::Threads)
