// Rows and documents of JSON, as the server sends them.
//
// A row is an array of scalars in one line. It is decoded in its own bytes, without memory of its
// own; documents, which are few, are read by PostgreSQL's jsonb.
#pragma once

#include "postgres.h"

#include "utils/jsonb.h"

typedef enum TamisScalarKind {
  kTamisNull,
  kTamisNumber,  // its digits
  kTamisText,    // decoded; may contain NUL, which JSON writes as \u0000
  kTamisNotUtf8  // {"text": "0x61ff"}, a text that is not UTF-8: "0x61ff"
} TamisScalarKind;

typedef struct TamisScalar {
  TamisScalarKind kind;
  char* text;  // NUL-terminated
  size_t length;
} TamisScalar;

// Reads the array in `line`, which it changes. Returns whether it is one of `count` such values.
bool TamisReadRow(char* line, TamisScalar* values, int count);

// The document; NULL where the text is not JSON.
Jsonb* TamisReadDocument(char* text);

// The member of an object, NULL where there is none. Texts are NUL-terminated copies.
JsonbValue* TamisMember(JsonbContainer* object, const char* name);
char* TamisTextMember(JsonbContainer* object, const char* name);
double TamisNumberMember(JsonbContainer* object, const char* name, double otherwise);
bool TamisTrueMember(JsonbContainer* object, const char* name);
// The elements of an array, palloced; *count is 0 where `value` is no array.
JsonbValue* TamisElements(const JsonbValue* value, int* count);
char* TamisTextOf(const JsonbValue* value);  // NULL where it is no text
double TamisNumberOf(const JsonbValue* value, double otherwise);

// Appends the text as a JSON string, in quotes.
void TamisAppendText(StringInfo out, const char* text);
