/*
 * cmd.h - a verb of dq: its name, arguments and action, and the context that every verb gets.
 *
 * Each cmd_VERB.c defines one struct cmd; the table in verbs.c lists them. Parsing and checking of
 * values follow from the declaration alone, usage and help from that and etc/help.
 */
#ifndef DQ_CLI_LINE_CMD_H
#define DQ_CLI_LINE_CMD_H

#include "base/err.h"
#include "base/mem.h"
#include "cli/show/out.h"
#include "conf/conf.h"
#include "store/db/db.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* the field at `offset`, and its value when the option is not given */
enum cmd_type {
    CMD_FLAG, /* bool; false */
    CMD_TEXT, /* const char *; NULL */
    CMD_BODY, /* the same, data of bodies: not everybody who reads dq_event may see it */
    CMD_NAME, /* as TEXT: a tag or key that selects tasks */
    /* may be repeated: const char *, heap memory of cmd_close; several are lines of it; NULL */
    CMD_TEXTS,
    CMD_NAMES,    /* the same, of keys */
    CMD_TAGS,     /* of globs of tags */
    CMD_COUNT,    /* int64_t, at least `min`; -1 */
    CMD_DURATION, /* int64_t ms, at least `min`; -1 */
    CMD_CHOICE,   /* int, index into choices; -1 */
    CMD_STATUSES, /* unsigned, mask of TASK_BIT; 0 */
    CMD_INSTANT,  /* struct cmd_when; text NULL */
    CMD_SINCE,    /* struct cmd_when; like INSTANT, or a duration before now */
};

struct cmd_option {
    const char *name; /* long name without dashes */
    char letter;      /* 0: none */
    enum cmd_type type;
    size_t offset;
    const char *arg;            /* how usage names the argument; NULL: it takes none */
    const char *const *choices; /* NULL-terminated */
    int64_t min;
};
/* clang-format off */
#define CMD_RETRY_FOR(offset) {"retry-for", 0, CMD_DURATION, offset, "D", NULL, 0}
#define CMD_COLUMNS(offset) {"columns", 'c', CMD_TEXT, offset, "A,B,C", NULL, 0}
/* clang-format on */
/* of: the verb's own struct that they fill */
#define CMD_OPTIONS(table, of)                                                                     \
    .options = (table), .option_count = MEM_COUNT(table), .values_size = sizeof(struct of)

/* A time on the command line. If its meaning depends on the current time, the database is asked for
 * that. */
struct cmd_when {
    const char *option; /* for messages */
    const char *text;
    bool past; /* it must not be in the future */
};

/* what is set up before run is called; each level includes those before it */
enum cmd_level {
    CMD_NOTHING = -3, /* run calls cmd_open itself if it needs more */
    CMD_CONF,         /* the configuration is read */
    CMD_DB,           /* db is there, not yet connected */
    CMD_SCHEMA,       /* connected, and this dq works with the schema: if nothing is said */
};

struct cmd_context;
struct cmd {
    const char *name, *alias; /* alias NULL: none */
    /* what follows the name may also be one of these commands, each named "NAME WORD";
     * NULL-terminated; NULL: it has none */
    const struct cmd *const *commands;
    const struct cmd_option *options;
    size_t option_count;
    /* groups of options, of which one excludes the others ("in at, sql dry-run"), and pairs, of
     * which the first is for the second ("skip from"); NULL: none */
    const char *exclusive, *requires;
    bool program; /* no verb, but a program: without the options of dq's verbs */
    size_t values_size;
    int min_operands, max_operands; /* max less than min: as many as that; -1: any number */
    const char *instead;            /* an option that replaces them; NULL: none */
    enum cmd_level level;
    bool reads_only;  /* changes nothing in the database, and a read-only server will do */
    bool pages;       /* the same, and on a terminal its output goes through a pager */
    unsigned formats; /* mask of OUT_BIT: what -o may ask for; 0: OUT_ANY */
    /* for --columns, and for that with -v; NULL: those of a task, and others, which run checks */
    const struct out_table *columns, *verbose_columns;
    int (*run)(struct cmd_context *c, struct err *err);
    const void *request; /* of verbs that share one run: what tells them apart */
};

struct cmd_context {
    const struct cmd *cmd;
    /* global options */
    const char *config_path;
    int output; /* enum out_format; -1: not given */
    int color;  /* enum conf_color; -1: not given */
    bool no_pager, quiet, verbose, help, version;
    /* from the command line */
    void *values;
    char **operands; /* into argv */
    int operand_count;
    /* set up by cmd_open */
    bool checked; /* CMD_SCHEMA was */
    struct conf *conf;
    struct db *db;
    struct out_style style;
    int64_t now_at;    /* by cmd_now; TASK_TIME_NONE: not yet asked */
    struct buf *notes; /* where notes are appended; NULL: they go to stderr */
    unsigned height;   /* lines of the screen on which it is shown again and again; 0: none */
    /* result */
    int exit_status; /* when run returned 0 */
};
/* Sets up to a level; called again with a higher one it goes on from there. Decides the output
 * format (-o, [dq] output, table). */
int cmd_open(struct cmd_context *c, enum cmd_level level, struct err *err)
    __attribute__((warn_unused_result));
void cmd_close(struct cmd_context *c);
/* Says it if the server in use is read-only. cmd_open does for the first connection. */
void cmd_note_read_only(const struct cmd_context *c);
bool cmd_prints(const struct cmd *cmd, int format); /* whether -o may ask for it */
/* The field of the verb's option of that name; NULL: it has none. */
const void *cmd_value(const struct cmd_context *c, const char *option);
/* What --columns may name. */
struct out_table cmd_columns(const struct cmd *cmd, bool verbose);

/* The database's clock, asked once. */
int cmd_now(struct cmd_context *c, int64_t *ret_at, struct err *err)
    __attribute__((warn_unused_result));
/* Whether the text of a time means something else tomorrow ("09:00", "+10m", "friday"). */
bool cmd_time_is_relative(const char *text);
/* The instant of an option; *ret_at is untouched if the option was not given. */
int cmd_resolve(struct cmd_context *c, const struct cmd_when *when, int64_t *ret_at,
                struct err *err) __attribute__((warn_unused_result));
/* Appends "2026-11-21 10:00:00.000 +01:00 = 2026-11-21T09:00:00.000Z", or only the latter if local
 * time is UTC then. */
void cmd_put_instant(struct buf *b, int64_t at);
/* The operands as task ids, those on standard input for the operand "-": in their order, or
 * ascending and each once. At least one: ERR_NOT_FOUND if standard input has none. *ret is heap
 * memory. */
int cmd_ids(const struct cmd_context *c, bool sorted, uint64_t **ret, size_t *ret_count,
            struct err *err) __attribute__((warn_unused_result));

/* To be called after the commit of a task that is due in in_ms (0 or less: now, or not known).
 * Wakes the dqd of this host, unless they poll before that anyway. Best effort. */
void cmd_wake(const struct cmd_context *c, int64_t in_ms);
/* The same of schedules or limits that have changed: other hosts see that with their next
 * heartbeat. */
void cmd_wake_rules(const struct cmd_context *c);
/* Whether to send what came to rc once more, *tries (0 at first) being counted here: a deadlock or
 * a lock was rolled back whole. Waits a moment before. */
bool cmd_again(int rc, int *tries);

/* One line on stderr, escaped. note: information, dropped by -q. complain: "dq: VERB: ..." about
 * one of several tasks; sets exit status 1. */
void cmd_note(const struct cmd_context *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void cmd_complain(struct cmd_context *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The error that ends the program: "dq: VERB: text", or "dq: text" if there is no verb yet. */
void cmd_fail(const struct cmd_context *c, const struct err *err);
#endif
