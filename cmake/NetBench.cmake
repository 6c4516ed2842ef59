# `farsum bench net`: plain MPI and plain TCP programs of bench/net, built into bin/net, and a script beside the launcher that
# starts bench/net/bench_net with this build. Short forms with tiny counts are tests; without root they are reported skips.

set(farsum_net_folder "${CMAKE_BINARY_DIR}/bin/net")

add_executable(net_raw_tcp "${PROJECT_SOURCE_DIR}/bench/net/raw_tcp.c")
set_target_properties(net_raw_tcp PROPERTIES OUTPUT_NAME raw_tcp RUNTIME_OUTPUT_DIRECTORY "${farsum_net_folder}" C_EXTENSIONS ON)
target_link_libraries(net_raw_tcp PRIVATE Threads::Threads)

foreach(abi mpich openmpi)
  if(TARGET farsum_mpi_${abi})
    add_executable(net_rma_${abi} "${PROJECT_SOURCE_DIR}/bench/net/net_rma.c")
    set_property(GLOBAL APPEND PROPERTY FARSUM_MEASURING_PROGRAMS net_rma_${abi})
    set_target_properties(net_rma_${abi} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${farsum_net_folder}" SKIP_BUILD_RPATH ON
                          C_EXTENSIONS ON)
    target_link_libraries(net_rma_${abi} PRIVATE farsum_mpi_${abi})
  endif()
endforeach()

function(farsum_add_script name words)
  set(file "${CMAKE_BINARY_DIR}/bin/${name}")
  file(CONFIGURE OUTPUT "${file}" CONTENT "#!/bin/sh\nexec ${words} \"$@\"\n" @ONLY)
  file(CHMOD "${file}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endfunction()
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
farsum_add_script(bench-net [["@PROJECT_SOURCE_DIR@/bench/net/bench_net" --build "@CMAKE_BINARY_DIR@"]])
# For `farsum lab --hosts`.
farsum_add_script(test-hosts [["@PROJECT_SOURCE_DIR@/tools/hosts"]])

if(FARSUM_BUILD_TESTS AND TARGET net_rma_openmpi)
  add_test(NAME hosts.bench_net.tiny COMMAND "${CMAKE_BINARY_DIR}/bin/bench-net" --tiny --json)
  add_test(NAME hosts.bench_net.tiny_figures COMMAND "${CMAKE_BINARY_DIR}/bin/bench-net" --tiny --figures)
  set_tests_properties(hosts.bench_net.tiny hosts.bench_net.tiny_figures PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 60 LABELS hosts
                       ${FARSUM_OF_POLLING_RANKS})
endif()
