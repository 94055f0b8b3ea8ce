/*
 * schedule_slots.c - see schedule_slots.h.
 */
#include "store/ask/schedule_slots.h"

#include "store/row/field.h"

#define COLUMN_ROW(...) COLUMN_UNSHOWN(schedule_slot, __VA_ARGS__),
static const struct column columns[] = {SCHEDULE_SLOTS_COLUMNS(COLUMN_ROW)};
static const struct field_table table = FIELD_TABLE(schedule_slot, columns);

int schedule_slots_list(struct db *db, const char *name, size_t most, struct schedule_slot **ret,
                        size_t *ret_count, struct err *err)
{
    return field_list(db, &table, ret, ret_count, err,
                      "FROM dq_slot s LEFT JOIN dq_task t ON t.id = " SCHEDULE_ROW_TASK(
                          "s.name", "s.slot") " WHERE s.name = ? ORDER BY s.slot DESC LIMIT ?",
                      SQL_TEXT(name), SQL_ID(most));
}

void schedule_slots_free(struct schedule_slot *slots, size_t count)
{
    field_free(&table, slots, count);
}
