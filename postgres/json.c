#include "json.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/numeric.h"

static char* SkipSpace(char* at) {
  while (*at == ' ' || *at == '\t' || *at == '\r') ++at;
  return at;
}

static int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The four digits after \u; -1 where they are none.
static int ReadFourDigits(const char* at) {
  int code = 0;
  for (int i = 0; i < 4; ++i) {
    const int digit = HexDigit(at[i]);
    if (digit < 0) return -1;
    code = code * 16 + digit;
  }
  return code;
}

// Decodes the escape after the backslash to *out; NULL where it is none.
static char* ReadEscape(char* at, char** out) {
  static const char kNames[] = "\"\\/bfnrt";
  static const char kCharacters[] = "\"\\/\b\f\n\r\t";
  if (*at == 'u') {
    int code = ReadFourDigits(at + 1);
    if (code < 0) return NULL;
    at += 5;
    if (code >= 0xD800 && code < 0xDC00) {
      const int low = at[0] == '\\' && at[1] == 'u' ? ReadFourDigits(at + 2) : -1;
      if (low < 0xDC00 || low > 0xDFFF) return NULL;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      at += 6;
    } else if (code >= 0xDC00 && code < 0xE000) {
      return NULL;
    }
    unicode_to_utf8((pg_wchar)code, (unsigned char*)*out);
    *out += pg_utf_mblen((unsigned char*)*out);
    return at;
  }
  const char* name = *at == '\0' ? NULL : strchr(kNames, *at);
  if (name == NULL) return NULL;
  *(*out)++ = kCharacters[name - kNames];
  return at + 1;
}

// Decodes the string after the quote at `at` in place; NULL where it is none. An escape is longer
// than the bytes that it stands for.
static char* ReadString(char* at, TamisScalar* value) {
  char* out = ++at;
  value->kind = kTamisText;
  value->text = at;
  while (*at != '"') {
    if ((unsigned char)*at < 0x20) return NULL;
    if (*at == '\\') {
      at = ReadEscape(at + 1, &out);
      if (at == NULL) return NULL;
    } else {
      *out++ = *at++;
    }
  }
  value->length = out - value->text;
  *out = '\0';
  return at + 1;
}

static char* ReadNotUtf8(char* at, TamisScalar* value) {
  TamisScalar name;
  at = SkipSpace(at + 1);
  if (*at != '"' || (at = ReadString(at, &name)) == NULL || strcmp(name.text, "text") != 0) {
    return NULL;
  }
  at = SkipSpace(at);
  if (*at != ':') return NULL;
  at = SkipSpace(at + 1);
  if (*at != '"' || (at = ReadString(at, value)) == NULL) return NULL;
  value->kind = kTamisNotUtf8;
  at = SkipSpace(at);
  return *at == '}' ? at + 1 : NULL;
}

static char* ReadScalar(char* at, TamisScalar* value) {
  if (*at == '"') return ReadString(at, value);
  if (*at == '{') return ReadNotUtf8(at, value);
  value->text = at;
  at += strcspn(at, ",] \t");
  value->length = at - value->text;
  if (value->length == 4 && memcmp(value->text, "null", 4) == 0) {
    value->kind = kTamisNull;
    return at;
  }
  value->kind = kTamisNumber;
  if (value->length == 0 || strspn(value->text, "0123456789+-.eE") < value->length) return NULL;
  return at;
}

bool TamisReadRow(char* line, TamisScalar* values, int count) {
  char* at = SkipSpace(line);
  if (*at != '[') return false;
  for (int i = 0; i < count; ++i) {
    at = ReadScalar(SkipSpace(at + 1), &values[i]);
    if (at == NULL) return false;
    at = SkipSpace(at);
    const char end = *at;
    if (end != (i + 1 == count ? ']' : ',')) return false;
    if (values[i].kind == kTamisNumber) values[i].text[values[i].length] = '\0';
  }
  if (count == 0) {
    at = SkipSpace(at + 1);
    if (*at != ']') return false;
  }
  return *SkipSpace(at + 1) == '\0';
}

Jsonb* TamisReadDocument(char* text) {
  Jsonb* volatile document = NULL;
  const MemoryContext context = CurrentMemoryContext;
  PG_TRY();
  { document = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(text))); }
  PG_CATCH();
  {
    // The function only takes memory, so that nothing else is to be undone.
    MemoryContextSwitchTo(context);
    FlushErrorState();
    document = NULL;
  }
  PG_END_TRY();
  return document;
}

JsonbValue* TamisMember(JsonbContainer* object, const char* name) {
  if (!JsonContainerIsObject(object)) return NULL;
  return getKeyJsonValueFromContainer(object, name, strlen(name), NULL);
}

char* TamisTextOf(const JsonbValue* value) {
  if (value == NULL || value->type != jbvString) return NULL;
  return pnstrdup(value->val.string.val, value->val.string.len);
}

double TamisNumberOf(const JsonbValue* value, double otherwise) {
  if (value == NULL || value->type != jbvNumeric) return otherwise;
  return DatumGetFloat8(
      DirectFunctionCall1(numeric_float8_no_overflow, NumericGetDatum(value->val.numeric)));
}

char* TamisTextMember(JsonbContainer* object, const char* name) {
  return TamisTextOf(TamisMember(object, name));
}

double TamisNumberMember(JsonbContainer* object, const char* name, double otherwise) {
  return TamisNumberOf(TamisMember(object, name), otherwise);
}

bool TamisTrueMember(JsonbContainer* object, const char* name) {
  const JsonbValue* value = TamisMember(object, name);
  return value != NULL && value->type == jbvBool && value->val.boolean;
}

JsonbValue* TamisElements(const JsonbValue* value, int* count) {
  *count = 0;
  if (value == NULL || value->type != jbvBinary || !JsonContainerIsArray(value->val.binary.data)) {
    return NULL;
  }
  const int size = JsonContainerSize(value->val.binary.data);
  JsonbValue* elements = palloc(sizeof(JsonbValue) * Max(size, 1));
  for (int i = 0; i < size; ++i) {
    elements[i] = *getIthJsonbValueFromContainer(value->val.binary.data, i);
  }
  *count = size;
  return elements;
}

void TamisAppendText(StringInfo out, const char* text) { escape_json(out, text); }
