/*
 * doctor.h - one check of `dq doctor`, and what it finds.
 */
#ifndef DQ_CLI_JUDGE_DOCTOR_H
#define DQ_CLI_JUDGE_DOCTOR_H

#include "cli/line/cmd.h"

/* UNKNOWN: it could not be looked at. The later ones are worse. */
enum doctor_verdict { DOCTOR_OK, DOCTOR_UNKNOWN, DOCTOR_WARN, DOCTOR_BAD };

/* How far the set-up has come. A check names the stage that it needs, and is left out before. */
enum doctor_stage { DOCTOR_NOTHING, DOCTOR_CONF, DOCTOR_SERVER, DOCTOR_TABLES };

/* Global variables of the server; the names are in doctor_setting_names. */
enum doctor_setting {
    DOCTOR_FLUSH,
    DOCTOR_DOUBLEWRITE,
    DOCTOR_FORCE_RECOVERY,
    DOCTOR_LOG_BIN,
    DOCTOR_SYNC_BINLOG,
    DOCTOR_BINLOG_FORMAT,
    DOCTOR_READ_ONLY,
    DOCTOR_SETTING_COUNT
};
extern const char *const doctor_setting_names[DOCTOR_SETTING_COUNT];

struct doctor {
    struct cmd_context *c;
    enum doctor_stage stage;
    char *settings[DOCTOR_SETTING_COUNT]; /* NULL: the server has no such variable */
    int64_t old_ms; /* an open transaction older than this is worth a warning */
};

struct doctor_finding {
    enum doctor_verdict verdict; /* the worst one found */
    struct buf text;
};
/* Adds a finding. A text with DOCTOR_OK is dropped if there is a worse one. */
void doctor_find(struct doctor_finding *f, enum doctor_verdict verdict, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds that a look failed: UNKNOWN if this account lacks a right, else BAD. */
void doctor_find_failed(struct doctor_finding *f, const struct err *err);
/* A check adds what it finds. If it returns an error, that is found, too, as doctor_find_failed has
 * it. */
typedef int doctor_check(struct doctor *d, struct doctor_finding *f, struct err *err);
/* The value of a setting; "" if the server has none. */
const char *doctor_setting(const struct doctor *d, enum doctor_setting s);

#endif
