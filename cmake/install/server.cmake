# What `cmake --install BUILD --component server` puts where: the service tamis-server of systemd, its
# user and its configuration. /etc is taken as it is, since the service names it.
install(FILES ${CMAKE_CURRENT_LIST_DIR}/server/tamis-server.service
  ${CMAKE_CURRENT_LIST_DIR}/server/tamis-server.socket
  DESTINATION lib/systemd/system COMPONENT server EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/server/tamis-server.sysusers RENAME tamis-server.conf
  DESTINATION lib/sysusers.d COMPONENT server EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/tools/monitoring/alerts.yml ${PROJECT_SOURCE_DIR}/tools/monitoring/dashboard.json
  DESTINATION share/tamis/monitoring COMPONENT server EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/server/server.conf
  DESTINATION /etc/tamis COMPONENT server EXCLUDE_FROM_ALL)
