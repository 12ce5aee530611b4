// Assertions of RocksDB's own library, which Debian builds with them, where a fault of the disk
// that a test has made, or an option that it does not bear, brings it to one. The process ends
// there as if it had been killed.
//
// Linking foreign_assertions.cc replaces __assert_fail of the whole process. An assertion of ours,
// or of RocksDB without a fault before it, aborts as ever.
#pragma once

namespace tamis::lsm {

// The exit code of a process that such an assertion has ended.
inline constexpr int kForeignAssertion = 77;

// From now on assertions of RocksDB are what the fault, or the option, has brought.
void NoteFault();

}  // namespace tamis::lsm
