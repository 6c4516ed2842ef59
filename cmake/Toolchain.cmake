# Compiler settings that hold for every target: standards, warnings, visibility, sanitizers, where outputs go.
option(FARSUM_BUILD_TESTS "Build the tests" ON)
option(FARSUM_WERROR "Treat warnings as errors" ON)
set(FARSUM_SANITIZE "" CACHE STRING "Sanitizers to build with: empty, 'address,undefined' or 'thread'")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

# No -g in release: object files then do not depend on the build folder.
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

# In C, -Wconversion brings -Wsign-conversion with it; in C++ it does not.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
if(FARSUM_WERROR)
  add_compile_options(-Werror)
endif()

if(FARSUM_SANITIZE)
  add_compile_options(-fsanitize=${FARSUM_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${FARSUM_SANITIZE})
  # Instrumented code confuses this warning; the release build still has it.
  add_compile_options(-Wno-maybe-uninitialized)
  if(FARSUM_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  if(FARSUM_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-error=tsan)
  endif()
endif()

# Most of a file's time is its headers' and what it instantiates of them, which those that are compiled at once share; a changed
# file takes as long as all. They share their unnamed namespace; where two use a name in it differently, one of them is renamed.
option(FARSUM_UNITY "Compile the sources of a component or program at once" ON)
if(FARSUM_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # It takes the unnamed namespace of a file that is compiled with others for that of a header.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  # It looks for memory that it can use again only once it has much: that takes a tenth of its time.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1000000>)
endif()
function(farsum_compile_together target)
  farsum_compile_some_together(${target} 32)
endfunction()

# So many at once, where all would be too much to wait for after each change.
function(farsum_compile_some_together target at_once)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${FARSUM_UNITY} UNITY_BUILD_BATCH_SIZE ${at_once})
endfunction()

# The same with named groups, each of which is compiled at once: one more group for each call on a target.
function(farsum_compile_group target name)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${FARSUM_UNITY} UNITY_BUILD_MODE GROUP)
  set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${name})
endfunction()

set(FARSUM_X86_64 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(FARSUM_X86_64 ON)
endif()
