# Before cpack makes the packages: shared libraries are in packages of their own, so the files of
# the components `engine` and `filter` that those have are not in the -dev packages as well.
foreach(component engine filter)
  file(GLOB_RECURSE libraries LIST_DIRECTORIES false
    "${CPACK_TEMPORARY_DIRECTORY}/${component}/*/libtamis_*.so.*")
  if(libraries)
    file(REMOVE ${libraries})
  endif()
endforeach()
