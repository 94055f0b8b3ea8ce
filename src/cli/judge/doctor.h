/*
 * doctor.h - the checks of `dq doctor`, and what one finds.
 */
#ifndef DQ_CLI_JUDGE_DOCTOR_H
#define DQ_CLI_JUDGE_DOCTOR_H

#include "cli/line/cmd.h"

/* UNKNOWN: it could not be looked at. The later ones are worse. */
enum doctor_verdict { DOCTOR_OK, DOCTOR_UNKNOWN, DOCTOR_WARN, DOCTOR_BAD };

/* How far the set-up has come. A check names the stage that it needs, and is left out before. */
enum doctor_stage { DOCTOR_NOTHING, DOCTOR_CONF, DOCTOR_SERVER, DOCTOR_TABLES };

/* Global variables of the server. */
#define DOCTOR_SETTINGS(X)                                                                         \
    X(DOCTOR_FLUSH, "innodb_flush_log_at_trx_commit")                                              \
    X(DOCTOR_DOUBLEWRITE, "innodb_doublewrite")                                                    \
    X(DOCTOR_FORCE_RECOVERY, "innodb_force_recovery")                                              \
    X(DOCTOR_LOG_BIN, "log_bin")                                                                   \
    X(DOCTOR_SYNC_BINLOG, "sync_binlog")                                                           \
    X(DOCTOR_BINLOG_FORMAT, "binlog_format")                                                       \
    X(DOCTOR_READ_ONLY, "read_only")
#define DOCTOR_SETTING(name, variable) name,
enum doctor_setting { DOCTOR_SETTINGS(DOCTOR_SETTING) DOCTOR_SETTING_COUNT };

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

/* of this host: its files */
doctor_check doctor_host_configuration, doctor_host_password, doctor_host_handlers;
/* of the server, and this account's rights */
doctor_check doctor_server_connection, doctor_server_durability, doctor_server_isolation,
    doctor_server_packet, doctor_server_clock, doctor_server_transactions, doctor_server_rights;
/* of the tables, the dqds that use them, and what these serve */
doctor_check doctor_queue_schema, doctor_queue_procedures, doctor_queue_plans, doctor_queue_rows,
    doctor_queue_dqds, doctor_queue_tags, doctor_queue_starts, doctor_queue_schedules;

#endif
