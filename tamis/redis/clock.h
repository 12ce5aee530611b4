// The clocks by which windows go.
#pragma once

#include "tamis/redis/window.h"

namespace tamis::redis {

Moment PresentMoment();

}  // namespace tamis::redis
