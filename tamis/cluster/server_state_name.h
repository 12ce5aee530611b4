// The names of a region server's states, as people and programs read them.
#pragma once

#include <string_view>

#include "tamis/cluster/cluster.h"

namespace tamis {

inline std::string_view StateName(ServerInfo::State state) {
  switch (state) {
    case ServerInfo::State::kLive:
      return "live";
    case ServerInfo::State::kPaused:
      return "paused";
    case ServerInfo::State::kDead:
      return "dead";
  }
  return "";
}

}  // namespace tamis
