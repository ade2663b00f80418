# add_live_tests(KIND): adds every test in the folder's THEME_KIND.py files, as KIND_THEME_NAME;
# live tests are in THEME_test.py. They need root and take turns, because some stress the machine or
# look at all of it.
function(add_live_tests kind)
  set(ending ${kind})
  if(kind STREQUAL live)
    set(ending test)
  endif()
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_${ending}.py)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  foreach(file ${files})
    get_filename_component(theme ${file} NAME_WE)
    string(REPLACE _${ending} "" theme ${theme})
    file(STRINGS ${file} tests REGEX "^    def test_")
    foreach(line ${tests})
      string(REGEX REPLACE "^    def test_([a-z0-9_]+).*" "\\1" name "${line}")
      add_test(NAME ${kind}_${theme}_${name} COMMAND ${Python3_EXECUTABLE} -B ${file} Live.test_${name})
      set_tests_properties(${kind}_${theme}_${name} PROPERTIES LABELS live TIMEOUT 120 RESOURCE_LOCK live
                           COST 950 SKIP_RETURN_CODE 77 ENVIRONMENT "CUDABPF_BUILD=${CMAKE_BINARY_DIR};BPFTOOL=${BPFTOOL}")
    endforeach()
  endforeach()
endfunction()
