# Run at each build: writes the commit of the sources where it has changed, so that what names it alone is built again.
# Arguments: SOURCE_DIR, OUTPUT.
set(commit "")
find_program(GIT_PROGRAM git)
if(GIT_PROGRAM AND EXISTS "${SOURCE_DIR}/.git")
  execute_process(COMMAND "${GIT_PROGRAM}" --no-optional-locks -C "${SOURCE_DIR}" describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#include \"cli/built_commit.hpp\"
std::string_view farsum::cli::built_commit() { return \"${commit}\"; }
")
