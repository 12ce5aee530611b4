# Which RocksDB the filter for a RocksDB (tamis/lsm) is compiled with: that of find_package, so of CMAKE_PREFIX_PATH, or
# the one under TAMIS_ROCKSDB_ROOT, which is found without a CMake package, as `make install-shared` leaves it.
set(TAMIS_ROCKSDB_ROOT "" CACHE PATH "Directory with include/rocksdb and lib/librocksdb.so, instead of find_package")

# Makes the target RocksDB::rocksdb-shared and sets RocksDB_VERSION.
macro(tamis_find_rocksdb)
  if(NOT TAMIS_ROCKSDB_ROOT)
    find_package(RocksDB REQUIRED)
  elseif(NOT TARGET RocksDB::rocksdb-shared)
    find_path(tamis_rocksdb_headers rocksdb/db.h PATHS ${TAMIS_ROCKSDB_ROOT}/include NO_DEFAULT_PATH REQUIRED)
    find_library(tamis_rocksdb_library rocksdb
      PATHS ${TAMIS_ROCKSDB_ROOT}/lib ${TAMIS_ROCKSDB_ROOT}/lib64 NO_DEFAULT_PATH REQUIRED)
    add_library(RocksDB::rocksdb-shared SHARED IMPORTED GLOBAL)
    set_target_properties(RocksDB::rocksdb-shared PROPERTIES
      IMPORTED_LOCATION ${tamis_rocksdb_library} INTERFACE_INCLUDE_DIRECTORIES ${tamis_rocksdb_headers})
  endif()
  if(TAMIS_ROCKSDB_ROOT)
    file(STRINGS ${tamis_rocksdb_headers}/rocksdb/version.h tamis_rocksdb_numbers
      REGEX "^#define ROCKSDB_(MAJOR|MINOR|PATCH) ")
    list(TRANSFORM tamis_rocksdb_numbers REPLACE "^#define ROCKSDB_[A-Z]+ +" "")
    list(JOIN tamis_rocksdb_numbers . RocksDB_VERSION)
  endif()
endmacro()
