# What `cpack --config BUILD/CPackConfig.cmake` makes: the Debian packages tamis (the program, the SQLite
# extension), libtamis-filter-dev (the filter library) and libtamis-engine-dev (the engine). It asks dpkg-shlibdeps what they depend on.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tamis)
set(CPACK_PACKAGE_CONTACT "The authors of Tamis <tamis@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL program filter engine)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME tamis)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION database)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "secondary indexes that ask only the servers that hold the answer
 Tables in regions with local indexes, asked in SQL: the program tamis with its embedded cluster, and an
 extension by which any program that uses SQLite asks the same tables.")
set(CPACK_DEBIAN_FILTER_PACKAGE_NAME libtamis-filter-dev)
set(CPACK_DEBIAN_FILTER_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_FILTER_PACKAGE_DEPENDS "libhwy-dev")
set(CPACK_COMPONENT_FILTER_DESCRIPTION "approximate-membership filters for C++ and C
 Bloom, counting, split counting, cuckoo, quotient and other filters: headers, a static library for C++ and a
 shared one for C.")
set(CPACK_DEBIAN_ENGINE_PACKAGE_NAME libtamis-engine-dev)
set(CPACK_DEBIAN_ENGINE_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_ENGINE_PACKAGE_DEPENDS "libtamis-filter-dev (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_ENGINE_DESCRIPTION "the engine of Tamis as a library for C++
 Opens a store, defines tables and indexes, writes, searches, explains: headers and a shared library.")
include(CPack)
