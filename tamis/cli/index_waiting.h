// WaitForIndex: Session::AwaitIndex, with a line on stderr when a region fails to build the index,
// and when its failure has changed.
#pragma once

#include <string>

#include "tamis/sql/session.h"

namespace tamis {

Result<IndexProgress> WaitForIndex(Session* session, const std::string& table,
                                   const std::string& index);

}  // namespace tamis
