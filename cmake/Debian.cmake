# The packages of Debian, by CPack's generator for them: which component goes into which, and what each says of itself. What
# Debian wants beside the files that are installed is added by cmake/debian/stage.cmake. tools/deb asks for it (FARSUM_DEBIAN).
option(FARSUM_DEBIAN "Describe Debian packages for CPack" OFF)
if(NOT FARSUM_DEBIAN)
  return()
endif()

set(FARSUM_DEBIAN_MAINTAINER "" CACHE STRING "Who makes the packages, as 'Name <address>'; empty: the author of the commit")
set(farsum_maintainer "${FARSUM_DEBIAN_MAINTAINER}")
if(NOT farsum_maintainer)
  execute_process(COMMAND git -C "${PROJECT_SOURCE_DIR}" log -1 "--format=%an <%ae>" OUTPUT_VARIABLE farsum_maintainer
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT farsum_maintainer)
  message(FATAL_ERROR "A Debian package names who made it, and there is no commit to take its author from. "
                      "Name somebody with -DFARSUM_DEBIAN_MAINTAINER='Name <address>'.")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME farsum)
set(CPACK_PACKAGE_CONTACT "${farsum_maintainer}")
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL command library development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/debian/stage.cmake")

set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SOURCE farsum)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(farsum_interface "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
set(farsum_exact_version "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(farsum_in_brief "Farsum puts, gets and sums into memory that another process owns, and the
operation finishes while the owner computes. Processes of one machine share
memory; those of several exchange messages over UCX.
")

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME farsum)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
# What MPI programs bring themselves.
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "mpich | openmpi-bin")
set(CPACK_DEBIAN_COMMAND_DESCRIPTION "one-sided communication with atomic reduction - command and MPI fronts
${farsum_in_brief}
This package has the command, which starts jobs, and what it preloads into MPI
programs, so that MPI's one-sided calls run on Farsum: for MPICH, for Open MPI,
and for MPI's standard ABI. Nothing of the program is built again.")

# Both are loaded where they are there: UCX to reach other hosts, PMIx under launchers other than Farsum's.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME "libfarsum${farsum_interface}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS libucx0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS libpmix2)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "one-sided communication with atomic reduction - library
${farsum_in_brief}
This package has the library that programs are linked with.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libfarsum-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libfarsum${farsum_interface} ${farsum_exact_version}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS farsum)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "one-sided communication with atomic reduction - headers
${farsum_in_brief}
This package has the headers, and what pkg-config and CMake read to find the
library: what a program in C or C++ is built with.")

# CMake knows this field from 3.31 on.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_MULTIARCH same)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_MULTIARCH same)

# A program asks for the version of the library that it was linked with, or a newer one of the same interface.
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/debian/shlibs"
     CONTENT "libfarsum ${farsum_interface} libfarsum${farsum_interface} (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${CMAKE_BINARY_DIR}/generated/debian/shlibs"
                                               "${PROJECT_SOURCE_DIR}/cmake/debian/triggers")

# What cmake/debian/stage.cmake reads.
set(CPACK_FARSUM_SOURCE_DIR "${PROJECT_SOURCE_DIR}")
set(CPACK_FARSUM_LIBRARIES "${CMAKE_INSTALL_FULL_LIBDIR}")
set(CPACK_FARSUM_FRONTS "${CMAKE_INSTALL_PREFIX}/${FARSUM_FRONT_DIR}")
set(CPACK_FARSUM_VERSION "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
# dpkg-shlibdeps takes the command and the library, which are built together, for one; and names nothing for Open MPI's
# library, which only a program that has it makes the front load.
set(CPACK_FARSUM_SHLIBS "libfarsum ${farsum_interface} libfarsum${farsum_interface} ${farsum_exact_version}\nlibmpi 40\n")
include(CPack)
