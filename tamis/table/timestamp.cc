#include "tamis/table/timestamp.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "tamis/base/ascii.h"

namespace tamis {
namespace {

constexpr int64_t kMicrosPerSecond = 1'000'000;
constexpr size_t kFractionDigits = 6;  // microseconds
constexpr int64_t kMicrosPerDay = 86'400 * kMicrosPerSecond;

// Days since 1970-01-01 (the era arithmetic of H. Hinnant, "chrono-Compatible Low-Level Date
// Algorithms"; std::chrono stops at the year 32767).
int64_t DaysFromCivil(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
         719468;
}

struct Civil {
  int64_t year, month, day;
};

Civil CivilFromDays(int64_t days) {
  days += 719468;
  const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const int64_t day_of_era = days - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t m = (5 * day_of_year + 2) / 153;
  const int64_t month = m < 10 ? m + 3 : m - 9;
  return {year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * m + 2) / 5 + 1};
}

// Takes an unsigned number of min_digits..max_digits digits off the front.
bool TakeNumber(std::string_view* in, size_t min_digits, size_t max_digits, int64_t* out) {
  size_t n = 0;
  *out = 0;
  while (n < in->size() && n < max_digits && IsDigit((*in)[n])) {
    *out = *out * 10 + ((*in)[n++] - '0');
  }
  if (n < min_digits) return false;
  in->remove_prefix(n);
  return true;
}

bool TakeChar(std::string_view* in, char c) {
  if (in->empty() || in->front() != c) return false;
  in->remove_prefix(1);
  return true;
}

// hh:mm[:ss[.ffffff]], in microseconds; digits after the sixth must be zeros.
bool TakeTimeOfDay(std::string_view* in, int64_t* micros) {
  int64_t hour = 0, minute = 0, second = 0, fraction = 0;
  if (!TakeNumber(in, 2, 2, &hour) || !TakeChar(in, ':') || !TakeNumber(in, 2, 2, &minute)) {
    return false;
  }
  if (TakeChar(in, ':')) {
    if (!TakeNumber(in, 2, 2, &second)) return false;
    if (TakeChar(in, '.')) {
      const size_t before = in->size();
      if (!TakeNumber(in, 1, kFractionDigits, &fraction)) return false;
      for (size_t digits = before - in->size(); digits < kFractionDigits; ++digits) fraction *= 10;
      while (TakeChar(in, '0')) {
      }
    }
  }
  if (hour > 23 || minute > 59 || second > 59) return false;
  *micros = ((hour * 60 + minute) * 60 + second) * kMicrosPerSecond + fraction;
  return true;
}

// Z, +hh:mm, -hhmm or nothing.
bool TakeOffset(std::string_view* in, int64_t* micros) {
  *micros = 0;
  if (in->empty() || TakeChar(in, 'Z') || TakeChar(in, 'z')) return true;
  const bool negative = in->front() == '-';
  if (!negative && in->front() != '+') return false;
  in->remove_prefix(1);
  int64_t hours = 0, minutes = 0;
  if (!TakeNumber(in, 2, 2, &hours)) return false;
  TakeChar(in, ':');
  if (!in->empty() && !TakeNumber(in, 2, 2, &minutes)) return false;
  if (hours > 23 || minutes > 59) return false;
  *micros = (hours * 60 + minutes) * 60 * kMicrosPerSecond * (negative ? -1 : 1);
  return true;
}

bool IsDate(const Civil& date) {
  if (date.month < 1 || date.month > 12 || date.day < 1) return false;
  const Civil back = CivilFromDays(DaysFromCivil(date.year, date.month, date.day));
  return back.month == date.month && back.day == date.day;
}

// A point in time as days since 1970-01-01 and microseconds of the day.
struct DayTime {
  int64_t days, micros;
};

DayTime DayTimeOf(int64_t micros) {
  int64_t days = micros / kMicrosPerDay;
  int64_t rest = micros % kMicrosPerDay;
  if (rest < 0) {
    rest += kMicrosPerDay;
    --days;
  }
  return {days, rest};
}

std::string DateText(int64_t days) {
  const Civil date = CivilFromDays(days);
  char buffer[64];
  const char* sign = date.year < 0 ? "-" : date.year > 9999 ? "+" : "";
  const int size =
      std::snprintf(buffer, sizeof(buffer), "%s%04lld-%02lld-%02lld", sign, std::llabs(date.year),
                    static_cast<long long>(date.month), static_cast<long long>(date.day));
  return {buffer, static_cast<size_t>(size)};
}

std::string Format(int64_t micros, char separator, const char* zone) {
  const DayTime time = DayTimeOf(micros);
  const int64_t seconds = time.micros / kMicrosPerSecond;
  char buffer[64];
  int size = std::snprintf(buffer, sizeof(buffer), "%c%02lld:%02lld:%02lld", separator,
                           static_cast<long long>(seconds / 3600),
                           static_cast<long long>(seconds / 60 % 60),
                           static_cast<long long>(seconds % 60));
  std::string out = DateText(time.days);
  out.append(buffer, size);
  if (const int64_t fraction = time.micros % kMicrosPerSecond; fraction != 0) {
    size = std::snprintf(buffer, sizeof(buffer), ".%06lld", static_cast<long long>(fraction));
    out.append(buffer, size);
    out.erase(out.find_last_not_of('0') + 1);
  }
  return out + zone;
}

}  // namespace

Result<int64_t> ParseTimestamp(std::string_view text) {
  std::string_view in = text;
  const bool negative = TakeChar(&in, '-');
  if (!negative) TakeChar(&in, '+');
  Civil date{};
  int64_t time = 0;
  int64_t offset = 0;
  bool good = TakeNumber(&in, 4, 6, &date.year) && TakeChar(&in, '-') &&
              TakeNumber(&in, 2, 2, &date.month) && TakeChar(&in, '-') &&
              TakeNumber(&in, 2, 2, &date.day);
  if (negative) date.year = -date.year;
  good = good && IsDate(date);
  if (good && !in.empty()) {
    good = (TakeChar(&in, 'T') || TakeChar(&in, 't') || TakeChar(&in, ' ')) &&
           TakeTimeOfDay(&in, &time) && TakeOffset(&in, &offset) && in.empty();
  }
  const size_t point = text.find('.');
  if (!good && !in.empty() && IsDigit(in[0]) && text.size() - in.size() > point + kFractionDigits &&
      point != std::string_view::npos) {
    return InvalidArgument("\"" + std::string(text.substr(0, 60)) +
                           "\" has parts of a microsecond, which a timestamp cannot hold: write at "
                           "most 6 digits that are not 0 behind the point");
  }
  if (!good) {
    return InvalidArgument("\"" + std::string(text.substr(0, 60)) +
                           "\" is not a time; write it as 2026-01-02T03:04:05Z");
  }
  const __int128 micros =
      static_cast<__int128>(DaysFromCivil(date.year, date.month, date.day)) * kMicrosPerDay + time -
      offset;
  if (micros > std::numeric_limits<int64_t>::max() ||
      micros < std::numeric_limits<int64_t>::min()) {
    return InvalidArgument("\"" + std::string(text.substr(0, 60)) +
                           "\" is out of range: microseconds since 1970 must fit 64 bits");
  }
  return static_cast<int64_t>(micros);
}

std::string FormatTimestamp(int64_t micros) { return Format(micros, 'T', "Z"); }

std::string FormatSqlTimestamp(int64_t micros) { return Format(micros, ' ', ""); }

std::string FormatDate(int64_t micros) { return DateText(DayTimeOf(micros).days); }

int64_t HourOfDay(int64_t micros) { return DayTimeOf(micros).micros / (3600 * kMicrosPerSecond); }

}  // namespace tamis
