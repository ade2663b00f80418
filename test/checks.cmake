# Checks beyond the code's own tests: format, lint, the scripts, the other builds. All are ctest
# tests, so that one summary counts them. Exit status 77 means skipped, with the reason printed.

# What keeps CPUs busy for long yields to the live tests, which run at the same time.
set(YIELDS "^(check_tidy|oldest|static_binary_build|data_races_build|sanitizers_.*)$")

# add_check(NAME LABEL TIMEOUT COMMAND...): beside others, a check that takes seconds may take minutes;
# only one that hangs reaches its timeout.
function(add_check name label timeout)
  set(priority "")
  if(name MATCHES "${YIELDS}")
    set(priority nice -n 10)
  endif()
  add_test(NAME ${name} COMMAND ${priority} ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
endfunction()

include(ProcessorCount)
ProcessorCount(CPUS)

add_check(check_format check 300 ${CMAKE_SOURCE_DIR}/scripts/check-format)
add_check(check_map check 300 ${CMAKE_SOURCE_DIR}/scripts/check-map)
add_check(check_map_itself check 300 ${CMAKE_CURRENT_SOURCE_DIR}/scripts/check-map-test.sh)
add_check(check_tidy_itself check 300 ${CMAKE_CURRENT_SOURCE_DIR}/scripts/check-tidy-test.sh)
# Both that need it find out themselves why it is not available, and run it where there is no ctest.
add_check(web_modules check 600 ${CMAKE_SOURCE_DIR}/scripts/node-modules web)
set_tests_properties(web_modules PROPERTIES FIXTURES_SETUP web_modules)
add_check(check_web check 600 ${CMAKE_SOURCE_DIR}/scripts/check-web)
set_tests_properties(check_web PROPERTIES FIXTURES_REQUIRED web_modules)
add_check(check_shell check 300 ${CMAKE_SOURCE_DIR}/scripts/check-shell)
add_check(check_tidy check 1800 ${CMAKE_SOURCE_DIR}/scripts/check-tidy ${CMAKE_BINARY_DIR})
add_check(apt_source check 300 ${CMAKE_CURRENT_SOURCE_DIR}/scripts/apt-source-test.sh)
add_check(check_docs check 300 ${CMAKE_SOURCE_DIR}/scripts/check-docs $<TARGET_FILE:cudabpf>)
add_check(gallery check 300 ${CMAKE_SOURCE_DIR}/scripts/draw-gallery --check $<TARGET_FILE:cudabpf>)
add_check(check_docs_itself check 600 ${CMAKE_CURRENT_SOURCE_DIR}/scripts/check-docs-test.sh
          $<TARGET_FILE:cudabpf>)
set_tests_properties(check_docs check_docs_itself PROPERTIES ${TAKES_TURNS}) # examples call the simulated driver
add_check(completion check 600 ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/scripts/completion.py
          $<TARGET_FILE:cudabpf>)
file(GLOB RECORDED ${CMAKE_SOURCE_DIR}/traces/*.zst)
add_check(questions check 300 ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/scripts/questions.py
          $<TARGET_FILE:cudabpf> ${CMAKE_CURRENT_SOURCE_DIR}/golden/trace.jsonl ${RECORDED})
add_check(reading check 300 ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/scripts/reading.py
          $<TARGET_FILE:cudabpf>)
add_check(reading_ranges check 300 ${Python3_EXECUTABLE} -B
          ${CMAKE_CURRENT_SOURCE_DIR}/scripts/reading_ranges.py $<TARGET_FILE:cudabpf>)
add_check(terminal check 600 ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/scripts/terminal.py
          $<TARGET_FILE:cudabpf>)
add_check(answers check 300 ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/golden/answers.py
          $<TARGET_FILE:cudabpf>)
add_check(visualize_pipeline check 300
          ${CMAKE_CURRENT_SOURCE_DIR}/scripts/visualize-pipeline-test.sh $<TARGET_FILE:cudabpf>)
add_check(run_trace check 300 ${CMAKE_CURRENT_SOURCE_DIR}/scripts/run-trace-test.sh)
add_check(installed check 300 ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/scripts/installed.py
          ${CMAKE_BINARY_DIR})
add_check(package package 300 ${CMAKE_SOURCE_DIR}/scripts/check-package ${CMAKE_BINARY_DIR})
# cpack makes one package of a build at a time.
set_tests_properties(package PROPERTIES RESOURCE_LOCK cpack)
add_check(container_image package 900 ${CMAKE_SOURCE_DIR}/scripts/check-container --image ${CMAKE_BINARY_DIR})
set_tests_properties(container_image PROPERTIES RESOURCE_LOCK cpack FIXTURES_SETUP container_image)
add_check(container package 300 ${CMAKE_SOURCE_DIR}/scripts/check-container --run ${CMAKE_BINARY_DIR})
set_tests_properties(container PROPERTIES ${TAKES_TURNS} FIXTURES_REQUIRED container_image)
add_check(manifests check 300 ${CMAKE_SOURCE_DIR}/scripts/check-manifests $<TARGET_FILE:cudabpf>)
add_check(oldest check 1200 ${CMAKE_SOURCE_DIR}/scripts/check-oldest ${CMAKE_BINARY_DIR})
add_check(list_not_passed check 300 ${CMAKE_CURRENT_SOURCE_DIR}/scripts/list-not-passed-test.sh)
add_check(selection check 300 ${CMAKE_CURRENT_SOURCE_DIR}/scripts/selection-test.sh)
add_check(tiers check 300 sh -c "${CMAKE_CTEST_COMMAND} --test-dir ${CMAKE_BINARY_DIR} --show-only=json-v1 >ctest-all.json && \
  ${CMAKE_SOURCE_DIR}/scripts/select-tests --check ctest-all.json")
add_check(test_progress check 300 ${CMAKE_CURRENT_SOURCE_DIR}/scripts/test-progress-test.sh)
add_check(static_binary_build static 600 ${CMAKE_SOURCE_DIR}/scripts/check-static --build ${CMAKE_BINARY_DIR})
add_check(static_binary static 300 ${CMAKE_SOURCE_DIR}/scripts/check-static --run ${CMAKE_BINARY_DIR})
set_tests_properties(static_binary_build PROPERTIES FIXTURES_SETUP static)
set_tests_properties(static_binary PROPERTIES FIXTURES_REQUIRED static ${TAKES_TURNS})
# The sanitizers' own tests, each a test here. They take turns: each runs the same ctest.
set(CHECK_SANITIZERS ${CMAKE_SOURCE_DIR}/scripts/check-sanitizers)
add_check(sanitizers_build sanitizers 1800 ${CHECK_SANITIZERS} --build ${CMAKE_BINARY_DIR}-asan)
set_tests_properties(sanitizers_build PROPERTIES FIXTURES_SETUP sanitizers)
file(GLOB SANITIZED CONFIGURE_DEPENDS fuzz/*_fuzz.cpp)
if(COMMAND add_inside_objects)
  list(APPEND SANITIZED patched_prologues inside_tests)
endif()
foreach(source IN LISTS SANITIZED ITEMS unit_tests)
  get_filename_component(name ${source} NAME_WE)
  add_check(sanitizers_${name} sanitizers 1800 ${CHECK_SANITIZERS} --run ${name} ${CMAKE_BINARY_DIR}-asan)
  set_tests_properties(sanitizers_${name} PROPERTIES FIXTURES_REQUIRED sanitizers RESOURCE_LOCK sanitizers COST 900)
endforeach()
set_tests_properties(sanitizers_unit_tests PROPERTIES COST 950) # the longest
set(CHECK_THREADS ${CMAKE_SOURCE_DIR}/scripts/check-threads --into ${CMAKE_BINARY_DIR}-tsan)
add_check(data_races_build sanitizers 1200 ${CHECK_THREADS} --build ${CMAKE_BINARY_DIR})
add_check(data_races sanitizers 1200 ${CHECK_THREADS} --run ${CMAKE_BINARY_DIR})
set_tests_properties(data_races_build PROPERTIES FIXTURES_SETUP threads)
set_tests_properties(data_races PROPERTIES FIXTURES_REQUIRED threads ${TAKES_TURNS} ENVIRONMENT "BPFTOOL=${BPFTOOL}")
# The live tests take turns, and each waits more than it computes. So scripts/test has ctest run one
# test more than there are CPUs, and the live tests cost most: one of them always runs, beside what
# uses all CPUs, which comes next, and then the rest.
set_tests_properties(check_tidy oldest sanitizers_build data_races_build PROPERTIES PROCESSORS ${CPUS} COST 1000)
