# The engine: one static library per component under src/, in dependency order, and libfarsum.so made of all of them.

# Each line names a component and the components it may link to (their own dependencies follow). The same arrows, file by file,
# are held by tools/check_includes.
set(FARSUM_COMPONENTS base os lockfree ops cost trees cluster promotion memory transport transport/sim transport/trace
                      protocol variants/read_copies liveness progress window variants/cards variants/leases
                      collectives runtime capi)
# What only tests and benchmarks run. It is no part of libfarsum.so, which is built without waiting for it.
set(FARSUM_COMPONENTS_OF_TESTS cluster transport/sim transport/trace)
set(FARSUM_NEEDS_base "")
set(FARSUM_NEEDS_os base)
set(FARSUM_NEEDS_lockfree os)
set(FARSUM_NEEDS_ops lockfree)
set(FARSUM_NEEDS_cost ops)
set(FARSUM_NEEDS_trees cost)
set(FARSUM_NEEDS_cluster trees)
set(FARSUM_NEEDS_promotion os)
set(FARSUM_NEEDS_memory cost)
set(FARSUM_NEEDS_transport cost)
set(FARSUM_NEEDS_transport_sim transport)
set(FARSUM_NEEDS_transport_trace transport)
# What carries out a window's operations, or serves at its owner, is on top of these, which know it by an interface.
set(FARSUM_NEEDS_protocol memory transport)
set(FARSUM_NEEDS_variants_read_copies protocol)
set(FARSUM_NEEDS_variants_cards window)
set(FARSUM_NEEDS_variants_leases window)
set(FARSUM_NEEDS_liveness protocol)
set(FARSUM_NEEDS_progress liveness)
set(FARSUM_NEEDS_window variants_read_copies progress)
set(FARSUM_NEEDS_collectives window trees)
set(FARSUM_NEEDS_runtime collectives promotion variants_cards variants_leases)
set(FARSUM_NEEDS_capi runtime)

# Instruction sets are chosen when the library starts, so each kernel file alone is compiled for its own.
function(farsum_set_kernel_options)
  foreach(source IN LISTS ARGN)
    set(flags "")
    if(source MATCHES "/src/ops/kernels_[^/]*\\.cpp$")
      list(APPEND flags "$<$<CONFIG:Release>:-O3>")
    endif()
    if(source MATCHES "/src/ops/[^/]*_avx2\\.cpp$")
      list(APPEND flags -mavx2 -mfma)
    elseif(source MATCHES "/src/ops/[^/]*_avx512\\.cpp$")
      list(APPEND flags -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mprefer-vector-width=512)
    endif()
    if(flags)
      set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS "${flags}")
    endif()
  endforeach()
endfunction()

# Tests have these of their own (tests/counted).
set_source_files_properties(src/protocol/packed_sides.cpp src/ops/layout.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# What is compiled beside the hot calls decides what the compiler still inlines into them.
set_source_files_properties(src/capi/reductions.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# The sources of a component: all below its folder that are no other component's.
function(farsum_component_sources result component)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${component}/*.cpp")
  foreach(other IN LISTS FARSUM_COMPONENTS)
    string(FIND "${other}" "${component}/" found)
    if(found EQUAL 0)
      list(FILTER sources EXCLUDE REGEX "/src/${other}/")
    endif()
  endforeach()
  set(${result} "${sources}" PARENT_SCOPE)
endfunction()

# A component is compiled at once; transports, which share little but the contract, a folder each.
function(farsum_compile_component component sources)
  farsum_compile_together(farsum_${component})
  if(component STREQUAL "transport")
    foreach(source IN LISTS sources)
      cmake_path(GET source PARENT_PATH folder)
      cmake_path(GET folder FILENAME group)
      # Cards are reached through UCX, and share its headers.
      if(group STREQUAL "rdma")
        set(group ucx)
      endif()
      farsum_compile_group(farsum_${component} ${group} "${source}")
    endforeach()
  endif()
endfunction()

# Adds farsum_<name> from the sources below src/<component>. A component without sources becomes an interface library, so that
# the names always exist.
function(farsum_add_component component)
  string(REPLACE "/" "_" name "${component}")
  farsum_component_sources(sources "${component}")
  if(NOT FARSUM_X86_64)
    list(FILTER sources EXCLUDE REGEX "_(avx2|avx512)\\.cpp$")
  endif()

  # A file X_absent.cpp stands for what is left out where a library's headers were not found.
  if(component STREQUAL "transport" AND NOT UCX_FOUND)
    set(left_out ${sources})
    list(FILTER left_out INCLUDE REGEX "/src/transport/(ucx|rdma)/")
    list(FILTER left_out EXCLUDE REGEX "(_absent|/ucx_text|/ucx_sealed)\\.cpp$")
    list(REMOVE_ITEM sources ${left_out})
  elseif(component STREQUAL "runtime" AND NOT PMIX_FOUND)
    list(FILTER sources EXCLUDE REGEX "/pmix_client\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "_absent\\.cpp$")
  endif()

  set(kind PUBLIC)
  if(sources)
    farsum_set_kernel_options(${sources})
    add_library(farsum_${name} STATIC ${sources})
    farsum_compile_component(${name} "${sources}")
    if(NOT component IN_LIST FARSUM_COMPONENTS_OF_TESTS)
      set_property(GLOBAL APPEND PROPERTY FARSUM_ARCHIVES farsum_${name})
    endif()
  else()
    add_library(farsum_${name} INTERFACE)
    set(kind INTERFACE)
  endif()

  target_include_directories(farsum_${name} ${kind} "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_compile_definitions(farsum_${name} ${kind} FARSUM_HAS_X86_KERNELS=$<BOOL:${FARSUM_X86_64}>)
  if(component STREQUAL "transport" AND UCX_FOUND)
    # Its headers only: the library is found at run time, or is the one that an MPI library has loaded.
    target_include_directories(farsum_${name} SYSTEM ${kind} ${UCX_INCLUDE_DIRS})
  endif()
  if(component STREQUAL "runtime" AND PMIX_FOUND)
    # Its headers only, as above.
    target_include_directories(farsum_${name} SYSTEM PRIVATE ${PMIX_INCLUDE_DIRS})
  endif()
  if(component STREQUAL "base")
    target_link_libraries(farsum_${name} ${kind} ${FARSUM_FMT} Threads::Threads)
  endif()
  if(component STREQUAL "runtime")
    target_link_libraries(farsum_${name} PRIVATE nlohmann_json::nlohmann_json)
  endif()
  foreach(need IN LISTS FARSUM_NEEDS_${name})
    target_link_libraries(farsum_${name} ${kind} farsum_${need})
  endforeach()
endfunction()

# farsum_engine is the whole engine as static libraries, for the launcher, the tests and the benches that need internals.
function(farsum_add_engine)
  add_library(farsum_engine INTERFACE)
  foreach(component IN LISTS FARSUM_COMPONENTS)
    farsum_add_component(${component})
  endforeach()
  target_link_libraries(farsum_engine INTERFACE farsum_capi)
endfunction()

# The only exported symbols are farsum_*, of the version of the interface: cmake/farsum.map hides the rest, the libraries'
# templates included. Before version 1 each minor version may change the interface and is a library of its own.
function(farsum_add_shared_library)
  get_property(archives GLOBAL PROPERTY FARSUM_ARCHIVES)
  file(WRITE "${CMAKE_BINARY_DIR}/farsum_anchor.cpp.new" "// libfarsum.so takes its contents from the component archives.\n")
  configure_file("${CMAKE_BINARY_DIR}/farsum_anchor.cpp.new" "${CMAKE_BINARY_DIR}/farsum_anchor.cpp" COPYONLY)
  add_library(farsum SHARED "${CMAKE_BINARY_DIR}/farsum_anchor.cpp")
  set(interface_version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set_target_properties(farsum PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${interface_version})
  # A wheel holds no links, so that the file has the one name by which programs ask for it (cmake/Install.cmake).
  if(SKBUILD)
    set_target_properties(farsum PROPERTIES VERSION ${interface_version})
  endif()
  target_include_directories(farsum INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>")

  set(map "${PROJECT_SOURCE_DIR}/cmake/farsum.map")
  target_link_options(farsum PRIVATE "-Wl,--version-script=${map}")
  if(NOT FARSUM_SANITIZE)
    target_link_options(farsum PRIVATE -Wl,-z,defs)
  endif()
  set_property(TARGET farsum APPEND PROPERTY LINK_DEPENDS "${map}")
  foreach(archive IN LISTS archives)
    add_dependencies(farsum ${archive})
    set_property(TARGET farsum APPEND PROPERTY LINK_DEPENDS "$<TARGET_FILE:${archive}>")
    # Words of their own, for a compiler that takes no file for an option of the linker.
    target_link_libraries(farsum PRIVATE -Wl,--whole-archive "$<TARGET_FILE:${archive}>" -Wl,--no-whole-archive)
  endforeach()
  target_link_libraries(farsum PRIVATE ${FARSUM_FMT} Threads::Threads)
endfunction()
