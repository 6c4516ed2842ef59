# Tests: one binary per folder under tests/ that holds *_test.cpp, and the check that farsum.h is plain C11 and plain C++.
include(GoogleTest)

# The folders of tests that also run under a sanitizer. This is the only such list: `make test-all` builds the targets
# tsan_tests and asan_tests and runs the ctest labels tsan and asan.
set(FARSUM_TSAN_TESTS lockfree memory protocol variants liveness progress window collectives sim transport transport_route
                      runtime)
set(FARSUM_ASAN_TESTS os promotion lockfree ops cost trees cluster memory protocol variants liveness progress window collectives
                      sim transport transport_link transport_route transport_ucx transport_rdma fuzz runtime capi)

# The folders whose tests start programs, so that building the test builds those too. What measures is needed by tests of
# `make test-all` alone.
set(FARSUM_PROGRAM_TESTS apps cli faults fock nwchem pmix)
set(FARSUM_FOCK_TESTS fock pmix)
set(FARSUM_MEASURING_TESTS lab)

# What nearly every test includes, read by the compiler once for all of them. A program, as they are: else it is compiled
# otherwise.
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/test_headers.cpp" CONTENT "int main() {}\n")
add_executable(farsum_test_headers EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/generated/test_headers.cpp")
target_link_libraries(farsum_test_headers PRIVATE GTest::gmock GTest::gtest)
# Tests need not be fast, but soon there. The files that compute for long are compiled as the rest is, without these headers.
set(FARSUM_TEST_OPTIONS $<$<CONFIG:Release,Sanitize>:-O0>)
set(FARSUM_COMPUTING_TESTS "/lockfree/(.*_model|stress)_test\\.cpp$" "/transport/link/(link_world|reply_care_model_test)\\.cpp$")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # From precompiled headers it warns of what is the system's.
  list(APPEND FARSUM_TEST_OPTIONS -fpch-preprocess -Wno-array-bounds -Wno-mismatched-new-delete -Wno-restrict
       -Wno-stringop-overflow)
endif()
target_compile_options(farsum_test_headers PRIVATE ${FARSUM_TEST_OPTIONS})
target_precompile_headers(farsum_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <algorithm> <atomic> <filesystem> <functional>
                          <map> <memory> <string> <thread> <vector>)

# The folders whose test files are compiled at once, since no two of them use a name differently. Half of a file's time is its
# headers' and what it instantiates of them; where a new file's name is in the way, it gets another.
set(FARSUM_TESTS_TOGETHER apps capi cli cluster collectives cost fock fuzz liveness ops os progress promotion protocol
                          runtime sim transport transport_rdma transport_route transport_ucx trees variants window)

# The folders whose tests count the pieces of layouts that are looked at. Their programs take what looks at them from here, not
# from the archives.
set(FARSUM_COUNTING_TESTS protocol sim)
add_library(farsum_counted_layouts OBJECT EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/src/ops/layout.cpp"
            "${PROJECT_SOURCE_DIR}/src/protocol/packed_sides.cpp")
target_include_directories(farsum_counted_layouts PRIVATE "${PROJECT_SOURCE_DIR}/tests/counted" "${PROJECT_SOURCE_DIR}/src")

add_custom_target(tsan_tests)
add_custom_target(asan_tests)

# What `make test` builds: each program of which it runs a test. tools/test_cases.py has the marks by which it leaves tests out.
add_custom_target(short_tests)

# Marks those of the tests that are registered.
function(farsum_mark_tests mark)
  foreach(test IN LISTS ARGN)
    if(TEST ${test})
      set_property(TEST ${test} APPEND PROPERTY LABELS "${mark}")
    endif()
  endforeach()
endfunction()

# Leaves registered tests to `make test-all`.
function(farsum_only_in_test_all reason)
  farsum_mark_tests("In make test-all: ${reason}" ${ARGN})
endfunction()

# The folders of which `make test` runs nothing.
execute_process(COMMAND "${PROJECT_SOURCE_DIR}/tools/test_cases.py" --long-folders "${PROJECT_SOURCE_DIR}/tests"
                OUTPUT_VARIABLE FARSUM_LONG_FOLDERS OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

# Headers that are compiled already, and no optimisation, but for the files that compute for long.
function(farsum_compile_test_fast test)
  target_precompile_headers(${test} REUSE_FROM farsum_test_headers)
  target_compile_options(${test} PRIVATE ${FARSUM_TEST_OPTIONS})
  get_target_property(sources ${test} SOURCES)
  foreach(pattern IN LISTS FARSUM_COMPUTING_TESTS)
    set(computing ${sources})
    list(FILTER computing INCLUDE REGEX "${pattern}")
    set_source_files_properties(${computing} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS
                                "$<$<CONFIG:Release>:-O2>;$<$<CONFIG:Sanitize>:-O1>")
  endforeach()
  if(CCACHE_PROGRAM)
    # So it keeps what was compiled with precompiled headers, too.
    set_target_properties(${test} PROPERTIES CXX_COMPILER_LAUNCHER
                          "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${CCACHE_PROGRAM}")
  endif()
endfunction()

# What a test starts as its ranks: one program a source, of which each sees farsum.h only.
function(farsum_add_test_programs test folder)
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM program)
    add_executable(${test}_${program} "${source}")
    set_target_properties(${test}_${program} PROPERTIES OUTPUT_NAME ${program}
                                                        RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests/programs")
    target_link_libraries(${test}_${program} PRIVATE farsum)
    add_dependencies(${test} ${test}_${program})
  endforeach()
endfunction()

# With a sanitizer a process takes longer to start and to end than most cases, and so each process runs a share of them. Each
# share writes the results of its cases to a file, which tools/run_tests reads.
set(FARSUM_SHARDS 6)
# Suites that have a process to themselves: memory is moved, for which a sanitizer's own thread must not run yet.
set(FARSUM_SUITES_APART_runtime "WindowPromotionsTest.*")
function(farsum_add_shards name label)
  set(suites "*")
  if(FARSUM_SUITES_APART_${name})
    string(APPEND suites ":-${FARSUM_SUITES_APART_${name}}")
    farsum_add_shard(${name}.shard_apart ${name} ${label} "${FARSUM_SUITES_APART_${name}}")
  endif()
  math(EXPR last "${FARSUM_SHARDS} - 1")
  foreach(shard RANGE ${last})
    farsum_add_shard(${name}.shard_${shard} ${name} ${label} "${suites}"
                     "GTEST_TOTAL_SHARDS=${FARSUM_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

# ARGN: what is set in its environment.
function(farsum_add_shard test name label suites)
  add_test(NAME ${test} COMMAND test_${name} "--gtest_filter=${suites}" "--gtest_output=xml:${CMAKE_BINARY_DIR}/shards/${test}.xml")
  set_tests_properties(${test} PROPERTIES TIMEOUT 600 LABELS ${label} ENVIRONMENT "${ARGN}")
endfunction()

# Adds test_<name> from the sources of one folder, its path below tests/ giving the name.
function(farsum_add_test_folder folder)
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/tests" OUTPUT_VARIABLE relative)
  string(REPLACE "/" "_" name "${relative}")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  # Model checks switch fibers, which confuse sanitizers.
  if(FARSUM_SANITIZE AND name STREQUAL "lockfree")
    list(FILTER sources EXCLUDE REGEX "_model_test\\.cpp$")
  endif()
  # This one goes through millions of states in one thread, and a part of them shows nothing.
  if(FARSUM_SANITIZE AND name STREQUAL "transport_link")
    list(FILTER sources EXCLUDE REGEX "/reply_care_model_test\\.cpp$")
  endif()

  add_executable(test_${name} ${sources})
  set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests")
  target_include_directories(test_${name} PRIVATE "${folder}" "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(test_${name} PRIVATE FARSUM_BIN_DIR="${CMAKE_BINARY_DIR}/bin"
                                                  FARSUM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(test_${name} PRIVATE farsum_cluster farsum_transport_sim farsum_transport_trace farsum_engine
                                             nlohmann_json::nlohmann_json GTest::gmock GTest::gtest_main)
  if(name STREQUAL "capi")
    farsum_compile_some_together(test_${name} 8)  # they take as long as those of several folders
  elseif(name IN_LIST FARSUM_TESTS_TOGETHER)
    farsum_compile_together(test_${name})
  endif()
  farsum_compile_test_fast(test_${name})

  if(name IN_LIST FARSUM_COUNTING_TESTS)
    target_sources(test_${name} PRIVATE $<TARGET_OBJECTS:farsum_counted_layouts>)
    target_include_directories(test_${name} BEFORE PRIVATE "${PROJECT_SOURCE_DIR}/tests/counted")
  endif()
  if(name STREQUAL "bench")
    # What ranks of a benchmark make of their times; of no library.
    target_sources(test_bench PRIVATE "${PROJECT_SOURCE_DIR}/bench/reduce/cases/samples.cpp")
    target_include_directories(test_bench PRIVATE "${PROJECT_SOURCE_DIR}/bench")
  endif()
  if(name STREQUAL "cli")
    target_link_libraries(test_${name} PRIVATE farsum_cli_tool_parts)
    farsum_add_test_programs(test_${name} "${folder}/programs")
  endif()
  if(name IN_LIST FARSUM_PROGRAM_TESTS OR name IN_LIST FARSUM_MEASURING_TESTS)
    get_property(programs GLOBAL PROPERTY FARSUM_PROGRAMS)
    add_dependencies(test_${name} ${programs})
  endif()
  if(name IN_LIST FARSUM_FOCK_TESTS AND TARGET app_fock)
    add_dependencies(test_${name} app_fock)
  endif()
  if(name IN_LIST FARSUM_MEASURING_TESTS)
    get_property(programs GLOBAL PROPERTY FARSUM_MEASURING_PROGRAMS)
    add_dependencies(test_${name} ${programs})
  endif()
  if(NOT relative IN_LIST FARSUM_LONG_FOLDERS)
    add_dependencies(short_tests test_${name})
  endif()

  set(labels ${name})
  if(name IN_LIST FARSUM_TSAN_TESTS)
    list(APPEND labels tsan)
    add_dependencies(tsan_tests test_${name})
  endif()
  if(name IN_LIST FARSUM_ASAN_TESTS)
    list(APPEND labels asan)
    add_dependencies(asan_tests test_${name})
  endif()
  # One label such as protocol+tsan: gtest_discover_tests takes no lists as property values.
  list(JOIN labels "+" label)
  if(FARSUM_SANITIZE)
    target_sources(test_${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/shards.cpp")
    farsum_add_shards(${name} ${label})
  else()
    gtest_discover_tests(test_${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX "${name}."
                         PROPERTIES TIMEOUT 120 LABELS ${label})
  endif()
endfunction()

# farsum.h must compile in a C11 and in a C++ translation unit, each with nothing before it.
function(farsum_add_header_test)
  set(folder "${PROJECT_SOURCE_DIR}/tests/header")
  if(NOT EXISTS "${PROJECT_SOURCE_DIR}/include/farsum.h")
    return()
  endif()
  add_executable(test_header "${folder}/header_is_c11.c" "${folder}/header_is_cpp.cpp")
  set_target_properties(test_header PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests" C_EXTENSIONS OFF)
  target_compile_options(test_header PRIVATE -pedantic -Werror)
  target_link_libraries(test_header PRIVATE farsum)
  add_test(NAME header.compiles_as_c11_and_cpp COMMAND test_header)
  set_tests_properties(header.compiles_as_c11_and_cpp PROPERTIES TIMEOUT 120 LABELS header)
  add_dependencies(short_tests test_header)
endfunction()

# What must not change unseen: the interface, and the machine code of the calls that must stay fast. Each is skipped where the
# tool, or the compiler, is another. And what must not be destroyed too early.
function(farsum_add_guards)
  if(FARSUM_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  foreach(guard abi machine_code)
    add_test(NAME guards.${guard} COMMAND "${PROJECT_SOURCE_DIR}/tools/${guard}" --build "${CMAKE_BINARY_DIR}")
    set_tests_properties(guards.${guard} PROPERTIES TIMEOUT 120 LABELS guards SKIP_RETURN_CODE 77)
  endforeach()
  farsum_add_destructors_guard()
  farsum_mark_tests("Takes seconds: objdump lists all that was built" guards.machine_code guards.destructors)
endfunction()

# What a program may still call in its exit handlers: the objects of libfarsum.so and of the MPI fronts.
function(farsum_add_destructors_guard)
  get_property(archives GLOBAL PROPERTY FARSUM_ARCHIVES)
  list(TRANSFORM archives REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE files)
  foreach(abi IN ITEMS mpich openmpi abi)
    if(TARGET farsum_mpi_${abi}_headers)
      list(APPEND files "$<TARGET_OBJECTS:farsum_mpi_front_objects_${abi}>" "$<TARGET_OBJECTS:farsum_mpi_preload_${abi}>")
    endif()
  endforeach()
  add_test(NAME guards.destructors COMMAND "${PROJECT_SOURCE_DIR}/tools/check_destructors" ${files} COMMAND_EXPAND_LISTS)
  add_test(NAME guards.destructors.self_test COMMAND "${PROJECT_SOURCE_DIR}/tools/check_destructors" --self-test)
  set_tests_properties(guards.destructors guards.destructors.self_test PROPERTIES TIMEOUT 120 LABELS guards)
endfunction()

# What the docs show runs, and the pages and pictures that are made from something are what they are made from.
function(farsum_add_docs_tests)
  if(FARSUM_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  add_test(NAME docs.commands_do_what_is_shown COMMAND "${PROJECT_SOURCE_DIR}/tests/docs/shown" --build "${CMAKE_BINARY_DIR}")
  add_test(NAME docs.reference_is_up_to_date COMMAND "${PROJECT_SOURCE_DIR}/tools/reference_docs" --check --build "${CMAKE_BINARY_DIR}")
  add_test(NAME docs.c_interface_shows_types COMMAND "${PROJECT_SOURCE_DIR}/tests/docs/typed")
  add_test(NAME docs.pictures_are_up_to_date COMMAND "${PROJECT_SOURCE_DIR}/tools/docs_pictures" --check)
  set_tests_properties(docs.commands_do_what_is_shown docs.reference_is_up_to_date docs.c_interface_shows_types
                       docs.pictures_are_up_to_date PROPERTIES TIMEOUT 120 LABELS docs)
  farsum_only_in_test_all("`make test` builds no benchmarks" docs.commands_do_what_is_shown)
endfunction()

# How the steps of tools/release_check are run and judged; the steps themselves are for releases alone.
function(farsum_add_release_test)
  if(FARSUM_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  add_test(NAME release.steps_are_judged COMMAND "${PROJECT_SOURCE_DIR}/tests/release/release_check_test.py")
  set_tests_properties(release.steps_are_judged PROPERTIES TIMEOUT 60 LABELS release)
  farsum_only_in_test_all("it is for releases" release.steps_are_judged)
endfunction()

# A folder that was renamed must not drop out of what runs under a sanitizer, nor out of what is compiled at once.
function(farsum_check_lists)
  set(wanted ${FARSUM_TSAN_TESTS} ${FARSUM_ASAN_TESTS} ${FARSUM_TESTS_TOGETHER})
  list(REMOVE_DUPLICATES wanted)
  if(NOT UCX_FOUND)
    list(REMOVE_ITEM wanted transport_rdma transport_ucx)
  endif()
  foreach(name IN LISTS wanted)
    if(NOT TARGET test_${name})
      message(FATAL_ERROR "The lists of tests for sanitizers, or of those compiled at once, name ${name}, of which there is no folder")
    endif()
  endforeach()
endfunction()

function(farsum_add_tests)
  farsum_add_header_test()
  farsum_add_guards()
  farsum_add_docs_tests()
  farsum_add_release_test()
  file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*_test.cpp")
  set(folders "")
  foreach(source IN LISTS test_sources)
    cmake_path(GET source PARENT_PATH folder)
    list(APPEND folders "${folder}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  if(NOT UCX_FOUND)
    list(FILTER folders EXCLUDE REGEX "/tests/transport/(rdma|ucx)$")
  endif()
  foreach(folder IN LISTS folders)
    farsum_add_test_folder("${folder}")
  endforeach()
  farsum_check_lists()
endfunction()
