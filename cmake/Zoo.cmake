# Programs that others wrote, with Farsum in front: those of the zoo (tools/zoo) that are short. A test is skipped where a package that
# its program needs is not installed; one that does not compile has failed.

set(FARSUM_SHORT_ZOO coarrays/events coarrays/work_queue mpi-sppy/farmer)

function(farsum_add_zoo_tests)
  if(FARSUM_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  add_test(NAME zoo.tools COMMAND "${PROJECT_SOURCE_DIR}/tests/zoo/zoo_test.py")
  set_tests_properties(zoo.tools PROPERTIES TIMEOUT 60 LABELS zoo)
  foreach(program IN LISTS FARSUM_SHORT_ZOO)
    string(REPLACE "/" "." name "${program}")
    add_test(NAME zoo.${name}
             COMMAND "${PROJECT_SOURCE_DIR}/tools/zoo" run --short --with --no-results --hosts 1 --program "${program}"
                     --build "${CMAKE_BINARY_DIR}" --output "${CMAKE_BINARY_DIR}/zoo-tests")
    set_tests_properties(zoo.${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 240 LABELS zoo ${FARSUM_OF_POLLING_RANKS})
    farsum_only_in_test_all("programs of others are fetched for it" zoo.${name})
  endforeach()
endfunction()
