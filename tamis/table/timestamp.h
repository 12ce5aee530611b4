// Points in time as text: microseconds since 1970-01-01 UTC from and to ISO 8601, in the proleptic
// Gregorian calendar and without leap seconds. Any int64 has a text that reads back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tamis/base/status.h"

namespace tamis {

// "2026-01-02", "2026-01-02 03:04", "2026-01-02T03:04:05.25Z", "2026-01-02T03:04:05+01:00".
Result<int64_t> ParseTimestamp(std::string_view text);

// "2026-01-02T03:04:05Z", with up to six digits of fraction where there is one.
std::string FormatTimestamp(int64_t micros);
// The same as SQLite's date functions write it: "2026-01-02 03:04:05". Texts of years 0 to 9999
// sort as the times do.
std::string FormatSqlTimestamp(int64_t micros);
// The day in UTC: "2026-01-02".
std::string FormatDate(int64_t micros);
// The hour of the day in UTC: 0 to 23.
int64_t HourOfDay(int64_t micros);

}  // namespace tamis
