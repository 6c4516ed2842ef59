# Finds MPI for each of its three ABIs (mpich, openmpi, abi) and offers, where found, the targets
#   farsum_mpi_ABI_headers   mpi.h of that ABI (as a system folder)
#   farsum_mpi_ABI           the same, and what a plain MPI program links
#   farsum_mpi_ABI_fortran   the module mpi and what a Fortran program links (Debian's mpich and openmpi only)
# Debian's libmpich-dev and libopenmpi-dev come first; then the libraries that tools/mpi_libraries put into
# ${FARSUM_MPI_HOME}/{mpich5,openmpi5,impi}. What is missing is said and passed over; no compiler wrapper is called.
#
# A program of the MPICH ABI needs `libmpi.so.12`, the name that MPICH 5 and Intel MPI carry; Debian's MPICH is `libmpich.so.12`.
# So it is linked against an empty copy of that name (functions without a body, from Debian's list of symbols), and its
# RUNPATH ends in build/lib/mpi/mpich, where `libmpi.so.12` is a link to Debian's file. It therefore runs as it is under
# Debian's mpirun, and under the others with LD_LIBRARY_PATH=<prefix>/lib, which comes before a RUNPATH.

if(DEFINED ENV{FARSUM_MPI_HOME})
  set(farsum_mpi_home_default "$ENV{FARSUM_MPI_HOME}")
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(farsum_mpi_home_default "$ENV{XDG_CACHE_HOME}/farsum/mpi")
else()
  set(farsum_mpi_home_default "$ENV{HOME}/.cache/farsum/mpi")
endif()
set(FARSUM_MPI_HOME "${farsum_mpi_home_default}" CACHE PATH "Where tools/mpi_libraries put MPICH 5, Open MPI 5 and Intel MPI")
set(FARSUM_MPI_LINK_DIR "${CMAKE_BINARY_DIR}/lib/mpi")  # names of libraries that programs find at run time

# A missing find leaves no entry in the cache, so that the next configure looks again.
function(farsum_mpi_find_header result)
  find_path(found NO_CACHE ${ARGN} NO_DEFAULT_PATH)
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

function(farsum_mpi_find_library result)
  find_library(found NO_CACHE ${ARGN})
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

function(farsum_mpi_add_headers abi include_dir)
  add_library(farsum_mpi_${abi}_headers INTERFACE)
  target_include_directories(farsum_mpi_${abi}_headers SYSTEM INTERFACE "${include_dir}")
  # The C++ bindings that MPI-3 removed are not wanted.
  target_compile_definitions(farsum_mpi_${abi}_headers INTERFACE MPICH_SKIP_MPICXX OMPI_SKIP_MPICXX)
endfunction()

# Makes a library of this soname with all functions of another, none with a body, for the linker's eyes only.
function(farsum_mpi_add_stub target soname library)
  execute_process(COMMAND "${CMAKE_NM}" -D --defined-only "${library}" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL " [TW] [A-Za-z0-9_]+" symbols "${symbols}")
  set(body "")
  foreach(symbol IN LISTS symbols)
    string(SUBSTRING "${symbol}" 3 -1 name)
    string(APPEND body "__asm__(\".globl ${name}\\n.type ${name},@function\\n${name}:\");\n")
  endforeach()
  set(source "${CMAKE_BINARY_DIR}/generated/mpi/${target}.c")
  file(CONFIGURE OUTPUT "${source}" CONTENT "extern int farsum_stub;\n${body}" @ONLY)
  add_library(${target} SHARED "${source}")
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/mpi/stub" OUTPUT_NAME "${target}")
  target_compile_options(${target} PRIVATE -fno-lto)
  target_link_options(${target} PRIVATE -nostdlib "-Wl,-soname,${soname}")
  set_target_properties(${target} PROPERTIES NO_SONAME ON)  # the option above names it
endfunction()

function(farsum_mpi_link_name folder name library)
  file(MAKE_DIRECTORY "${FARSUM_MPI_LINK_DIR}/${folder}")
  file(CREATE_LINK "${library}" "${FARSUM_MPI_LINK_DIR}/${folder}/${name}" SYMBOLIC)
endfunction()

# The rpath is spelt here, for CMake's own would name the stub's folder.
function(farsum_mpi_add_program_target abi library rpath)
  add_library(farsum_mpi_${abi} INTERFACE)
  target_link_libraries(farsum_mpi_${abi} INTERFACE farsum_mpi_${abi}_headers)
  target_link_options(farsum_mpi_${abi} INTERFACE -Wl,--no-as-needed -Wl,--allow-shlib-undefined -Wl,--enable-new-dtags)
  if(TARGET "${library}")
    add_dependencies(farsum_mpi_${abi} ${library})
    target_link_options(farsum_mpi_${abi} INTERFACE "$<TARGET_FILE:${library}>")
  else()
    target_link_options(farsum_mpi_${abi} INTERFACE "${library}")
  endif()
  if(rpath)
    target_link_options(farsum_mpi_${abi} INTERFACE "-Wl,-rpath,${rpath}")
  endif()
endfunction()

function(farsum_mpi_find_mpich)
  farsum_mpi_find_header(include NAMES mpi.h PATHS "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/mpich" "${FARSUM_MPI_HOME}/mpich5/include")
  farsum_mpi_find_library(library NAMES libmpich.so.12 libmpi.so.12 PATHS "${FARSUM_MPI_HOME}/mpich5/lib")
  if(NOT include OR NOT library)
    message(STATUS "MPICH is not here: no programs of its ABI (apt-get install libmpich-dev, or tools/mpi_libraries)")
    return()
  endif()
  farsum_mpi_add_headers(mpich "${include}")
  farsum_mpi_add_stub(farsum_mpi_mpich_stub libmpi.so.12 "${library}")
  farsum_mpi_link_name(mpich libmpi.so.12 "${library}")
  farsum_mpi_add_program_target(mpich farsum_mpi_mpich_stub "${FARSUM_MPI_LINK_DIR}/mpich")
endfunction()

function(farsum_mpi_find_openmpi)
  farsum_mpi_find_header(include NAMES mpi.h PATHS "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/include" "${FARSUM_MPI_HOME}/openmpi5/include")
  farsum_mpi_find_library(library NAMES libmpi.so.40 PATHS "${FARSUM_MPI_HOME}/openmpi5/lib")
  if(NOT include OR NOT library)
    message(STATUS "Open MPI is not here: no programs of its ABI (apt-get install libopenmpi-dev, or tools/mpi_libraries)")
    return()
  endif()
  farsum_mpi_add_headers(openmpi "${include}")
  cmake_path(GET library PARENT_PATH folder)
  if(folder STREQUAL "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
    set(folder "")
  endif()
  farsum_mpi_add_program_target(openmpi "${library}" "${folder}")
endfunction()

function(farsum_mpi_find_abi)
  set(prefixes "${FARSUM_MPI_HOME}/mpich5" "${FARSUM_MPI_HOME}/impi")
  list(TRANSFORM prefixes APPEND "/include" OUTPUT_VARIABLE include_dirs)
  list(TRANSFORM prefixes APPEND "/lib" OUTPUT_VARIABLE library_dirs)
  farsum_mpi_find_header(include NAMES mpi_abi.h PATHS ${include_dirs})
  farsum_mpi_find_library(library NAMES libmpi_abi.so.1 PATHS ${library_dirs})
  if(NOT include OR NOT library)
    message(STATUS "MPI's standard ABI is not here: no programs of it (tools/mpi_libraries fetches it with MPICH 5)")
    return()
  endif()
  # Programs say <mpi.h>; beside mpi_abi.h lies a mpi.h of another ABI.
  set(header_dir "${CMAKE_BINARY_DIR}/generated/mpi/abi")
  file(CONFIGURE OUTPUT "${header_dir}/mpi.h" CONTENT "#include \"${include}/mpi_abi.h\"\n" @ONLY)
  farsum_mpi_add_headers(abi "${header_dir}")
  cmake_path(GET library PARENT_PATH folder)
  farsum_mpi_add_program_target(abi "${library}" "${folder}")
endfunction()

# The module files are Debian's, for gfortran; the wheels bring none. Intel's libmpifort.so.12 has the functions of Debian's
# libmpichfort.so.12, so the first of the two names is linked, as for C.
function(farsum_mpi_find_fortran abi module_fallback)
  if(NOT TARGET farsum_mpi_${abi})
    return()
  endif()
  farsum_mpi_find_header(modules NAMES mpi.mod PATHS "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/fortran/gfortran-mod-15/${abi}"
    "${module_fallback}")
  set(libraries "")
  foreach(name IN LISTS ARGN)
    farsum_mpi_find_library(library NAMES ${name})
    list(APPEND libraries "${library}")
  endforeach()
  if(NOT modules OR "${libraries}" MATCHES "NOTFOUND")
    message(STATUS "The Fortran module of ${abi} is not here: no Fortran programs of its ABI")
    return()
  endif()
  add_library(farsum_mpi_${abi}_fortran INTERFACE)
  target_include_directories(farsum_mpi_${abi}_fortran INTERFACE "${modules}")
  if(abi STREQUAL "mpich")
    farsum_mpi_add_stub(farsum_mpi_mpichfort_stub libmpifort.so.12 "${libraries}")
    farsum_mpi_link_name(mpich libmpifort.so.12 "${libraries}")
    add_dependencies(farsum_mpi_mpich_fortran farsum_mpi_mpichfort_stub)
    set(libraries "$<TARGET_FILE:farsum_mpi_mpichfort_stub>")
  endif()
  target_link_options(farsum_mpi_${abi}_fortran INTERFACE -Wl,--no-as-needed ${libraries})
  target_link_libraries(farsum_mpi_${abi}_fortran INTERFACE farsum_mpi_${abi})
endfunction()

farsum_mpi_find_mpich()
farsum_mpi_find_openmpi()
farsum_mpi_find_abi()
farsum_mpi_find_fortran(mpich "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/mpich" libmpichfort.so.12)
farsum_mpi_find_fortran(openmpi "" libmpi_usempi_ignore_tkr.so.40 libmpi_mpifh.so.40)
