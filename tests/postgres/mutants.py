#!/usr/bin/env python3
"""The test of tests for tamis_fdw: each of these small faults makes its test fail.

usage: mutants.py --check               only whether each fault's text is in the sources
       mutants.py TAMIS [NAME...]       builds tamis_fdw with each fault (or these), and runs its test
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "..", "..", "postgres")
RANDOM = ["random_queries_test.py", "--seed", "1", "--statements", "3000"]

# Name: the file, the text, the text instead, and the test that notices.
MUTANTS = {
    "ranges_of_natural_texts": ("remote_sql.c", "return is_range ? IsCCollation(collation) : IsDeterministic(collation);",
                                "return IsDeterministic(collation);", RANDOM),
    "decimals_inside_of_or": ("remote_sql.c", "return !is_inside && (is_equality || is_range);", "return is_equality || is_range;", RANDOM),
    "decimals_not_equal": ("remote_sql.c", "return !is_inside && (is_equality || is_range);", "return !is_inside;", RANDOM),
    "rounded_columns_go_down": ("remote_sql.c", "var->varattno <= 0 || var->vartypmod != -1", "var->varattno <= 0",
                                ["QueriesTest.test_columns_that_round_are_checked_here"]),
    "empty_list_for_null": ("remote_sql.c", "if (count > 0 && values == NIL) {", "if (false) {",
                            ["QueriesTest.test_values_that_the_store_cannot_have_compare_as_postgresql_says"]),
    "nan_is_least": ("values.c", "if (isnan(value)) return kTamisAbove;", "if (isnan(value)) return kTamisBelow;",
                     ["QueriesTest.test_values_that_the_store_cannot_have_compare_as_postgresql_says"]),
    "prefix_without_next": ("remote_sql.c", "0xE000 : character + 1;", "0xE000 : character;", RANDOM),
    "nulls_where_sqlite_has_them": ("plan.c", "appendStringInfoString(&order, key->pk_nulls_first ? \" NULLS FIRST\" : \" NULLS LAST\");",
                                    ";", RANDOM),
    "limit_before_local_conditions": ("plan.c", "below->is_grouped || below->has_local_conditions ||", "below->is_grouped ||", RANDOM),
    "groups_of_local_conditions": ("plan.c", "if (query->groupingSets != NIL || below->has_local_conditions ||",
                                   "if (query->groupingSets != NIL ||", RANDOM),
    "join_not_checked_again": ("plan.c", "rechecked = extract_actual_clauses(list_difference_ptr(clauses, checked), false);", "",
                               ["QueriesTest.test_a_join_is_checked_again_when_the_other_row_has_changed_meanwhile"]),
    "groups_of_conditions_without_columns": ("plan.c", "HasConditionWithoutColumns(below->table) ||", "",
                                             ["QueriesTest.test_a_condition_without_columns_holds_for_aggregates"]),
    "forms_of_the_session": ("values.c", "for (int i = 0; i < lengthof(kForms); ++i) {", "for (int i = 0; i < 0; ++i) {",
                             ["ChangesTest.test_values_are_written_alike_under_all_settings"]),
    "sums_in_64_bits": ("scan.c", "INT64CONST(4294967296)", "INT64CONST(0)", RANDOM),
    "invalid_texts_by_the_store": ("remote_sql.c", "if (!is_equality && sql->invalid_text_is_null) return false;", "",
                                   ["QueriesTest.test_texts_that_postgresql_cannot_hold_are_errors_or_null"]),
    "end_without_last_record": ("answer.c", 'if (line == NULL) RaiseNoAnswer(answer->settings, "its last record is missing");',
                                "if (line == NULL) return !(answer->is_complete = true);",
                                ["TroubleTest.test_an_answer_that_is_cut_anywhere_is_an_error"]),
    "missing_rows": ("answer.c", 'TamisNumberMember(&record->root, "row_count", -1) != (double)answer->row_number', "false",
                     ["TroubleTest.test_answers_that_are_no_rows_are_errors"]),
    "change_on_a_kept_connection": ("http.c", "if (call.is_change) SET(CURLOPT_FRESH_CONNECT, 1L);", "",
                                    ["TroubleTest.test_a_change_is_not_sent_again_when_a_kept_connection_is_closed"]),
    "lost_answer_is_a_failure": ("http.c", "if (request->is_change) {", "if (false) {",
                                 ["TroubleTest.test_a_change_whose_answer_is_lost_is_unknown"]),
    "cancelled_change_is_no_change": ("changes.c", "errcode(ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN);\n    errcontext", "errcontext",
                                      ["TroubleTest.test_a_change_that_is_not_answered_is_unknown"]),
    "proxy_knows_the_outcome": ("http.c", "errcode(is_change ? ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN : ERRCODE_FDW_ERROR)",
                                "errcode(ERRCODE_FDW_ERROR)", ["TroubleTest.test_an_answer_that_is_cut_anywhere_is_an_error"]),
    "latch_not_served": ("http.c", "CHECK_FOR_INTERRUPTS();\n  const int64 rest", "const int64 rest",
                         ["TroubleTest.test_cancel_and_statement_timeout_end_a_request"]),
    "unsent_changes_not_seen": ("changes.c", "if (strcmp(change->table, table) != 0) continue;", "continue;",
                                ["ChangesTest.test_reading_a_table_with_unsent_changes_is_refused"]),
    "own_changes_refused": ("changes.c", "if (snapshot != NULL && change->command >= snapshot->curcid) continue;", "",
                            ["ChangesTest.test_reading_a_table_with_unsent_changes_is_refused"]),
    "savepoint_keeps_changes": ("changes.c", "if (event == SUBXACT_EVENT_ABORT_SUB) changes = list_truncate(changes, kept);", "",
                                ["ChangesTest.test_rollback_and_savepoints_discard"]),
    "released_savepoint_keeps_its_level": ("changes.c", "if (event == SUBXACT_EVENT_COMMIT_SUB) change->nest_level = level - 1;", "",
                                           ["ChangesTest.test_rollback_and_savepoints_discard"]),
    "prepared_with_changes": ("changes.c", "case XACT_EVENT_PRE_PREPARE:\n      if (changes == NIL) break;",
                              "case XACT_EVENT_PRE_PREPARE:\n      break;", ["ChangesTest.test_a_prepared_transaction_is_refused"]),
    "row_by_its_key_alone": ("modify.c", "if (column->computed || (!is_key && !IsExact(modify, relation, attribute))) return;",
                             "if (!is_key) return;", ["ChangesTest.test_row_changed_by_another_client_is_an_error"]),
    "no_row_is_one_row": ("changes.c", "if (changed == (double)rows) return;", "return;",
                          ["ChangesTest.test_row_changed_by_another_client_is_an_error"]),
    "sent_within_a_function": ("modify.c", "estate->es_sourceText == debug_query_string &&", "",
                               ["ChangesTest.test_a_function_that_fails_leaves_nothing"]),
    "sent_within_a_transaction": ("modify.c", "return !IsTransactionBlock() &&", "return",
                                  ["ChangesTest.test_rollback_and_savepoints_discard"]),
    "row_changed_twice": ("modify.c", "return found;\n}", "return false;\n}",
                          ["ChangesTest.test_a_row_that_a_join_finds_twice_is_changed_once"]),
    "names_that_may_be_texts": ("table.c", "appendStringInfoChar(out, '`');\n  for", "appendStringInfoChar(out, '\"');\n  for",
                                ["QueriesTest.test_conditions_go_down_where_both_mean_the_same"]),
    "plan_of_another_table": ("answer.c", "TamisAppendText(&body, statement.table);\n  appendStringInfo(&body, \":%u}\", statement.table_id);",
                              "appendStringInfoChar(&body, '}');",
                              ["QueriesTest.test_a_table_that_was_made_anew_is_not_asked_with_the_old_plan"]),
    "computed_columns_are_sent": ("modify.c", "if (ColumnOf(modify, attribute)->computed) RefuseComputed(modify, attribute);", "",
                                  ["ChangesTest.test_computed_columns_are_read_and_never_set"]),
    "rounded_keys": ("modify.c", "if (!IsExact(modify, relation, j + 1)) RefuseInexactKey(modify, relation, j + 1);", "",
                     ["ChangesTest.test_a_key_that_is_rounded_names_no_row"]),
    "texts_of_others_as_null": ("modify.c", "if (may_be_a_text) return;", "",
                                ["QueriesTest.test_texts_that_postgresql_cannot_hold_are_errors_or_null"]),
    "what_a_trigger_leaves_is_set": ("modify.c", "IsUnchanged(slot, attribute, change.values, change.nulls)) {",
                                     "false) {", ["ChangesTest.test_computed_columns_are_read_and_never_set"]),
    "terms_without_end": ("remote_sql.c", "if (++sql->terms > MAX_TERMS) return kTamisNotAtAll;", "",
                          ["QueriesTest.test_conditions_that_are_too_many_for_the_server_are_checked_here"]),
    "files_for_all": ("settings.c", "if (!has_privs_of_role(GetUserId(), ROLE_PG_READ_SERVER_FILES)) {", "if (false) {",
                      ["DefinitionsTest.test_only_those_who_may_read_files_name_one"]),
}


def text_of(name):
    with open(os.path.join(SOURCES, name), encoding="utf-8") as file:
        return file.read()


def pattern_of(text):
    """The text, wherever clang-format breaks its lines."""
    return re.compile(r"\s+".join(re.escape(word) for word in text.split()))


def check():
    missing = [name for name, (file, old, _, _) in MUTANTS.items() if len(pattern_of(old).findall(text_of(file))) < 1]
    if missing:
        sys.exit("the sources have not the text of: " + ", ".join(missing))
    print(f"{len(MUTANTS)} faults have their places")


def setting(name):
    return subprocess.run(["pg_config", "--" + name], capture_output=True, text=True, check=True).stdout.strip()


def build(directory, file, old, new):
    sources = os.path.join(directory, "postgres")
    shutil.copytree(SOURCES, sources)
    mutated = pattern_of(old).sub(lambda _: new, text_of(file), count=1) if old else text_of(file)
    with open(os.path.join(sources, file), "w", encoding="utf-8") as out:
        out.write(mutated)
    library = os.path.join(directory, "tamis_fdw.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", "-fno-strict-aliasing", "-fwrapv", "-isystem", setting("includedir-server"), "-o",
                    library, *(os.path.join(sources, name) for name in os.listdir(sources) if name.endswith(".c")),
                    f"-Wl,--version-script={sources}/exports.map", "-lcurl"], check=True)
    return library


def passes(tamis, fault, test):
    """Whether the test passes with the fault; a fault that does not end is noticed."""
    with tempfile.TemporaryDirectory() as directory:
        library = build(directory, *fault)
        script, arguments = (test[0], test[1:]) if test[0].endswith(".py") else ("tamis_fdw_test.py", test)
        try:
            done = subprocess.run(["/usr/bin/python3", os.path.join(HERE, script), tamis, library, *arguments], capture_output=True,
                                  text=True, check=False, timeout=180)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def main():
    if sys.argv[1:] == ["--check"]:
        return check()
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    check()
    tamis, names, survivors = os.path.abspath(sys.argv[1]), sys.argv[2:] or list(MUTANTS), []
    for test in {tuple(MUTANTS[name][3]) for name in names}:
        if not passes(tamis, ("json.c", "", ""), list(test)):
            sys.exit(f"{test} fails without any fault")
    for name in names:
        if passes(tamis, MUTANTS[name][:3], MUTANTS[name][3]):
            survivors.append(name)
        print(f"{name}: {'SURVIVES' if name in survivors else 'noticed'}", flush=True)
    if survivors:
        sys.exit(f"{len(survivors)} survive: " + " ".join(survivors))
    return None


main()
