# find_package(tamis [COMPONENTS engine filter filter_c]): the targets tamis::engine (C++, shared),
# tamis::filter (C++, static), which needs Highway's development files, and tamis::filter_c (C, shared).
# The shared ones need no development files but ours. Who names no component gets those that can be had.
include(${CMAKE_CURRENT_LIST_DIR}/tamis-filter-c-targets.cmake)
set(tamis_filter_c_FOUND TRUE)

set(tamis_filter_FOUND FALSE)
if(NOT tamis_FIND_COMPONENTS OR "filter" IN_LIST tamis_FIND_COMPONENTS)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(HWY QUIET IMPORTED_TARGET libhwy)
  endif()
  if(HWY_FOUND)
    include(${CMAKE_CURRENT_LIST_DIR}/tamis-filter-targets.cmake)
    set(tamis_filter_FOUND TRUE)
  endif()
endif()

include(${CMAKE_CURRENT_LIST_DIR}/tamis-engine-targets.cmake OPTIONAL RESULT_VARIABLE tamis_engine_FOUND)

foreach(component IN LISTS tamis_FIND_COMPONENTS)
  if(tamis_FIND_REQUIRED_${component} AND NOT tamis_${component}_FOUND)
    set(tamis_FOUND FALSE)
    if(component STREQUAL "filter")
      set(tamis_NOT_FOUND_MESSAGE
        "tamis::filter needs Highway, which pkg-config does not find (Debian: libhwy-dev, pkg-config)")
    elseif(component STREQUAL "engine")
      set(tamis_NOT_FOUND_MESSAGE
        "tamis::engine is not installed beside the filters (cmake --install BUILD --component engine)")
    else()
      set(tamis_NOT_FOUND_MESSAGE
        "tamis has no component \"${component}\", only engine, filter and filter_c")
    endif()
  endif()
endforeach()
