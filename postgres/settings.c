#include "settings.h"

#include <ctype.h>

#include "access/reloptions.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_foreign_data_wrapper.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(tamis_fdw_validator);

typedef enum OptionKind {
  kAnyText,
  kUrl,
  kFile,
  kToken,
  kNumber,
  kCost,
  kBool,
  kInvalidText
} OptionKind;

typedef struct Option {
  const char* name;
  Oid catalog;
  OptionKind kind;
} Option;

static const Option kOptions[] = {
    {"url", ForeignServerRelationId, kUrl},
    {"ca", ForeignServerRelationId, kFile},
    {"cert", ForeignServerRelationId, kFile},
    {"key", ForeignServerRelationId, kFile},
    {"token_file", ForeignServerRelationId, kFile},
    {"connect_timeout_ms", ForeignServerRelationId, kNumber},
    {"timeout_ms", ForeignServerRelationId, kNumber},
    {"change_timeout_ms", ForeignServerRelationId, kNumber},
    {"buffer_kb", ForeignServerRelationId, kNumber},
    {"invalid_text", ForeignServerRelationId, kInvalidText},
    {"updatable", ForeignServerRelationId, kBool},
    {"async_capable", ForeignServerRelationId, kBool},
    {"startup_cost", ForeignServerRelationId, kCost},
    {"row_cost", ForeignServerRelationId, kCost},
    {"cert", UserMappingRelationId, kFile},
    {"key", UserMappingRelationId, kFile},
    {"token_file", UserMappingRelationId, kFile},
    {"token", UserMappingRelationId, kToken},
    {"table_name", ForeignTableRelationId, kAnyText},
    {"invalid_text", ForeignTableRelationId, kInvalidText},
    {"updatable", ForeignTableRelationId, kBool},
    {"column_name", AttributeRelationId, kAnyText},
};

static const char* CatalogNoun(Oid catalog) {
  switch (catalog) {
    case ForeignDataWrapperRelationId:
      return "the foreign data wrapper";
    case ForeignServerRelationId:
      return "a server";
    case UserMappingRelationId:
      return "a user mapping";
    case ForeignTableRelationId:
      return "a foreign table";
    default:
      return "a column";
  }
}

static void RefuseOption(const char* name, Oid catalog) {
  StringInfoData known;
  initStringInfo(&known);
  for (int i = 0; i < lengthof(kOptions); ++i) {
    if (kOptions[i].catalog != catalog) continue;
    appendStringInfo(&known, "%s%s", known.len == 0 ? "" : ", ", kOptions[i].name);
  }
  ereport(ERROR, (errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
                  errmsg("\"%s\" is no option of %s", name, CatalogNoun(catalog)),
                  known.len == 0 ? errhint("It has no options.")
                                 : errhint("Its options are: %s.", known.data)));
}

static void RefuseValue(const DefElem* option, const char* wanted) {
  ereport(ERROR, (errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
                  errmsg("option \"%s\" must be %s", option->defname, wanted)));
}

static void CheckUrl(const DefElem* option, const char* value) {
  const char* rest = strncmp(value, "http://", 7) == 0    ? value + 7
                     : strncmp(value, "https://", 8) == 0 ? value + 8
                                                          : NULL;
  if (rest == NULL || *rest == '\0' || *rest == '/') {
    RefuseValue(option, "the address of a tamis serve, such as http://127.0.0.1:7470");
  }
  for (const char* c = value; *c != '\0'; ++c) {
    if ((unsigned char)*c <= ' ' || strchr("@?#\"\\", *c) != NULL) {
      RefuseValue(option, "an address without user, query and spaces: scheme, host and port");
    }
  }
}

static void CheckToken(const DefElem* option, const char* value) {
  if (strlen(value) < 16) RefuseValue(option, "at least 16 characters, as the server demands");
  for (const char* c = value; *c != '\0'; ++c) {
    if (*c <= ' ' || *c > '~') RefuseValue(option, "printable ASCII without spaces");
  }
}

static void CheckOption(const DefElem* option, OptionKind kind) {
  const char* value = defGetString((DefElem*)option);
  switch (kind) {
    case kAnyText:
      if (*value == '\0') RefuseValue(option, "a name");
      break;
    case kUrl:
      CheckUrl(option, value);
      break;
    case kToken:
      CheckToken(option, value);
      break;
    case kFile:
      if (!has_privs_of_role(GetUserId(), ROLE_PG_READ_SERVER_FILES)) {
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                 errmsg("only a superuser or a member of pg_read_server_files may set option "
                        "\"%s\", which names a file of this machine",
                        option->defname),
                 errhint("Option \"token\" takes the token itself.")));
      }
      if (!is_absolute_path(value)) RefuseValue(option, "an absolute path");
      break;
    case kNumber: {
      int number = 0;
      if (!parse_int(value, &number, 0, NULL) || number < 0) {
        RefuseValue(option, "a whole number that is not negative");
      }
      break;
    }
    case kCost: {
      double number = 0;
      if (!parse_real(value, &number, 0, NULL) || number < 0) {
        RefuseValue(option, "a number that is not negative");
      }
      break;
    }
    case kBool: {
      bool truth = false;
      if (!parse_bool(value, &truth)) RefuseValue(option, "true or false");
      break;
    }
    case kInvalidText:
      if (strcmp(value, "error") != 0 && strcmp(value, "null") != 0) {
        RefuseValue(option, "error or null");
      }
      break;
  }
}

// The validator: PostgreSQL calls it for every CREATE and ALTER with options.
Datum tamis_fdw_validator(PG_FUNCTION_ARGS) {
  List* options = untransformRelOptions(PG_GETARG_DATUM(0));
  const Oid catalog = PG_GETARG_OID(1);
  bool has_url = false;
  ListCell* cell;
  foreach (cell, options) {
    const DefElem* option = (DefElem*)lfirst(cell);
    const Option* known = NULL;
    for (int i = 0; i < lengthof(kOptions); ++i) {
      if (kOptions[i].catalog == catalog && strcmp(kOptions[i].name, option->defname) == 0) {
        known = &kOptions[i];
      }
    }
    if (known == NULL) RefuseOption(option->defname, catalog);
    CheckOption(option, known->kind);
    has_url = has_url || known->kind == kUrl;
  }
  if (catalog == ForeignServerRelationId && !has_url) {
    ereport(ERROR, (errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
                    errmsg("a server needs the option \"url\""),
                    errhint("CREATE SERVER ... OPTIONS (url 'http://127.0.0.1:7470').")));
  }
  PG_RETURN_VOID();
}

// The token is read again for each statement, so that it can be changed at any time.
static char* TokenOfFile(const char* path) {
  FILE* file = AllocateFile(path, "r");
  char buffer[1024];
  if (file == NULL) {
    ereport(ERROR,
            (errcode_for_file_access(), errmsg("cannot read the token in \"%s\": %m", path)));
  }
  const size_t size = fread(buffer, 1, sizeof(buffer) - 1, file);
  FreeFile(file);
  buffer[size] = '\0';
  char* end = buffer + strcspn(buffer, "\r\n");
  *end = '\0';
  for (const char* c = buffer; *c != '\0'; ++c) {
    if (*c <= ' ' || *c > '~') *buffer = '\0';
  }
  if (*buffer == '\0') {
    ereport(ERROR, (errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
                    errmsg("the file \"%s\" has no token: one line of printable ASCII", path)));
  }
  return pstrdup(buffer);
}

static void Apply(TamisSettings* settings, List* options) {
  ListCell* cell;
  foreach (cell, options) {
    DefElem* option = (DefElem*)lfirst(cell);
    const char* name = option->defname;
    char* value = defGetString(option);
    if (strcmp(name, "url") == 0) {
      settings->url = pstrdup(value);
      size_t size = strlen(settings->url);
      while (size > 0 && settings->url[size - 1] == '/') settings->url[--size] = '\0';
    } else if (strcmp(name, "ca") == 0) {
      settings->ca = value;
    } else if (strcmp(name, "connect_timeout_ms") == 0) {
      parse_int(value, &settings->connect_timeout_ms, 0, NULL);
    } else if (strcmp(name, "timeout_ms") == 0) {
      parse_int(value, &settings->timeout_ms, 0, NULL);
    } else if (strcmp(name, "change_timeout_ms") == 0) {
      parse_int(value, &settings->change_timeout_ms, 0, NULL);
    } else if (strcmp(name, "buffer_kb") == 0) {
      parse_int(value, &settings->buffer_kb, 0, NULL);
    } else if (strcmp(name, "invalid_text") == 0) {
      settings->invalid_text_is_null = strcmp(value, "null") == 0;
    } else if (strcmp(name, "updatable") == 0) {
      parse_bool(value, &settings->updatable);
    } else if (strcmp(name, "async_capable") == 0) {
      parse_bool(value, &settings->async_capable);
    } else if (strcmp(name, "startup_cost") == 0) {
      parse_real(value, &settings->startup_cost, 0, NULL);
    } else if (strcmp(name, "row_cost") == 0) {
      parse_real(value, &settings->row_cost, 0, NULL);
    }
  }
}

// A key belongs to a certificate of the same options.
static void ApplyCertificate(TamisSettings* settings, List* options) {
  ListCell* cell;
  char* cert = NULL;
  char* key = NULL;
  foreach (cell, options) {
    DefElem* option = (DefElem*)lfirst(cell);
    if (strcmp(option->defname, "cert") == 0) cert = defGetString(option);
    if (strcmp(option->defname, "key") == 0) key = defGetString(option);
  }
  if (cert == NULL) return;
  settings->cert = cert;
  settings->key = key != NULL ? key : cert;
}

// Whether the options name a token.
static bool ApplyToken(TamisSettings* settings, List* options) {
  ListCell* cell;
  foreach (cell, options) {
    DefElem* option = (DefElem*)lfirst(cell);
    if (strcmp(option->defname, "token") == 0) {
      settings->token = defGetString(option);
      return true;
    }
    if (strcmp(option->defname, "token_file") == 0) {
      settings->token = TokenOfFile(defGetString(option));
      return true;
    }
  }
  return false;
}

// A user without a mapping asks without a token.
static List* UserMappingOptions(Oid server_id, Oid user_id) {
  if (!SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(user_id),
                             ObjectIdGetDatum(server_id)) &&
      !SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid),
                             ObjectIdGetDatum(server_id))) {
    return NIL;
  }
  return GetUserMapping(user_id, server_id)->options;
}

static TamisSettings* SettingsWithoutToken(const ForeignServer* server, Oid table_id) {
  TamisSettings* settings = palloc0(sizeof(TamisSettings));
  settings->server_id = server->serverid;
  settings->server_name = server->servername;
  settings->connect_timeout_ms = 10000;
  settings->change_timeout_ms = 120000;
  settings->buffer_kb = 1024;
  settings->updatable = true;
  settings->async_capable = true;
  settings->startup_cost = 100;
  settings->row_cost = 0.01;
  Apply(settings, server->options);
  if (OidIsValid(table_id)) Apply(settings, GetForeignTable(table_id)->options);
  return settings;
}

bool TamisIsUpdatable(Oid server_id, Oid table_id) {
  return SettingsWithoutToken(GetForeignServer(server_id), table_id)->updatable;
}

TamisSettings* TamisSettingsOf(Oid server_id, Oid user_id, Oid table_id) {
  const ForeignServer* server = GetForeignServer(server_id);
  TamisSettings* settings = SettingsWithoutToken(server, table_id);
  List* mapping = UserMappingOptions(server_id, user_id);
  settings->user_id = user_id;
  ApplyCertificate(settings, server->options);
  ApplyCertificate(settings, mapping);
  if (!ApplyToken(settings, mapping)) ApplyToken(settings, server->options);
  return settings;
}

static const char* NameOption(List* options, const char* name) {
  ListCell* cell;
  foreach (cell, options) {
    DefElem* option = (DefElem*)lfirst(cell);
    if (strcmp(option->defname, name) == 0) return defGetString(option);
  }
  return NULL;
}

const char* TamisTableName(Oid table_id) {
  const char* name = NameOption(GetForeignTable(table_id)->options, "table_name");
  return name != NULL ? name : get_rel_name(table_id);
}

const char* TamisColumnName(Oid table_id, int attribute) {
  const char* name = NameOption(GetForeignColumnOptions(table_id, attribute), "column_name");
  return name != NULL ? name : get_attname(table_id, attribute, false);
}
