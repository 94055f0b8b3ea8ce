/* How the statements of migrations are read: one form a row. */
#include "store/schema/schema_shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define INPLACE ", ALGORITHM=INPLACE, LOCK=NONE"
#define INSTANT ", ALGORITHM=INSTANT"

static void each_form_is_read_with_name_and_description(void **state)
{
    static const struct {
        const char *statement;
        enum schema_shape_kind kind;
        const char *name, *text, *fallback;
        bool optional, instant;
    } rows[] = {
        {"ADD COLUMN a int unsigned NOT NULL DEFAULT 7" INSTANT, SCHEMA_SHAPE_ADD_COLUMN, "a",
         "int unsigned NOT NULL", "7", false, true},
        {"ADD COLUMN b text COLLATE utf8mb4_bin" INPLACE, SCHEMA_SHAPE_ADD_COLUMN, "b",
         "text utf8mb4_bin", NULL, true, false},
        {"ADD KEY c (tag, id)" INPLACE, SCHEMA_SHAPE_ADD_INDEX, "c", "(tag, id)", NULL, true,
         false},
        {"ADD UNIQUE KEY d (tag)" INPLACE, SCHEMA_SHAPE_ADD_INDEX, "d", "(tag)", NULL, false,
         false},
        {"ALTER COLUMN e SET DEFAULT 9" INSTANT, SCHEMA_SHAPE_SET_DEFAULT, "e", NULL, "9", false,
         true},
        {"DROP COLUMN f" INSTANT, SCHEMA_SHAPE_DROP_COLUMN, "f", NULL, NULL, false, true},
        {"DROP KEY g" INPLACE, SCHEMA_SHAPE_DROP_INDEX, "g", NULL, NULL, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char statement[200];
        struct schema_shape_change c;
        struct err err = {0};

        snprintf(statement, sizeof statement, "ALTER TABLE t %s", rows[i].statement);
        assert_int_equal(schema_shape_parse(statement, &c, &err), 0);
        assert_int_equal(c.kind, rows[i].kind);
        assert_int_equal(c.instant, rows[i].instant);
        assert_int_equal(c.part.optional, rows[i].optional);
        assert_string_equal(c.part.table, "t");
        assert_string_equal(c.part.name, rows[i].name);
        assert_string_equal(c.part.text ? c.part.text : "", rows[i].text ? rows[i].text : "");
        assert_string_equal(c.part.fallback ? c.part.fallback : "",
                            rows[i].fallback ? rows[i].fallback : "");
        schema_shape_change_done(&c);
    }
}

/* The server might do it in a way that makes writers wait. */
static void another_form_is_refused(void **state)
{
    static const char *const statements[] = {
        "ALTER TABLE t ADD COLUMN a int",
        "ALTER TABLE t ADD COLUMN a int, ALGORITHM=INPLACE",
        "ALTER TABLE t ADD COLUMN a int, ALGORITHM=COPY",
        "ALTER TABLE t MODIFY COLUMN a int" INSTANT,
        "ALTER TABLE t",
        "CREATE TABLE t (a int)",
        "DROP TABLE t",
    };

    (void)state;
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        struct schema_shape_change c;
        struct err err = {0};

        assert_int_equal(schema_shape_parse(statements[i], &c, &err), ERR_FATAL);
        assert_non_null(strstr(err.text, statements[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_form_is_read_with_name_and_description),
        cmocka_unit_test(another_form_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
