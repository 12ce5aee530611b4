# What `cmake --install BUILD --component engine` puts where: the engine as a shared library, with its
# headers. It wants the component filter beside it, which has find_package's files and base/status.h.
install(TARGETS tamis_engine EXPORT tamis-engine
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT engine
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT engine)
# The shared library alone, for a package of its own.
install(TARGETS tamis_engine
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP COMPONENT engine_runtime)
install(EXPORT tamis-engine FILE tamis-engine-targets.cmake NAMESPACE tamis::
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tamis COMPONENT engine)
file(RELATIVE_PATH up_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tamis-engine.pc.in tamis-engine.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tamis-engine.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT engine)
