# Programs whose ranks may run on several hosts, and the tests that run them (tests/hosts/run_across): one each for a way of
# starting ranks and a number of hosts; fock, counter and gups over two hosts (tests/hosts/native_programs); and what ranks on two
# hosts must come through (tests/hosts/faults). Without root those over several hosts are reported skips.

function(farsum_add_host_test name script)
  add_test(NAME hosts.${name} COMMAND "${PROJECT_SOURCE_DIR}/tests/hosts/${script}" --build "${CMAKE_BINARY_DIR}" ${ARGN})
  set_tests_properties(hosts.${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 120 LABELS hosts ${FARSUM_OF_POLLING_RANKS})
endfunction()

function(farsum_add_across_test name)
  farsum_add_host_test(across.${name} run_across ${ARGN})
endfunction()

# `make test` runs these: a fault between two hosts, and messages between two names of this host.
set(FARSUM_SHORT_HOST_TESTS hosts.across.meet.two_names_of_2 hosts.faults.cut_for_a_second)

file(GLOB farsum_across_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/hosts/across/*.cpp")
add_executable(across ${farsum_across_sources})
set_target_properties(across PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests")
target_include_directories(across PRIVATE "${PROJECT_SOURCE_DIR}/bench" "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(across PRIVATE farsum Threads::Threads)
farsum_add_across_test(farsum_run.one_host_of_4 --start farsum-run --ranks 4)
farsum_add_across_test(openmpi.one_host_of_4 --start openmpi --ranks 4)
farsum_add_across_test(meet.one_host_of_3 --start meet --ranks 3)
if(UCX_FOUND)
  farsum_add_across_test(meet.two_names_of_2 --start meet --names x y --ranks 2)
  # Messages of 8,000 bytes, as over all but TCP.
  farsum_add_across_test(short_messages.two_names_of_2 --start meet --names x y --ranks 2 --set FARSUM_NET_TLS=posix all)
  # UCX's transports within a machine stand for a card: they read, write and update by themselves.
  farsum_add_across_test(cards.two_names_of_2 --start meet --names x y --ranks 2 --set FARSUM_NET_TLS=posix network_only by_cards)
  farsum_add_across_test(meet.three_hosts_of_1 --start meet --hosts 3)
  foreach(ranks IN ITEMS 1 2)
    farsum_add_across_test(openmpi.two_hosts_of_${ranks} --start openmpi --hosts 2 --ranks ${ranks})
  endforeach()
  foreach(start IN ITEMS openmpi openmpi5 prterun srun)
    farsum_add_host_test(native_programs.${start} native_programs --start ${start})
  endforeach()
  farsum_add_host_test(native_programs.openmpi.two_hosts_of_2 native_programs --start openmpi --ranks 2)
  farsum_add_host_test(model_measured model_measured --start openmpi)
  foreach(fault IN ITEMS cut_for_a_second cut_in_tree computing slow stopped full_queue stranger cut killed)
    farsum_add_host_test(faults.${fault} faults ${fault})
  endforeach()
  # All cases: tests/soak/run.
  farsum_add_host_test(faults.cut_cases faults cut_cases get_accumulate put_and_get_1_mib fence mutexes adopted)
  farsum_add_host_test(faults.cut_cases.caller faults cut_cases accumulate_1_mib get_accumulate)
  farsum_add_host_test(faults.cut_cases.aggregated faults cut_cases flood)
  foreach(path IN ITEMS caller aggregated)
    set_tests_properties(hosts.faults.cut_cases.${path} PROPERTIES ENVIRONMENT FARSUM_PATH=${path})
  endforeach()
endif()

add_dependencies(short_tests across)

foreach(library IN ITEMS mpich openmpi)
  if(TARGET farsum_mpi_${library})
    add_executable(across_mpi_${library} "${PROJECT_SOURCE_DIR}/tests/hosts/across_mpi.c")
    set_target_properties(across_mpi_${library} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests"
                          C_EXTENSIONS ON)
    target_link_libraries(across_mpi_${library} PRIVATE farsum_mpi_${library})
    farsum_add_across_test(mpi.${library}.one_host_of_4 --start ${library} --mpi --ranks 4)
    if(UCX_FOUND)
      farsum_add_across_test(mpi.${library}.cards --start ${library} --mpi --ranks 3 --set FARSUM_NET_TLS=posix
                             --set ACROSS_INFO=farsum_network_only all)
    endif()
    if(UCX_FOUND)
      add_executable(lost_mpi_${library} "${PROJECT_SOURCE_DIR}/tests/hosts/lost_mpi.c")
      set_target_properties(lost_mpi_${library} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin/tests" C_EXTENSIONS ON)
      target_link_libraries(lost_mpi_${library} PRIVATE farsum_mpi_${library})
      farsum_add_host_test(faults.mpi_cut.${library} faults mpi_cut ${library})
      set_tests_properties(hosts.faults.mpi_cut.${library} PROPERTIES TIMEOUT 240)  # nine jobs
      farsum_add_host_test(attends.${library} run_across --start ${library} --program attends --hosts 2 --set ATTENDS=1)
      farsum_add_host_test(nocheck.${library} run_across --start ${library} --program nocheck --hosts 2 --ranks 2)
      farsum_add_host_test(nothing_moved.${library} run_across --start ${library} --program nothing_moved --hosts 2)
      farsum_add_host_test(reads.${library} run_across --start ${library} --program reads --hosts 2 --set COPIES=1
                           --set FARSUM_READ_AGE=86400000)
    endif()
    foreach(ranks IN ITEMS 1 2)
      if(UCX_FOUND)
        farsum_add_across_test(mpi.${library}.two_hosts_of_${ranks} --start ${library} --mpi --hosts 2 --ranks ${ranks})
      endif()
    endforeach()
  endif()
endforeach()

# A dozen of MPICH's own one-sided tests over two hosts; tools/conformance fetches and builds them.
foreach(library IN ITEMS mpich openmpi)
  find_program(FARSUM_MPIRUN_OF_${library} mpirun.${library})
  if(UCX_FOUND AND TARGET farsum_mpi_${library} AND FARSUM_MPIRUN_OF_${library})
    set(test hosts.conformance.${library}.two_hosts)
    add_test(NAME ${test}
             COMMAND "${PROJECT_SOURCE_DIR}/tools/conformance" --short --hosts 2 --library ${library} --build "${CMAKE_BINARY_DIR}"
                     --output "${CMAKE_BINARY_DIR}/conformance/two-hosts-${library}")
    set_tests_properties(${test} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 120 LABELS hosts ${FARSUM_OF_POLLING_RANKS})
  endif()
endforeach()

# The lines of docs/guide/launchers.md, and the batch script that it shows, as a user types them.
function(farsum_add_launcher_test name nodes)
  add_test(NAME launchers.${name}.${nodes} COMMAND "${PROJECT_SOURCE_DIR}/tests/launchers/run" --build "${CMAKE_BINARY_DIR}"
           --nodes ${nodes} ${ARGN})
  # Most of it they wait, for Slurm and for launchers.
  set_tests_properties(launchers.${name}.${nodes} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 180 LABELS launchers COST 1000)
endfunction()

farsum_add_launcher_test(farsum_run 1 --launcher "Farsum's own")
set(farsum_launcher_nodes 1)
if(UCX_FOUND)
  list(APPEND farsum_launcher_nodes 2)
endif()
foreach(nodes IN LISTS farsum_launcher_nodes)
  if(TARGET farsum_mpi_mpich)
    farsum_add_launcher_test(hydra ${nodes} --launcher "Hydra of MPICH" --library mpich)
    farsum_add_launcher_test(hydra_impi ${nodes} --launcher "Hydra of Intel MPI" --library impi)
    farsum_add_launcher_test(slurm_mpich ${nodes} --launcher "Slurm, MPICH and Intel MPI" --library mpich)
    if(nodes EQUAL 1)
      # The test hosts share /dev/shm, where ranks of Intel MPI that srun has started take each other's name.
      farsum_add_launcher_test(slurm_impi ${nodes} --launcher "Slurm, MPICH and Intel MPI" --library impi)
    endif()
  endif()
  if(TARGET farsum_mpi_openmpi)
    farsum_add_launcher_test(openmpi4 ${nodes} --launcher "Open MPI 4, 5" --library openmpi)
    farsum_add_launcher_test(openmpi5 ${nodes} --launcher "Open MPI 4, 5" --library openmpi5)
    farsum_add_launcher_test(slurm_openmpi ${nodes} --launcher "Slurm, Open MPI" --library openmpi)
    farsum_add_launcher_test(slurm_batch ${nodes} --batch --library openmpi)
  endif()
endforeach()

# Called when all tests are registered: benchmarks over hosts have some, too.
function(farsum_leave_hosts_to_test_all)
  get_property(all DIRECTORY PROPERTY TESTS)
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "^hosts\\.")
  list(REMOVE_ITEM tests ${FARSUM_SHORT_HOST_TESTS})
  farsum_only_in_test_all("network namespaces are made, and links cut, for seconds" ${tests})
  farsum_mark_tests("Takes seconds: a link is cut for a second" hosts.faults.cut_for_a_second)
  farsum_mark_tests("Takes seconds: every kind of operation, epoch and window" hosts.across.meet.two_names_of_2)
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "^launchers\\.")
  farsum_only_in_test_all("a Slurm is set up, or each launcher starts several jobs" ${tests})
endfunction()
