# find_package(tamis [COMPONENTS engine filter filter_c hbase]): the targets tamis::engine (C++, shared),
# tamis::filter (C++, static), which needs Highway's development files, tamis::filter_c (C, shared), and
# tamis::hbase (C++, static), which needs protobuf's. The shared ones need no development files but ours.
# Who names no component gets those that are installed and can be had.
set(tamis_filter_c_FOUND FALSE)
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/tamis-filter-c-targets.cmake)
  include(${CMAKE_CURRENT_LIST_DIR}/tamis-filter-c-targets.cmake)
  set(tamis_filter_c_FOUND TRUE)
endif()

set(tamis_filter_FOUND FALSE)
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/tamis-filter-targets.cmake
    AND (NOT tamis_FIND_COMPONENTS OR "filter" IN_LIST tamis_FIND_COMPONENTS))
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

set(tamis_hbase_FOUND FALSE)
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/tamis-hbase-targets.cmake
    AND (NOT tamis_FIND_COMPONENTS OR "hbase" IN_LIST tamis_FIND_COMPONENTS))
  find_package(Protobuf QUIET)
  find_package(Threads QUIET)
  if(Protobuf_FOUND AND Threads_FOUND)
    if(NOT TARGET tamis::hbase_base)
      add_library(tamis::hbase_base STATIC IMPORTED)
      set_target_properties(tamis::hbase_base PROPERTIES
        IMPORTED_LOCATION ${CMAKE_CURRENT_LIST_DIR}/../../libtamis_base.a)
    endif()
    include(${CMAKE_CURRENT_LIST_DIR}/tamis-hbase-targets.cmake)
    set(tamis_hbase_FOUND TRUE)
  endif()
endif()

foreach(component IN LISTS tamis_FIND_COMPONENTS)
  if(tamis_FIND_REQUIRED_${component} AND NOT tamis_${component}_FOUND)
    set(tamis_FOUND FALSE)
    if(component STREQUAL "filter" AND EXISTS ${CMAKE_CURRENT_LIST_DIR}/tamis-filter-targets.cmake)
      set(tamis_NOT_FOUND_MESSAGE
        "tamis::filter needs Highway, which pkg-config does not find (Debian: libhwy-dev, pkg-config)")
    elseif(component STREQUAL "hbase" AND EXISTS ${CMAKE_CURRENT_LIST_DIR}/tamis-hbase-targets.cmake)
      set(tamis_NOT_FOUND_MESSAGE
        "tamis::hbase needs protobuf and threads, which are not found (Debian: libprotobuf-dev)")
    elseif(component STREQUAL "engine")
      set(tamis_NOT_FOUND_MESSAGE
        "tamis::engine is not installed beside the filters (cmake --install BUILD --component engine)")
    elseif(component MATCHES "^(filter|filter_c|hbase)$")
      set(tamis_NOT_FOUND_MESSAGE
        "tamis::${component} is not installed here (cmake --install BUILD --component NAME)")
    else()
      set(tamis_NOT_FOUND_MESSAGE
        "tamis has no component \"${component}\", only engine, filter, filter_c and hbase")
    endif()
  endif()
endforeach()
