/*
 * cmd_doctor.c - dq doctor: what is wrong with this installation, and how to mend it.
 */
#include "cli/judge/doctor.h"
#include "cli/line/verbs.h"

#include "base/when.h"

#include <stdlib.h>
#include <sys/param.h>

struct doctor_values {
    int64_t old_ms;
};

static const struct check {
    const char *name;
    enum doctor_stage needs;
    doctor_check *run;
} checks[] = {
    /* clang-format off */
    {"configuration", DOCTOR_NOTHING, doctor_host_configuration},
    {"password", DOCTOR_CONF, doctor_host_password},
    {"handlers", DOCTOR_CONF, doctor_host_handlers},
    {"server", DOCTOR_CONF, doctor_server_connection},
    {"durability", DOCTOR_SERVER, doctor_server_durability},
    {"isolation", DOCTOR_SERVER, doctor_server_isolation},
    {"packet", DOCTOR_SERVER, doctor_server_packet},
    {"transactions", DOCTOR_SERVER, doctor_server_transactions},
    {"schema", DOCTOR_SERVER, doctor_queue_schema},
    {"clock", DOCTOR_SERVER, doctor_server_clock},
    {"rights", DOCTOR_TABLES, doctor_server_rights},
    {"procedures", DOCTOR_TABLES, doctor_queue_procedures},
    {"statements", DOCTOR_TABLES, doctor_queue_plans},
    {"tasks", DOCTOR_TABLES, doctor_queue_rows},
    {"dqd", DOCTOR_TABLES, doctor_queue_dqds},
    {"tags", DOCTOR_TABLES, doctor_queue_tags},
    {"starts", DOCTOR_TABLES, doctor_queue_starts},
    {"schedules", DOCTOR_TABLES, doctor_queue_schedules},
    /* clang-format on */
};

struct row {
    const struct check *check;
    struct doctor_finding finding;
};

#define ROW ((const struct row *)row)

OUT_GETTER(verdict)
{
    static const char *const names[] = {[DOCTOR_OK] = "ok",
                                        [DOCTOR_UNKNOWN] = "unknown",
                                        [DOCTOR_WARN] = "warn",
                                        [DOCTOR_BAD] = "BAD"};
    static const enum cell_colour colours[] = {[DOCTOR_OK] = CELL_GOOD,
                                               [DOCTOR_UNKNOWN] = CELL_DIM,
                                               [DOCTOR_WARN] = CELL_WARN,
                                               [DOCTOR_BAD] = CELL_BAD};
    cell_set_text(ret, names[ROW->finding.verdict]);
    ret->people = ROW->finding.verdict == DOCTOR_UNKNOWN ? "?" : NULL;
    ret->colour = colours[ROW->finding.verdict];
}

OUT_GETTER(check)
{
    cell_set_text(ret, ROW->check->name);
}

static const struct column columns[] = {
    OUT_GET("verdict", TEXT, 0, get_verdict),
    OUT_GET("check", TEXT, 0, get_check),
    OUT_FIELD(row, "text", TEXT, finding.text.data, 0),
};

static int run(struct cmd_context *c, struct err *err)
{
    const struct doctor_values *v = c->values;
    struct doctor d = {.c = c, .old_ms = v->old_ms >= 0 ? v->old_ms : WHEN_MINUTE};
    static const int statuses[] = {[DOCTOR_WARN] = 1, [DOCTOR_BAD] = 2};

    (void)!cmd_open(c, CMD_CONF, &(struct err){0}); /* how tables look; the first check says more */
    c->style.no_header = c->style.format == OUT_TABLE;
    struct out *out = out_new(&c->style, OUT_OF(columns), NULL);
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        struct row row = {&checks[i], {DOCTOR_OK, BUF_INIT}};
        if (d.stage < checks[i].needs)
            continue;
        if (checks[i].run(&d, &row.finding, err) < 0)
            doctor_find_failed(&row.finding, err);
        out_row(out, &row);
        c->exit_status = MAX(c->exit_status, statuses[row.finding.verdict]);
        buf_done(&row.finding.text);
    }
    out_end(out, 0);
    for (int i = 0; i < DOCTOR_SETTING_COUNT; i++)
        free(d.settings[i]);
    return 0;
}

static const struct cmd_option options[] = {
    {"old-transaction", 0, CMD_DURATION, offsetof(struct doctor_values, old_ms), "D", NULL, 0},
};

const struct cmd cmd_doctor = {
    .name = "doctor",
    CMD_OPTIONS(options, doctor_values),
    .level = CMD_NOTHING,
    .pages = true,
    .formats = OUT_NO_ID,
    .run = run,
};
