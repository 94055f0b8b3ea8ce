/*
 * conf.h - the settings of dq and dqd, read from an INI file.
 *
 * Which file: the one named (--config), else $DQ_CONFIG, else $XDG_CONFIG_HOME/dq/dq.ini (or
 * ~/.config/dq/dq.ini), else /etc/dq/dq.ini. The file must belong to root or to the reading user,
 * and neither group nor others may write it. A setting `poll_interval` of section [dqd] is the
 * field dqd.poll_interval_ms, one row of conf_keys, one heading in dq.ini(5), and the variable
 * DQ_DQD_POLL_INTERVAL, which overrides the file.
 */
#ifndef DQ_CONF_CONF_H
#define DQ_CONF_CONF_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONF_SLOTS_MAX 4096

enum conf_tls {
    CONF_TLS_DISABLED,
    CONF_TLS_PREFERRED,
    CONF_TLS_REQUIRED,
    CONF_TLS_VERIFY_CA,
    CONF_TLS_VERIFY_IDENTITY
};
/* which attempts are kept in dq_attempt */
enum conf_history { CONF_HISTORY_FAILED, CONF_HISTORY_ALL };
/* colours in tables; AUTO: on a terminal */
enum conf_color { CONF_COLOR_AUTO, CONF_COLOR_ALWAYS, CONF_COLOR_NEVER };
extern const char *const conf_color_names[]; /* index = enum conf_color, NULL-terminated */

struct conf_mysql {
    char *host; /* "db1, db2:3307, [::1]:3306": tried in this order; empty: socket */
    int port;   /* for hosts that name none */
    char *socket;
    char *user;
    char *password_file; /* first line is the password; refused if others can read it */
    char *defaults_file; /* a MySQL option file, group [client] and [dq]; values here win over it */
    char *database;
    enum conf_tls tls;
    char *tls_ca, *tls_cert, *tls_key;
    int64_t connect_timeout_ms, read_timeout_ms, write_timeout_ms;
    int64_t unacknowledged_ms; /* a TCP connection is broken if the server's host is silent for so
                                * long: a quarter of [dqd] lease, or read_timeout if that is less */
    char *init_command;        /* one statement run on every new connection */
};

struct conf_dqd {
    char *handlers;           /* path of the YAML file; relative: to the INI file's directory */
    int slots;                /* handler processes at a time */
    /* how often to look for work that no wake-up announced: the longest, and the least time */
    int64_t poll_interval_ms, poll_least_ms;
    int64_t lease_ms;         /* a silent owner loses its tasks after this */
    int64_t heartbeat_ms;     /* how often a poller reports that it is alive */
    int64_t steal_after_ms;   /* others' share of a tag is taken when overdue by this */
    int64_t drain_timeout_ms; /* after SIGTERM, running handlers get this long */
    int claim_batch;          /* most tasks in one claim */
    /* account of the poller, and of handlers without `user:`, when started as root; empty: stay */
    char *user;
    /* overlap guard of --once and --for; empty: chosen by account, configuration and database, see
     * lock.h */
    char *lock_file;
    /* directory of the files by which dq wakes the dqd of this host; empty: none */
    char *wake_dir;
    char *metrics_file; /* for node_exporter's textfile collector; empty: none */
    int log_level;      /* enum log_level */
    enum conf_history history;
};

struct conf_retention { /* 0: kept for ever */
    int64_t done_ms, failed_ms, cancelled_ms;
    int64_t counters_ms; /* rows of dq_minute */
    int64_t events_ms;   /* rows of dq_event */
    int64_t interval_ms; /* pause between sweeps */
};

struct conf_dq {
    char *name;           /* of this installation, for prompts; empty: none */
    char *output;         /* default of -o: table, json, ndjson, tsv, id */
    int color;            /* enum conf_color; --color goes before it */
    char *time_zone;      /* "local" or "utc": how tables show times */
    int64_t retry_for_ms; /* how long producers try again while no server is available */
};

struct conf {
    char *path;      /* the file it came from, absolute */
    char *variables; /* those that override something, separated by blanks; NULL: none */
    struct conf_mysql mysql;
    struct conf_dqd dqd;
    struct conf_retention retention;
    struct conf_dq dq;
};

/* One row a setting. */
enum conf_type {
    CONF_STRING,
    CONF_PATH, /* made absolute: relative to the INI file's directory; empty stays empty */
    CONF_INT,
    CONF_DURATION,
    CONF_AGE,   /* a duration, or "never", which is 0 */
    CONF_RANGE, /* of durations, or one: the greater, then the lesser */
    CONF_ENUM, /* the field is an int */
};
struct conf_key {
    const char *section, *name;
    enum conf_type type;
    size_t offset;            /* in struct conf */
    const char *default_text; /* as one would write it */
    /* CONF_INT: value; CONF_DURATION, CONF_AGE, CONF_RANGE: ms; CONF_STRING, CONF_PATH: least
     * length (min); CONF_ENUM: value of the first choice (min) */
    int64_t min, max;
    /* CONF_ENUM, CONF_STRING: names, NULL-terminated, those of CONF_ENUM in the order of their
     * values; NULL: any */
    const char *const *choices;
    bool reloadable;  /* takes effect at SIGHUP */
    const char *help; /* one line */
};
extern const struct conf_key conf_keys[];
extern const size_t conf_key_count;
extern const char *const conf_sections[]; /* NULL-terminated */
/* Where its value is. */
void *conf_field(struct conf *c, const struct conf_key *key);
/* The row of a setting; NULL: there is none. */
const struct conf_key *conf_find_key(const char *section, const char *name);
/* The key of the section that a misspelt one may mean; NULL: none is near. */
const char *conf_nearest_key(const char *section, const char *name);
/* Another section that has a key of this name; NULL: none. */
const char *conf_other_section(const char *section, const char *name);

/* How often running work is checked, and a held tag asked again: 200 ms, within poll_interval. */
int64_t conf_check_ms(const struct conf *c);

void conf_free(struct conf *c);

/* Copies the reloadable settings (numbers, durations and choices: never strings). Returns the first
 * setting that differs and is not reloadable, or NULL. */
const struct conf_key *conf_take_reloadable(struct conf *to, const struct conf *from);

/* Appends a section with all its keys, in a form that conf_load reads back. Passwords are not part
 * of it: they are in files of their own, which it only names. */
void conf_put_section(struct buf *b, const struct conf *c, const char *section);

/* The text of a setting, or NULL if it is not set or empty. */
const char *conf_or_null(const char *text);

#endif
