#include "values.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/shortest_dec.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

TamisReader TamisMakeReader(TamisType type, Oid pg_type, int32 typmod, const char* column,
                            bool invalid_text_is_null) {
  TamisReader reader = {.type = type, .pg_type = pg_type, .typmod = typmod, .column = column};
  Oid function = InvalidOid;
  // A domain's values are read as its type's, and checked.
  const Oid base = getBaseTypeAndTypmod(pg_type, &reader.typmod);
  reader.is_domain = base != pg_type;
  reader.invalid_text_is_null = invalid_text_is_null;
  getTypeInputInfo(base, &function, &reader.input_parameter);
  fmgr_info(function, &reader.input);
  switch (type) {
    case kTamisTextType:
      reader.is_plain = base == TEXTOID || (base == VARCHAROID && reader.typmod < 0);
      break;
    case kTamisInt64:
      reader.is_plain = base == INT8OID;
      break;
    case kTamisDouble:
      reader.is_plain = base == FLOAT8OID;
      break;
    default:
      reader.is_plain = type != kTamisDecimal;
      break;
  }
  return reader;
}

// ---- Reading

static int TakeDigits(const char** at, int least, int most) {
  int number = 0;
  int digits = 0;
  for (; digits < most && isdigit((unsigned char)(*at)[0]); ++digits)
    number = number * 10 + *(*at)++ - '0';
  return digits < least ? -1 : number;
}

// "2026-01-02 03:04:05.5", in UTC; years below 0 and above 9999 have a sign.
static bool ReadTime(const char* text, int32 typmod, Timestamp* time) {
  const char* at = text;
  const bool is_negative = *at == '-';
  if (*at == '-' || *at == '+') ++at;
  const int year = TakeDigits(&at, 4, 6);
  const int month = *at == '-' ? (++at, TakeDigits(&at, 2, 2)) : -1;
  const int day = *at == '-' ? (++at, TakeDigits(&at, 2, 2)) : -1;
  const int hour = *at == ' ' ? (++at, TakeDigits(&at, 2, 2)) : -1;
  const int minute = *at == ':' ? (++at, TakeDigits(&at, 2, 2)) : -1;
  const int second = *at == ':' ? (++at, TakeDigits(&at, 2, 2)) : -1;
  int fraction = 0;
  if (year < 0 || month < 1 || month > 12 || day < 1 || hour < 0 || minute < 0 || second < 0) {
    return false;
  }
  if (*at == '.') {
    int digits = 0;
    for (++at; isdigit((unsigned char)*at) && digits < 6; ++digits)
      fraction = fraction * 10 + *at++ - '0';
    for (; digits < 6; ++digits) fraction *= 10;
  }
  if (*at != '\0') return false;
  const int signed_year = is_negative ? -year : year;
  if (!IS_VALID_JULIAN(signed_year, month, day)) return false;
  const int64 days = (int64)date2j(signed_year, month, day) - POSTGRES_EPOCH_JDATE;
  *time = days * USECS_PER_DAY +
          ((((int64)hour * 60 + minute) * 60 + second) * USECS_PER_SEC + fraction);
  if (!IS_VALID_TIMESTAMP(*time)) return false;
  if (typmod >= 0 && typmod < 6) {
    *time = DatumGetTimestamp(
        DirectFunctionCall2(timestamptz_scale, TimestampGetDatum(*time), Int32GetDatum(typmod)));
  }
  return true;
}

static bool ReadBytes(const TamisScalar* value, Datum* datum) {
  if (value->length < 2 || value->length % 2 != 0 || memcmp(value->text, "0x", 2) != 0) {
    return false;
  }
  const size_t size = (value->length - 2) / 2;
  bytea* bytes = palloc(VARHDRSZ + size);
  SET_VARSIZE(bytes, VARHDRSZ + size);
  if (strspn(value->text + 2, "0123456789abcdefABCDEF") != value->length - 2) return false;
  hex_decode(value->text + 2, value->length - 2, VARDATA(bytes));
  *datum = PointerGetDatum(bytes);
  return true;
}

static bool ReadPlain(TamisReader* reader, const TamisScalar* value, Datum* datum) {
  char* end = NULL;
  const bool is_number = value->kind == kTamisNumber;
  switch (reader->type) {
    case kTamisTextType:
      *datum = PointerGetDatum(cstring_to_text_with_len(value->text, (int)value->length));
      return !is_number;
    case kTamisBytes:
      return !is_number && ReadBytes(value, datum);
    case kTamisInt64:
      errno = 0;
      *datum = Int64GetDatum(strtoll(value->text, &end, 10));
      return is_number && *end == '\0' && errno == 0;
    case kTamisBool:
      *datum = BoolGetDatum(value->text[0] == '1');
      return is_number && (value->text[0] == '0' || value->text[0] == '1') && value->length == 1;
    case kTamisDouble:
      *datum = Float8GetDatum(strtod(value->text, &end));
      return *end == '\0' &&
             (is_number || strcmp(value->text, "Inf") == 0 || strcmp(value->text, "-Inf") == 0);
    case kTamisTimestamp: {
      Timestamp time = 0;
      const bool is_time = !is_number && ReadTime(value->text, reader->typmod, &time);
      *datum = TimestampTzGetDatum(time);
      return is_time;
    }
    default:
      return false;
  }
}

Datum TamisReadValue(TamisReader* reader, TamisScalar* value, bool* is_null, const char** why) {
  Datum datum = 0;
  *is_null = value->kind == kTamisNull;
  *why = NULL;
  if (*is_null) return datum;
  const bool has_nul = value->kind == kTamisText && strlen(value->text) != value->length;
  if (reader->type == kTamisTextType &&
      (has_nul || value->kind == kTamisNotUtf8 ||
       (value->kind == kTamisText &&
        !pg_verify_mbstr(PG_UTF8, value->text, (int)value->length, true)))) {
    *is_null = reader->invalid_text_is_null;
    if (!*is_null) *why = has_nul ? "contains a NUL character" : "is not UTF-8";
    return datum;
  }
  if (value->kind == kTamisNotUtf8 || has_nul) {
    *why = "is not of the column's type";
  } else if (reader->is_plain) {
    if (!ReadPlain(reader, value, &datum)) *why = "is not of the column's type";
  } else {
    datum = InputFunctionCall(&reader->input, value->text, reader->input_parameter, reader->typmod);
  }
  if (reader->is_domain && *why == NULL) domain_check(datum, false, reader->pg_type, NULL, NULL);
  return datum;
}

// ---- Writing

// Times outside of the years 0 to 9999 are no texts in the order of time.
static TamisPlace AppendTime(StringInfo out, TimestampTz value) {
  struct pg_tm time;
  fsec_t fraction = 0;
  if (TIMESTAMP_IS_NOBEGIN(value)) return kTamisBelow;
  if (TIMESTAMP_IS_NOEND(value)) return kTamisAbove;
  if (timestamp2tm(value, NULL, &time, &fraction, NULL, NULL) != 0 || time.tm_year < 0 ||
      time.tm_year > 9999) {
    return kTamisUnordered;
  }
  appendStringInfo(out, "\"%04d-%02d-%02d %02d:%02d:%02d", time.tm_year, time.tm_mon, time.tm_mday,
                   time.tm_hour, time.tm_min, time.tm_sec);
  if (fraction != 0) {
    appendStringInfo(out, ".%06d", (int)fraction);
    while (out->data[out->len - 1] == '0') out->data[--out->len] = '\0';
  }
  appendStringInfoChar(out, '"');
  return kTamisInside;
}

static TamisPlace AppendDouble(StringInfo out, double value) {
  char digits[DOUBLE_SHORTEST_DECIMAL_LEN];
  if (isnan(value)) return kTamisAbove;
  if (isinf(value)) {
    appendStringInfo(out, "{\"real\": \"%s\"}", value > 0 ? "Inf" : "-Inf");
    return kTamisInside;
  }
  double_to_shortest_decimal_buf(value, digits);
  appendStringInfoString(out, digits);
  // An integer of JSON is one of SQLite, too.
  if (strpbrk(digits, ".e") == NULL) appendStringInfoString(out, ".0");
  return kTamisInside;
}

static TamisPlace AppendDecimal(StringInfo out, Datum value) {
  const Numeric number = DatumGetNumeric(value);
  if (numeric_is_nan(number)) return kTamisAbove;
  char* digits = DatumGetCString(DirectFunctionCall1(numeric_out, value));
  if (numeric_is_inf(number)) return *digits == '-' ? kTamisBelow : kTamisAbove;
  TamisAppendText(out, digits);
  return kTamisInside;
}

static void AppendBytes(StringInfo out, Datum value) {
  const bytea* bytes = DatumGetByteaPP(value);
  const size_t size = VARSIZE_ANY_EXHDR(bytes);
  appendStringInfoString(out, "{\"bytes\": \"0x");
  enlargeStringInfo(out, (int)(size * 2 + 4));
  out->len += (int)hex_encode(VARDATA_ANY(bytes), size, out->data + out->len);
  out->data[out->len] = '\0';
  appendStringInfoString(out, "\"}");
}

// The text of a value, whatever the session's settings of forms are. An error restores the settings
// with its transaction.
static char* OutputText(Oid pg_type, Datum value) {
  static const char* const kForms[][2] = {
      {"datestyle", "ISO"}, {"intervalstyle", "postgres"}, {"extra_float_digits", "3"}};
  Oid function = InvalidOid;
  bool is_varlena = false;
  getTypeOutputInfo(pg_type, &function, &is_varlena);
  if (pg_type == TEXTOID || pg_type == VARCHAROID || pg_type == INT8OID || pg_type == INT4OID ||
      pg_type == INT2OID) {
    return OidOutputFunctionCall(function, value);
  }
  const int level = NewGUCNestLevel();
  for (int i = 0; i < lengthof(kForms); ++i) {
    set_config_option(kForms[i][0], kForms[i][1], PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true,
                      0, false);
  }
  char* text = OidOutputFunctionCall(function, value);
  AtEOXact_GUC(true, level);
  return text;
}

TamisPlace TamisAppendParameter(StringInfo out, TamisType type, Oid pg_type, Datum value) {
  switch (type) {
    case kTamisTimestamp:
      return AppendTime(out, DatumGetTimestampTz(value));
    case kTamisDouble:
      return AppendDouble(
          out, pg_type == FLOAT4OID ? (double)DatumGetFloat4(value) : DatumGetFloat8(value));
    case kTamisDecimal:
      return AppendDecimal(out, value);
    case kTamisBytes:
      AppendBytes(out, value);
      return kTamisInside;
    case kTamisBool:
      appendStringInfoString(out, DatumGetBool(value) ? "1" : "0");
      return kTamisInside;
    default: {
      const char* text = OutputText(pg_type, value);
      if (type == kTamisInt64 && pg_type != NUMERICOID) {
        appendStringInfoString(out, text);
      } else {
        TamisAppendText(out, text);
      }
      return kTamisInside;
    }
  }
}
