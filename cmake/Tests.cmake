# Tests: one binary per folder under tests/ that holds *_test.cpp, and the check that farsum.h is plain C11 and plain C++.
include(GoogleTest)

# The folders of tests that also run under a sanitizer. This is the only such list: `make test` builds the targets
# tsan_tests and asan_tests and runs the ctest labels tsan and asan.
set(FARSUM_TSAN_TESTS lockfree core shm sim transport transport_shm transport_sim transport_route agent collectives runtime)
set(FARSUM_ASAN_TESTS base os lockfree ops cost core shm sim transport transport_shm transport_sim transport_link
                      transport_route transport_ucx fuzz agent collectives runtime capi)

# The folders whose tests start programs, so that building the test builds those too.
set(FARSUM_PROGRAM_TESTS apps cli examples faults fock lab nwchem pmix)

add_custom_target(tsan_tests)
add_custom_target(asan_tests)

# Adds test_<name> from the sources of one folder, its path below tests/ giving the name.
function(farsum_add_test_folder folder)
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/tests" OUTPUT_VARIABLE relative)
  string(REPLACE "/" "_" name "${relative}")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")

  add_executable(test_${name} ${sources})
  set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests")
  target_include_directories(test_${name} PRIVATE "${folder}" "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(test_${name} PRIVATE FARSUM_BIN_DIR="${CMAKE_BINARY_DIR}/bin"
                                                  FARSUM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(test_${name} PRIVATE farsum_engine nlohmann_json::nlohmann_json GTest::gmock GTest::gtest_main)

  if(name STREQUAL "cli")
    target_link_libraries(test_${name} PRIVATE farsum_cli_parts)
  endif()
  if(name IN_LIST FARSUM_PROGRAM_TESTS)
    get_property(programs GLOBAL PROPERTY FARSUM_PROGRAMS)
    if(programs)
      add_dependencies(test_${name} ${programs})
    endif()
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
  # One label such as core+tsan: gtest_discover_tests takes no lists as property values.
  list(JOIN labels "+" label)
  gtest_discover_tests(test_${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX "${name}."
                       PROPERTIES TIMEOUT 120 LABELS ${label})
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
endfunction()

function(farsum_add_tests)
  farsum_add_header_test()
  file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/*_test.cpp")
  set(folders "")
  foreach(source IN LISTS test_sources)
    cmake_path(GET source PARENT_PATH folder)
    list(APPEND folders "${folder}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  if(NOT UCX_FOUND)
    list(FILTER folders EXCLUDE REGEX "/tests/transport/ucx$")
  endif()
  foreach(folder IN LISTS folders)
    farsum_add_test_folder("${folder}")
  endforeach()
endfunction()
