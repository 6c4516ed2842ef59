# What `cmake --install` puts where: the command, the libraries, the fronts, the header, and how CMake and pkg-config find them.
# Labs and benchmarks, whose scripts live in the source tree, are not installed. The components are the packages of Debian
# (cmake/Debian.cmake).
include(CMakePackageConfigHelpers)

# The front is preloaded by its path, and LD_PRELOAD splits what it holds at spaces and colons. Asked when it is installed, for
# the prefix may be given then.
install(CODE [[
  if(CMAKE_INSTALL_PREFIX MATCHES "[ \t:]")
    message(FATAL_ERROR "Farsum cannot be installed below '${CMAKE_INSTALL_PREFIX}': LD_PRELOAD, by which MPI programs get it, "
                        "cannot name a path with a space or a colon. Choose a prefix without one.")
  endif()
]])

install(TARGETS farsum_cli farsum_cli_tools RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT command)
# scikit-build-core sets SKBUILD. What links with -lfarsum then reads the library's name in a file of the linker's language.
set(farsum_link_of_name NAMELINK_COMPONENT development)
if(SKBUILD)
  set(farsum_link_of_name NAMELINK_SKIP)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/libfarsum.so" CONTENT
       "/* Farsum's library, for the linker. */\nINPUT(libfarsum.so.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})\n")
  install(FILES "${CMAKE_BINARY_DIR}/generated/libfarsum.so" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
endif()
install(TARGETS farsum EXPORT FarsumTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library
        ${farsum_link_of_name} INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

# All that is installed, and the example that the pages for users begin with; no test, benchmark or program of the lab.
add_custom_target(installed)
add_dependencies(installed farsum farsum_cli farsum_cli_tools example_first)
foreach(abi IN ITEMS mpich openmpi abi)
  if(TARGET farsum_mpi_front_${abi})
    install(TARGETS farsum_mpi_preload_${abi} farsum_mpi_front_${abi} LIBRARY DESTINATION "${FARSUM_FRONT_DIR}"
            COMPONENT command)
    add_dependencies(installed farsum_mpi_preload_${abi} farsum_mpi_front_${abi})
  endif()
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/include/farsum.h" "${PROJECT_SOURCE_DIR}/include/farsum_embed.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT licence)

set(farsum_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Farsum")
install(EXPORT FarsumTargets NAMESPACE Farsum:: DESTINATION "${farsum_package_dir}" COMPONENT development)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/FarsumConfig.cmake.in" "${CMAKE_BINARY_DIR}/generated/FarsumConfig.cmake"
                              INSTALL_DESTINATION "${farsum_package_dir}")
# Before version 1 each minor version may change the interface.
write_basic_package_version_file("${CMAKE_BINARY_DIR}/generated/FarsumConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/generated/FarsumConfig.cmake" "${CMAKE_BINARY_DIR}/generated/FarsumConfigVersion.cmake"
        DESTINATION "${farsum_package_dir}" COMPONENT development)

# It says where it is by where it lies, so that what was installed may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig"
           OUTPUT_VARIABLE farsum_include_from_pc)
configure_file("${PROJECT_SOURCE_DIR}/cmake/farsum.pc.in" "${CMAKE_BINARY_DIR}/generated/farsum.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/generated/farsum.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)

# Pages of the manual from what --help says: the command is run for them.
find_program(HELP2MAN_PROGRAM help2man)
function(farsum_add_man_page page about)
  string(REPLACE "-" " " subcommand "${page}")
  string(REGEX REPLACE "^farsum" "$<TARGET_FILE:farsum_cli>" command "${subcommand}")
  set(output "${CMAKE_BINARY_DIR}/man/${page}.1")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -D "HELP2MAN=${HELP2MAN_PROGRAM}" -D "COMMAND=${command}" -D "PAGE=${page}" -D "ABOUT=${about}"
            -D "VERSION=${PROJECT_VERSION}" -D "OUTPUT=${output}" -P "${PROJECT_SOURCE_DIR}/cmake/man_page.cmake"
    DEPENDS farsum_cli farsum_cli_tools "${PROJECT_SOURCE_DIR}/cmake/man_page.cmake"
    COMMENT "Writing ${page}(1)" VERBATIM)
  set_property(GLOBAL APPEND PROPERTY FARSUM_MAN_PAGES "${output}")
endfunction()

if(HELP2MAN_PROGRAM AND NOT FARSUM_SANITIZE)
  farsum_add_man_page(farsum "one-sided communication with atomic reduction")
  farsum_add_man_page(farsum-run "start the ranks of a job on this machine")
  farsum_add_man_page(farsum-mpi "run an MPI program with Farsum in front of MPI")
  farsum_add_man_page(farsum-info "say whether Farsum works here, and what this machine allows")
  get_property(farsum_man_pages GLOBAL PROPERTY FARSUM_MAN_PAGES)
  add_custom_target(man ALL DEPENDS ${farsum_man_pages})
  add_dependencies(installed man)
  install(FILES ${farsum_man_pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT command)
else()
  message(STATUS "No help2man: no pages of the manual are made (apt-get install help2man)")
endif()

if(FARSUM_BUILD_TESTS AND NOT FARSUM_SANITIZE)
  add_test(NAME install.is_used_without_a_source_tree COMMAND "${PROJECT_SOURCE_DIR}/tests/install/installed" --build
                                                              "${CMAKE_BINARY_DIR}")
  set_tests_properties(install.is_used_without_a_source_tree PROPERTIES TIMEOUT 240 LABELS install PROCESSORS 2 SKIP_RETURN_CODE 77)
  farsum_mark_tests("Takes seconds: programs are built with what was installed" install.is_used_without_a_source_tree)
  add_dependencies(short_tests installed)
  add_test(NAME wheel.is_refused_when_it_is_not_whole COMMAND "${PROJECT_SOURCE_DIR}/tests/wheel/refusals" --build
                                                              "${CMAKE_BINARY_DIR}")
  add_test(NAME wheel.build_says_how_far_it_is COMMAND "${PROJECT_SOURCE_DIR}/tests/wheel/progress")
  set_tests_properties(wheel.is_refused_when_it_is_not_whole wheel.build_says_how_far_it_is
                       PROPERTIES TIMEOUT 60 LABELS install SKIP_RETURN_CODE 77)
  farsum_only_in_test_all("all MPI fronts are in it" wheel.is_refused_when_it_is_not_whole)
endif()
