# Read behind project() where the compiler is zig's, which brings a C library of its own. This machine's headers must not come
# before that one's: what lies beside them is seen through FARSUM_FOREIGN_HEADERS alone, a folder with links to what is wanted.
list(APPEND CMAKE_C_IMPLICIT_INCLUDE_DIRECTORIES /usr/include)
list(APPEND CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES /usr/include)
include_directories(SYSTEM "${FARSUM_FOREIGN_HEADERS}")

# Its runtime lacks what __builtin_cpu_supports asks; GCC's archive has it, and is linked behind all else for that alone. Stacks
# are unwound by GCC's library, by which glibc itself ends a thread: of two kinds neither knows the other's frames.
foreach(name IN ITEMS libgcc.a libgcc_s.so.1)
  execute_process(COMMAND gcc -print-file-name=${name} OUTPUT_VARIABLE farsum_of_gcc OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " ${farsum_of_gcc}")
endforeach()
# That library may want a newer glibc here than where it will be.
add_link_options(-Wl,--allow-shlib-undefined)
