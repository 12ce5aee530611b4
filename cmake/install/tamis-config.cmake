# find_package(tamis): the targets tamis::filter (C++, static) and tamis::filter_c (C, shared).
include(CMakeFindDependencyMacro)
find_dependency(PkgConfig)
pkg_check_modules(XXHASH QUIET IMPORTED_TARGET libxxhash)
pkg_check_modules(HWY QUIET IMPORTED_TARGET libhwy)
if(NOT XXHASH_FOUND OR NOT HWY_FOUND)
  set(tamis_FOUND FALSE)
  set(tamis_NOT_FOUND_MESSAGE
    "tamis::filter needs xxHash and Highway; pkg-config does not find both (Debian: libxxhash-dev, libhwy-dev)")
  return()
endif()
include(${CMAKE_CURRENT_LIST_DIR}/tamis-targets.cmake)
