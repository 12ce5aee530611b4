# What `cpack --config BUILD/CPackConfig.cmake` makes: the Debian packages tamis (the program, the SQLite
# extension), tamis-server (a service of systemd with a user of its own), tamis-redis (the module for Redis and Valkey), libtamis-engine0 and libtamis-filter0 (shared libraries)
# with libtamis-engine-dev and libtamis-filter-dev. It asks dpkg-shlibdeps what they depend on.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tamis)
set(CPACK_PACKAGE_CONTACT "The authors of Tamis <tamis@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL program server redis filter filter_runtime engine engine_runtime)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian_runtime.cmake)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME tamis)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION database)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "secondary indexes that ask only the servers that hold the answer
 Tables in regions with local indexes, asked in SQL: the program tamis with its embedded cluster, and an
 extension by which any program that uses SQLite asks the same tables.")
set(CPACK_DEBIAN_SERVER_PACKAGE_NAME tamis-server)
set(CPACK_DEBIAN_SERVER_PACKAGE_SECTION database)
set(CPACK_DEBIAN_SERVER_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS
  "tamis (= ${PROJECT_VERSION}), systemd | systemd-standalone-sysusers")
set(service_dir ${CMAKE_CURRENT_LIST_DIR}/server)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA
  ${service_dir}/postinst ${service_dir}/prerm ${service_dir}/postrm ${service_dir}/conffiles)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENT_SERVER_DESCRIPTION "serves indexed tables over HTTP
 The service tamis-server of systemd, its user and its configuration /etc/tamis/server.conf. It is not
 started until an administrator has named a store there: systemctl enable --now tamis-server.")
set(CPACK_DEBIAN_FILTER_PACKAGE_NAME libtamis-filter-dev)
set(CPACK_DEBIAN_FILTER_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_FILTER_PACKAGE_DEPENDS "libhwy-dev, libtamis-filter0 (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_FILTER_DESCRIPTION "approximate-membership filters for C++ and C
 Bloom, counting, split counting, cuckoo, quotient and other filters: headers, a static library for C++ and a
 shared one for C.")
set(CPACK_DEBIAN_ENGINE_PACKAGE_NAME libtamis-engine-dev)
set(CPACK_DEBIAN_ENGINE_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_ENGINE_PACKAGE_DEPENDS
  "libtamis-engine0 (= ${PROJECT_VERSION}), libtamis-filter-dev (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_ENGINE_DESCRIPTION "the engine of Tamis as a library for C++
 Opens a store, defines tables and indexes, writes, searches, explains: headers and a shared library.")
set(CPACK_DEBIAN_ENGINE_RUNTIME_PACKAGE_NAME libtamis-engine0)
set(CPACK_DEBIAN_ENGINE_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_ENGINE_RUNTIME_DESCRIPTION "the engine of Tamis as a shared library
 What programs need that were built with libtamis-engine-dev.")
set(CPACK_DEBIAN_FILTER_RUNTIME_PACKAGE_NAME libtamis-filter0)
set(CPACK_DEBIAN_FILTER_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_FILTER_RUNTIME_DESCRIPTION "approximate-membership filters as a shared library for C
 What programs need that were use the filters through tamis/filter.h.")
set(CPACK_DEBIAN_REDIS_PACKAGE_NAME tamis-redis)
set(CPACK_DEBIAN_REDIS_PACKAGE_SECTION database)
set(CPACK_DEBIAN_REDIS_PACKAGE_ENHANCES "redis-server, valkey-server")
set(CPACK_COMPONENT_REDIS_DESCRIPTION "filters for Redis and Valkey: a module
 Bloom and cuckoo filters with the commands of RedisBloom, and filters that keep lookups of rows that do not
 exist away from a database. redis.conf loads it: include /usr/share/tamis/tamis_redis.conf")
# Built where PostgreSQL's development files are, for that version.
if(TARGET tamis_fdw)
  get_directory_property(pg_major DIRECTORY ${PROJECT_SOURCE_DIR}/postgres DEFINITION pg_major)
  list(APPEND CPACK_COMPONENTS_ALL postgres)
  set(CPACK_DEBIAN_POSTGRES_PACKAGE_NAME postgresql-${pg_major}-tamis-fdw)
  set(CPACK_DEBIAN_POSTGRES_PACKAGE_SECTION database)
  set(CPACK_DEBIAN_POSTGRES_PACKAGE_DEPENDS postgresql-${pg_major})
  set(CPACK_COMPONENT_POSTGRES_DESCRIPTION "foreign tables of PostgreSQL in a Tamis store
 Asks a tamis serve; conditions, order, limits and aggregates are evaluated by the store.")
endif()
include(CPack)
