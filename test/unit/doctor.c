/*
 * doctor.c - what dq doctor concludes from settings of a server that tests cannot all have.
 */
#include "cli/judge/doctor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct row {
    const char *settings[DOCTOR_SETTING_COUNT];
    doctor_check *check;
    enum doctor_verdict verdict;
    const char *text;
};

/* flush, doublewrite, force_recovery, log_bin, sync_binlog, binlog_format */
static const struct row rows[] = {
    /* clang-format off */
    {{"1", "ON", "0", "OFF", "0", "MIXED"}, doctor_server_durability, DOCTOR_OK, "each commit is flushed, pages are written twice"},
    {{"1", "ON", "0", "ON", "1", "ROW"}, doctor_server_durability, DOCTOR_OK, ", the binary log is flushed"},
    {{"0", "ON", "0", "OFF", "0", "ROW"}, doctor_server_durability, DOCTOR_BAD, "innodb_flush_log_at_trx_commit = 0: a power"},
    {{"1", "OFF", "0", "OFF", "0", "ROW"}, doctor_server_durability, DOCTOR_BAD, "innodb_doublewrite = OFF: a power"},
    {{"1", "DETECT_ONLY", "0", "OFF", "0", "ROW"}, doctor_server_durability, DOCTOR_BAD, "innodb_doublewrite = DETECT_ONLY"},
    {{"1", "ON", "1", "OFF", "0", "ROW"}, doctor_server_durability, DOCTOR_BAD, "innodb_force_recovery = 1: a server that"},
    {{"1", "ON", "0", "ON", "0", "ROW"}, doctor_server_durability, DOCTOR_BAD, "sync_binlog = 0: a power failure may lose tasks"},
    {{"3", "ON", "0", "ON", "0", "ROW"}, doctor_server_durability, DOCTOR_WARN, "sync_binlog = 0: after a power failure, replicas"},
    {{"3", "ON", "0", "ON", "1", "ROW"}, doctor_server_durability, DOCTOR_OK, "each commit is flushed"},
    {{NULL, "ON", "0", "OFF", "1", "ROW"}, doctor_server_durability, DOCTOR_UNKNOWN, "not known: the server has no"},
    {{"1", NULL, "0", "OFF", "1", "ROW"}, doctor_server_durability, DOCTOR_UNKNOWN, "has no setting innodb_doublewrite"},
    {{"2", NULL, "0", "OFF", "1", "ROW"}, doctor_server_durability, DOCTOR_BAD, "; innodb_flush_log_at_trx_commit = 2"},
    {{"2", "ON", "0", "ON", "100", "ROW"}, doctor_server_durability, DOCTOR_BAD, "; sync_binlog = 100"},
    {{"1", "ON", "0", "OFF", "0", "STATEMENT"}, doctor_server_isolation, DOCTOR_OK, "READ COMMITTED; no binary log"},
    {{"1", "ON", "0", "ON", "1", "MIXED"}, doctor_server_isolation, DOCTOR_OK, "binlog_format = MIXED"},
    {{"1", "ON", "0", "ON", "1", "STATEMENT"}, doctor_server_isolation, DOCTOR_BAD, "binlog_format = STATEMENT refuses writes"},
    {{"1", "ON", "0", "1", "1", NULL}, doctor_server_isolation, DOCTOR_UNKNOWN, "no setting binlog_format"},
    /* clang-format on */
};

static void settings_lead_to_their_verdicts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct doctor d = {.stage = DOCTOR_SERVER};
        struct doctor_finding f = {DOCTOR_OK, BUF_INIT};
        for (int s = 0; s < DOCTOR_SETTING_COUNT; s++)
            d.settings[s] = (char *)(uintptr_t)rows[i].settings[s];
        (void)rows[i].check(&d, &f, &(struct err){0});
        if (f.verdict != rows[i].verdict || !strstr(f.text.data, rows[i].text))
            fail_msg("row %zu: %d, \"%s\"", i, (int)f.verdict, f.text.data);
        buf_done(&f.text);
    }
}

static void what_is_in_order_does_not_stand_beside_what_is_not(void **state)
{
    struct doctor_finding f = {DOCTOR_OK, BUF_INIT};

    (void)state;
    doctor_find(&f, DOCTOR_OK, "fine");
    doctor_find(&f, DOCTOR_UNKNOWN, "not known");
    doctor_find(&f, DOCTOR_OK, "fine");
    assert_int_equal(f.verdict, DOCTOR_UNKNOWN);
    assert_string_equal(f.text.data, "not known");
    doctor_find(&f, DOCTOR_BAD, "bad");
    doctor_find(&f, DOCTOR_WARN, "odd");
    doctor_find(&f, DOCTOR_OK, "fine");
    assert_int_equal(f.verdict, DOCTOR_BAD);
    assert_string_equal(f.text.data, "not known; bad; odd");
    buf_done(&f.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_lead_to_their_verdicts),
        cmocka_unit_test(what_is_in_order_does_not_stand_beside_what_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
