# CPack runs it when the components are installed and before they are packed: adds what Debian wants in each package, and finds
# out what each depends on. CPack's own question to dpkg-shlibdeps cannot leave a library out, and brings scripts that run ldconfig.

# Debian keeps text compressed, without the time at which that was done.
function(compress source target)
  execute_process(COMMAND gzip -9nc "${source}" OUTPUT_FILE "${target}" COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD "${target}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

function(add_documents root package)
  set(folder "${root}/usr/share/doc/${package}")
  configure_file("${CPACK_FARSUM_SOURCE_DIR}/NOTICE" "${folder}/copyright" COPYONLY
                 FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  compress("${CPACK_FARSUM_SOURCE_DIR}/CHANGELOG.md" "${folder}/changelog.gz")
  execute_process(COMMAND git -C "${CPACK_FARSUM_SOURCE_DIR}" log -1 --format=%aD OUTPUT_VARIABLE date
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT date)
    execute_process(COMMAND date --rfc-email OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  endif()
  set(changelog "${CPACK_TEMPORARY_DIRECTORY}/changelog")
  file(WRITE "${changelog}" "farsum (${CPACK_FARSUM_VERSION}) unstable; urgency=medium\n\n"
                            "  * Packages of this version; what is new in it is in changelog.gz.\n\n"
                            " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  compress("${changelog}" "${folder}/changelog.Debian.gz")
  file(REMOVE "${changelog}")
endfunction()

# What lintian warns of, and is meant to be so.
function(add_overrides root package)
  file(WRITE "${root}/usr/share/lintian/overrides/${package}"
       "# It is not uploaded to Debian, where a first version answers a wish in the tracker.\n"
       "${package}: initial-upload-closes-no-bugs *\n")
endfunction()

function(compress_manual root)
  file(GLOB pages "${root}/usr/share/man/man1/*.1")
  foreach(page IN LISTS pages)
    compress("${page}" "${page}.gz")
    file(REMOVE "${page}")
  endforeach()
  # The program that farsum becomes for some of its commands.
  file(CREATE_LINK farsum.1.gz "${root}/usr/share/man/man1/farsum-tools.1.gz" SYMBOLIC)
endfunction()

function(find_dependencies result root)
  file(WRITE "${CPACK_TEMPORARY_DIRECTORY}/debian/control" "")
  file(WRITE "${CPACK_TEMPORARY_DIRECTORY}/debian/shlibs.local" "${CPACK_FARSUM_SHLIBS}")
  file(GLOB programs "${root}${CPACK_FARSUM_LIBRARIES}/*.so*" "${root}${CPACK_FARSUM_FRONTS}/*.so" "${root}/usr/bin/*")
  execute_process(COMMAND dpkg-shlibdeps -O "-l${CPACK_TEMPORARY_DIRECTORY}/library${CPACK_FARSUM_LIBRARIES}" ${programs}
                  WORKING_DIRECTORY "${CPACK_TEMPORARY_DIRECTORY}" OUTPUT_VARIABLE told OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE_RECURSE "${CPACK_TEMPORARY_DIRECTORY}/debian")
  string(REGEX REPLACE "^.*shlibs:Depends=" "" depends "${told}")
  set(${result} "${depends}" PARENT_SCOPE)
endfunction()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER "${component}" upper)
  add_documents("${CPACK_TEMPORARY_DIRECTORY}/${component}" "${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
  add_overrides("${CPACK_TEMPORARY_DIRECTORY}/${component}" "${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
endforeach()
compress_manual("${CPACK_TEMPORARY_DIRECTORY}/command")
find_dependencies(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "${CPACK_TEMPORARY_DIRECTORY}/command")
find_dependencies(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "${CPACK_TEMPORARY_DIRECTORY}/library")
