// The changes of this transaction that wait for its COMMIT.
//
// A change is sent before the local transaction commits (PRE_COMMIT), in the order in which the
// statements made them; inserts of one shape, one after the other, go together. ROLLBACK and a
// savepoint's discard them. Changes that were sent stand, even if the local commit fails afterwards
// or a later change does, and the error says how many changes stand. PREPARE TRANSACTION is
// refused.
#pragma once

#include "postgres.h"

#include "utils/snapshot.h"

#include "settings.h"

typedef enum TamisChangeKind { kTamisInsert, kTamisUpdate, kTamisDelete } TamisChangeKind;

// Once, when the library is loaded.
void TamisRegisterChanges(void);

// A copy that lives until the end of the transaction.
TamisSettings* TamisKeepSettings(const TamisSettings* settings);

// Adds a change. `sql` of an insert ends with VALUES; its row is `count` values. For other changes
// it is the whole statement, which changes one row. `settings` and `table` are kept.
void TamisAddChange(TamisSettings* settings, const char* table, uint32 table_id,
                    TamisChangeKind kind, const char* sql, const char* parameters, int count);

int TamisChangeCount(void);

// Sends all changes now.
void TamisSendChanges(void);

// Raises an error where changes of the table wait that the snapshot sees; without a snapshot,
// where any wait.
void TamisRefuseUnsentChanges(const TamisSettings* settings, const char* table, Snapshot snapshot);
