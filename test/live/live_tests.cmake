# The tests of a folder, one ctest entry a theme: harness.py runs the tests of a theme's file, and
# reports each by its name. Themes take turns: some tests look at the whole machine, and even one that
# traces a single process by eBPF probes the libcuda of each process that there is, also of one that
# records from inside. Two that load no BPF programs may run at once, one in each of the LANES.

# add_theme(NAME FILE LABEL ENVIRONMENT...)
function(add_theme name file label)
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} -B ${file})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 1200 RESOURCE_LOCK "${LANES}" COST 2000 SKIP_RETURN_CODE 77
    ENVIRONMENT "CUDABPF_BUILD=${CMAKE_BINARY_DIR};BPFTOOL=${BPFTOOL};CUDABPF_RESULTS=${CUDABPF_RESULTS}/${name}.xml;${ARGN}")
endfunction()

# take_one_lane(NAME): it looks at no program but its own, so another such test may run beside it.
function(take_one_lane name)
  get_property(taken GLOBAL PROPERTY CUDABPF_LAST_LANE) # by the last one
  list(REMOVE_ITEM LANES "${taken}")
  list(GET LANES 0 lane)
  set_property(GLOBAL PROPERTY CUDABPF_LAST_LANE ${lane})
  set_tests_properties(${name} PROPERTIES RESOURCE_LOCK ${lane})
endfunction()

# add_live_tests(KIND): the folder's THEME_KIND.py files, as KIND_THEME; live tests are in THEME_test.py.
# They need root.
function(add_live_tests kind)
  set(ending ${kind})
  if(kind STREQUAL live)
    set(ending test)
  endif()
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_${ending}.py)
  list(FILTER files EXCLUDE REGEX "/inside_[a-z_]*test\\.py$")
  foreach(file ${files})
    get_filename_component(theme ${file} NAME_WE)
    string(REPLACE _${ending} "" theme ${theme})
    add_theme(${kind}_${theme} ${file} live)
  endforeach()
endfunction()

# add_inside_tests(): the themes that inside_tests.txt lists once more, by way of the library inside the
# traced process, as inside_THEME. They do not need root; those that it calls `merged` do, and are
# merged_THEME. Only those that it calls nothing load no BPF programs.
function(add_inside_tests)
  set(list ${CMAKE_CURRENT_SOURCE_DIR}/inside_tests.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(STRINGS ${list} lines REGEX "^[a-z_ ]+:")
  foreach(line ${lines})
    string(REGEX MATCH "^(merged |ebpf )?([a-z_]+):" matched "${line}")
    set(kind "${CMAKE_MATCH_1}")
    set(theme ${CMAKE_MATCH_2})
    set(way inside)
    if(kind STREQUAL "merged ")
      set(way merged)
    endif()
    string(REGEX REPLACE "^inside_inside" inside name ${way}_${theme})
    add_theme(${name} ${CMAKE_CURRENT_SOURCE_DIR}/${theme}_test.py inside CUDABPF_WAY=${way})
    if(NOT kind)
      take_one_lane(${name})
    endif()
  endforeach()
endfunction()
