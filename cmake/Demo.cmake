# What `make demo` shows, and nothing else, in the order in which it is shown (tools/demo). Where something is not built here, for
# want of what it needs, its target builds nothing, and the demo says so. Of the command that is `farsum run` and `farsum mpi`.
function(farsum_add_demo_part name)
  add_custom_target(${name})
  foreach(target IN LISTS ARGN)
    if(TARGET ${target})
      add_dependencies(${name} ${target})
    endif()
  endforeach()
endfunction()

farsum_add_demo_part(demo_mpich farsum_cli farsum_mpi_front_mpich)
farsum_add_demo_part(demo_openmpi farsum_cli farsum_mpi_front_openmpi)
farsum_add_demo_part(demo_fock farsum_cli app_fock)
farsum_add_demo_part(demo demo_mpich demo_openmpi demo_fock)
