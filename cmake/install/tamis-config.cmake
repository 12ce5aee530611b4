# find_package(tamis [COMPONENTS engine filter filter_c hbase lsm]): the targets tamis::engine (C++, shared),
# tamis::filter (C++, static), which needs Highway's development files, tamis::filter_c (C, shared),
# tamis::hbase (C++, static), which needs those of protobuf, OpenSSL, Kerberos and pugixml, and tamis::lsm (C++, static), which needs
# tamis::filter and RocksDB's. The shared ones need no development files but ours.
# Who names no component gets those that are installed and can be had.
set(tamis_filter_c_FOUND FALSE)
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/tamis-filter-c-targets.cmake)
  include(${CMAKE_CURRENT_LIST_DIR}/tamis-filter-c-targets.cmake)
  set(tamis_filter_c_FOUND TRUE)
endif()

set(tamis_filter_FOUND FALSE)
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/tamis-filter-targets.cmake
    AND (NOT tamis_FIND_COMPONENTS OR "filter" IN_LIST tamis_FIND_COMPONENTS
         OR "lsm" IN_LIST tamis_FIND_COMPONENTS))
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
  find_package(OpenSSL 3 QUIET)
  find_package(Protobuf QUIET)
  find_package(pugixml QUIET)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(KRB5 QUIET IMPORTED_TARGET krb5-gssapi krb5)
  endif()
  find_package(Threads QUIET)
  if(OPENSSL_FOUND AND Protobuf_FOUND AND pugixml_FOUND AND KRB5_FOUND AND Threads_FOUND)
    if(NOT TARGET tamis::hbase_base)
      add_library(tamis::hbase_base STATIC IMPORTED)
      set_target_properties(tamis::hbase_base PROPERTIES
        IMPORTED_LOCATION ${CMAKE_CURRENT_LIST_DIR}/../../libtamis_base.a)
    endif()
    include(${CMAKE_CURRENT_LIST_DIR}/tamis-hbase-targets.cmake)
    set(tamis_hbase_FOUND TRUE)
  endif()
endif()

set(tamis_lsm_FOUND FALSE)
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/tamis-lsm-targets.cmake AND tamis_filter_FOUND
    AND (NOT tamis_FIND_COMPONENTS OR "lsm" IN_LIST tamis_FIND_COMPONENTS))
  include(${CMAKE_CURRENT_LIST_DIR}/tamis-lsm-rocksdb.cmake)
  find_package(RocksDB CONFIG QUIET)
  find_package(Threads QUIET)
  # What overrides a class of one RocksDB is of no use with another.
  if(RocksDB_FOUND AND Threads_FOUND AND RocksDB_VERSION VERSION_EQUAL tamis_lsm_rocksdb)
    include(${CMAKE_CURRENT_LIST_DIR}/tamis-lsm-targets.cmake)
    set(tamis_lsm_FOUND TRUE)
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
        "tamis::hbase needs protobuf, OpenSSL, Kerberos, pugixml and threads, which are not all found (Debian: \
libprotobuf-dev, libssl-dev, libkrb5-dev, libpugixml-dev, pkg-config)")
    elseif(component STREQUAL "lsm" AND EXISTS ${CMAKE_CURRENT_LIST_DIR}/tamis-lsm-targets.cmake)
      set(tamis_NOT_FOUND_MESSAGE
        "tamis::lsm needs tamis::filter (cmake --install BUILD --component filter), with Highway, and the RocksDB \
that it was built with (Debian: libhwy-dev, pkg-config, librocksdb-dev)")
    elseif(component STREQUAL "engine")
      set(tamis_NOT_FOUND_MESSAGE
        "tamis::engine is not installed beside the filters (cmake --install BUILD --component engine)")
    elseif(component MATCHES "^(filter|filter_c|hbase|lsm)$")
      set(tamis_NOT_FOUND_MESSAGE
        "tamis::${component} is not installed here (cmake --install BUILD --component NAME)")
    else()
      set(tamis_NOT_FOUND_MESSAGE
        "tamis has no component \"${component}\", only engine, filter, filter_c, hbase and lsm")
    endif()
  endif()
endforeach()
