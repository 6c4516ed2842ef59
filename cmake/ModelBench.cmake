# `farsum bench model`: the program of its ranks, built as bin/model/ranks, and a script beside the launcher that starts
# bench/model/bench_model with this build. A short form is a test of answers and of what it prints, not of times.

farsum_glob_sources(farsum_model_sources "${PROJECT_SOURCE_DIR}/bench/model")
add_executable(model_ranks ${farsum_model_sources})
set_property(GLOBAL APPEND PROPERTY FARSUM_MEASURING_PROGRAMS model_ranks)
set_target_properties(model_ranks PROPERTIES OUTPUT_NAME ranks RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/model")
target_include_directories(model_ranks PRIVATE "${PROJECT_SOURCE_DIR}/bench/model" "${PROJECT_SOURCE_DIR}/bench")
target_link_libraries(model_ranks PRIVATE farsum)
farsum_link_front_libraries(model_ranks)

file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/bin/bench-model" CONTENT [[#!/bin/sh
exec "@PROJECT_SOURCE_DIR@/bench/model/bench_model" --build "@CMAKE_BINARY_DIR@" "$@"
]] @ONLY)
file(CHMOD "${CMAKE_BINARY_DIR}/bin/bench-model" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
     WORLD_EXECUTE)

if(FARSUM_BUILD_TESTS AND UCX_FOUND)
  add_test(NAME hosts.bench_model.tiny COMMAND "${CMAKE_BINARY_DIR}/bin/bench-model" --tiny --json --places hosts)
  set_tests_properties(hosts.bench_model.tiny PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 60 LABELS hosts ${FARSUM_OF_POLLING_RANKS})
endif()
