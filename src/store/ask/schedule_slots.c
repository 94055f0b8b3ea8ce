/*
 * schedule_slots.c - see schedule_slots.h.
 */
#include "store/ask/schedule_slots.h"

#include "store/db/db_put.h"
#include "store/fleet/schedule_row.h"
#include "store/row/field.h"

#define COLUMN_ROW(...) COLUMN_UNSHOWN(schedule_slot, __VA_ARGS__),
static const struct column columns[] = {SCHEDULE_SLOTS_COLUMNS(COLUMN_ROW)};
static const struct field_table table = FIELD_TABLE(schedule_slot, columns);

int schedule_slots_list(struct db *db, const char *name, size_t most, struct schedule_slot **ret,
                        size_t *ret_count, struct err *err)
{
    BUF_LOCAL struct buf tail = BUF_INIT;
    buf_str(&tail, "FROM dq_slot s LEFT JOIN dq_task t ON t.id = " SCHEDULE_ROW_TASK(
                       "s.name", "s.slot") " WHERE s.name = ");
    db_put_text(&tail, name);
    buf_printf(&tail, " ORDER BY s.slot DESC LIMIT %zu", most);
    return field_list(db, &table, tail.data, ret, ret_count, err);
}

void schedule_slots_free(struct schedule_slot *slots, size_t count)
{
    field_free(&table, slots, count);
}
