/* Ten years of slots against what Debian's cron did: test/data/cron_debian.tbl, which
 * test/cron/debian made. */
#include "base/task.h"
#include "base/text.h"
#include "base/timetable.h"
#include "base/when.h"
#include "base/when_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "table_rows.h"

#include <inttypes.h>
#include <stdlib.h>

/* Memcheck, 30 times as slow, sees a month of each row, in which clocks change (DQ_TEST_SHORT). Its
 * digest is not known.
 *
 * name | zone | expression | slots | further starts at the same instant | digest */
static bool check_row(char **cell, const char *where)
{
    const struct timetable_spec spec = {TIMETABLE_CRON, cell[2], cell[1], TASK_TIME_NONE,
                                        TASK_TIME_NONE};
    struct err err = {0};
    const bool brief = getenv("DQ_TEST_SHORT");
    int64_t from_at = 0, to_at = 0;
    uint64_t count = 0, digest = TEXT_HASH_INIT;

    assert_int_equal(when_parse_instant(brief ? "2015-03-15T00:00:00Z" : "2015-01-01T00:00:00Z", 0,
                                        &from_at, &err),
                     0);
    assert_int_equal(when_parse_instant(brief ? "2015-04-15T00:00:00Z" : "2025-01-01T00:00:00Z", 0,
                                        &to_at, &err),
                     0);
    struct timetable *t = timetable_new(&spec, &err);
    if (!t) {
        print_error("%s: %s\n", where, err.text);
        return false;
    }
    for (int64_t at = from_at - 1; timetable_next(t, at, &at, NULL) && at < to_at; count++) {
        unsigned char bytes[8];
        for (int i = 0; i < 8; i++)
            bytes[i] = (unsigned char)((uint64_t)at >> 8 * i);
        digest = text_hash(digest, bytes, sizeof bytes);
    }
    timetable_free(t);
    if (brief || (count == strtoull(cell[3], NULL, 10) && digest == strtoull(cell[5], NULL, 16)))
        return true;
    print_error("%s: %" PRIu64 " slots, %016" PRIx64 "\n", where, count, digest);
    return false;
}

int main(void)
{
    return table_run_rows("cron_debian.tbl", 6, check_row, NULL, 0);
}
