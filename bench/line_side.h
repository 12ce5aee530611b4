// One process of a benchmark that compares processes. It does what each line of its standard input
// asks for, "WHAT [COUNT [SEED]]", and answers each by "SECONDS CPU_SECONDS".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tamis {

// Does one line. Returns the seconds to report; nothing: those that it took.
using LineWork =
    std::function<std::optional<double>(const std::string& what, int64_t count, int64_t seed)>;

// Returns at the end of the input.
void AnswerLines(const LineWork& work);

}  // namespace tamis
