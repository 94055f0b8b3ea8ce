/*
 * cmd.c - what the verbs share: configuration, connection, clock, ids, messages.
 *
 * Invariant: a verb runs only after everything that its level names has been set up and checked.
 */
#include "cli/line/cmd.h"

#include "base/mem.h"
#include "base/order.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"
#include "base/when_parse.h"
#include "cli/line/infile.h"
#include "cli/show/pager.h"
#include "cli/show/task_columns.h"
#include "conf/conf_load.h"
#include "store/db/db_connect.h"
#include "store/schema/schema.h"
#include "wake/wake_send.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define TRANSIENT_TRIES 5

/* ---- set-up ---- */

/* --color, else the setting, else NO_COLOR: what is said for one command goes before what is said
 * for all of dq, and that before what is said for all programs. */
static bool stdout_has_colour(const struct cmd_context *c)
{
    int color = c->color >= 0 || !c->conf ? c->color : c->conf->dq.color;
    if (color == CONF_COLOR_ALWAYS || color == CONF_COLOR_NEVER)
        return color == CONF_COLOR_ALWAYS;
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && (!no || *no == '\0') && term && strcmp(term, "dumb") != 0;
}

static unsigned stdout_width(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool cmd_prints(const struct cmd *cmd, int format)
{
    return (cmd->formats ? cmd->formats : OUT_ANY) & OUT_BIT(format);
}

const void *cmd_value(const struct cmd_context *c, const char *option)
{
    for (size_t i = 0; i < c->cmd->option_count; i++)
        if (strcmp(c->cmd->options[i].name, option) == 0)
            return (const char *)c->values + c->cmd->options[i].offset;
    return NULL;
}

struct out_table cmd_columns(const struct cmd *cmd, bool verbose)
{
    const struct out_table *own =
        verbose && cmd->verbose_columns ? cmd->verbose_columns : cmd->columns;
    return own ? *own : (struct out_table){.columns = task_columns, .count = task_column_count};
}

/* -o, else the configured default if the verb has that format, else a table. */
static int choose_format(struct cmd_context *c, struct err *err)
{
    if (c->output >= 0 && !cmd_prints(c->cmd, c->output))
        return err_set(err, ERR_USAGE, "-o %s is not available for this command",
                       out_format_names[c->output]);
    c->style.format = OUT_TABLE;
    for (int i = 0; c->conf && i < OUT_FORMAT_COUNT; i++) {
        if (strcmp(out_format_names[i], c->conf->dq.output) == 0 && cmd_prints(c->cmd, i))
            c->style.format = (enum out_format)i;
    }
    if (c->output >= 0)
        c->style.format = (enum out_format)c->output;
    c->style.colour = stdout_has_colour(c);
    pager_allow(c->cmd->pages && !c->no_pager);
    c->style.terminal = isatty(STDOUT_FILENO);
    c->style.width = stdout_width();
    c->style.cell.utc = c->conf && strcmp(c->conf->dq.time_zone, "utc") == 0;
    return 0;
}

static void say_away(const struct err *why, void *arg)
{
    cmd_note(arg, "%s; trying again", why->text);
}

/* If the verb has --retry-for. A person decides on that: on a terminal, only what is given counts.
 */
static void be_patient(struct cmd_context *c)
{
    const int64_t *given_ms = cmd_value(c, "retry-for");
    bool person = isatty(STDERR_FILENO);
    if (!given_ms)
        return;
    int64_t ms = *given_ms >= 0 ? *given_ms : person ? 0 : c->conf->dq.retry_for_ms;
    db_connect_patiently(c->db, ms, person || c->verbose ? say_away : NULL, c);
}

void cmd_note_read_only(const struct cmd_context *c)
{
    if (db_connect_is_read_only(c->db))
        cmd_note(c, "%s is read-only, and no other host can be used: what it shows may be old",
                 db_server(c->db));
}

int cmd_open(struct cmd_context *c, enum cmd_level level, struct err *err)
{
    int rc = 0;
    if (level >= CMD_CONF && !c->conf)
        rc = conf_load(c->config_path, &c->conf, err);
    if (rc == 0)
        rc = choose_format(c, err);
    if (rc == 0 && level >= CMD_DB && !c->db) {
        c->db = db_new(&c->conf->mysql);
        if (c->cmd->reads_only || c->cmd->pages)
            db_connect_for_reading(c->db, true);
        be_patient(c);
    }
    if (rc == 0 && level >= CMD_SCHEMA && !c->checked) {
        rc = db_connect(c->db, err);
        if (rc == 0) {
            cmd_note_read_only(c);
            rc = schema_check(c->db, err);
        }
        c->checked = rc == 0;
    }
    return rc;
}

void cmd_close(struct cmd_context *c)
{
    if (c->db)
        db_free(c->db);
    if (c->conf)
        conf_free(c->conf);
    for (size_t i = 0; c->values && i < c->cmd->option_count; i++) {
        const struct cmd_option *o = &c->cmd->options[i];
        if (o->type == CMD_TEXTS || o->type == CMD_NAMES || o->type == CMD_TAGS)
            free(*(char **)((char *)c->values + o->offset));
    }
    free(c->values);
}

void cmd_wake(const struct cmd_context *c, int64_t in_ms)
{
    if (in_ms < c->conf->dqd.poll_interval_ms)
        wake_send(c->conf->dqd.wake_dir, c->conf->mysql.database, false);
}

void cmd_wake_rules(const struct cmd_context *c)
{
    wake_send(c->conf->dqd.wake_dir, c->conf->mysql.database, true);
}

bool cmd_again(int rc, int *tries)
{
    if ((rc != ERR_TRANSIENT && rc != ERR_LOCKED) || ++*tries == TRANSIENT_TRIES)
        return false;
    nanosleep(&(struct timespec){.tv_nsec = 20000000L * *tries}, NULL);
    return true;
}

/* ---- times and ids ---- */

int cmd_now(struct cmd_context *c, int64_t *ret_at, struct err *err)
{
    if (c->now_at == TASK_TIME_NONE) {
        int rc = db_now(c->db, &c->now_at, err);
        if (rc < 0)
            return rc;
    }
    *ret_at = c->now_at;
    return 0;
}

bool cmd_time_is_relative(const char *text)
{
    bool has_year = true;
    for (int i = 0; has_year && i < 4; i++)
        has_year = isdigit((unsigned char)text[i]) != 0;
    return text[0] != '@' && !(has_year && text[4] == '-');
}

int cmd_resolve(struct cmd_context *c, const struct cmd_when *when, int64_t *ret_at,
                struct err *err)
{
    char local[WHEN_TEXT_SIZE];
    int64_t now_at = 0, at;
    if (!when->text)
        return 0;
    if (when->past || cmd_time_is_relative(when->text)) {
        int rc = cmd_now(c, &now_at, err);
        if (rc < 0)
            return rc;
    }
    if ((when->past ? when_parse_past : when_parse_instant)(when->text, now_at, &at, err) < 0) {
        err_prefix(err, "--%s", when->option);
        err->code = ERR_USAGE;
        return ERR_USAGE;
    }
    if (when->past && at > now_at)
        return err_set(
            err, ERR_USAGE,
            "--%s: %s is %s, which is in the future; give a past time, such as 2h, \"today 09:00\" or \"yesterday\"",
            when->option, when->text, when_format_local(local, at));
    *ret_at = at;
    return 0;
}

void cmd_put_instant(struct buf *b, int64_t at)
{
    char text[WHEN_TEXT_SIZE];
    if (!strstr(when_format_local(text, at), "+00:00"))
        buf_printf(b, "%s = ", text);
    buf_str(b, when_format_utc(text, at));
}

struct ids {
    uint64_t *items;
    size_t count, cap;
};

/* false: it is not one. */
static bool add_id(struct ids *ids, const char *text)
{
    char *end;
    uint64_t id = strtoull(text, &end, 10);
    /* the greatest number is no task's: it ends a search */
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || id == UINT64_MAX || id == 0)
        return false;
    MEM_ROOM(ids->items, ids->count, ids->cap);
    ids->items[ids->count++] = id;
    return true;
}

/* One in each line; empty lines do not count. */
static int read_ids(struct ids *ids, struct err *err)
{
    LOCAL_BY(infile_done) struct infile f = {0};
    const char *line;
    size_t len;
    int rc = infile_open(&f, "-", INFILE_LINE_MAX, err);
    while (rc >= 0 && (rc = infile_next(&f, &line, &len, err)) == 1) {
        MEM_LOCAL char *text = mem_dup(line, len && line[len - 1] == '\r' ? len - 1 : len);
        if (memchr(line, '\0', len))
            rc = err_set(err, ERR_DATA,
                         "%s, line %" PRIu64
                         " has a NUL byte; write one id per line, or use xargs -0",
                         f.name, f.number);
        else if (*text != '\0' && !add_id(ids, text))
            rc = err_set(err, ERR_DATA,
                         "%s, line %" PRIu64
                         ": \"%.40s\" is not a task id; dq list -o id prints ids",
                         f.name, f.number, text);
    }
    return rc;
}

int cmd_ids(const struct cmd_context *c, bool sorted, uint64_t **ret, size_t *ret_count,
            struct err *err)
{
    struct ids ids = {0};
    size_t count = 0;
    int rc = 0;
    for (int i = 0; rc >= 0 && i < c->operand_count; i++) {
        const char *text = c->operands[i];
        if (strcmp(text, "-") == 0)
            rc = read_ids(&ids, err);
        else if (!add_id(&ids, text))
            rc = err_set(err, ERR_USAGE, "\"%s\" is not a task id; dq add and dq list print ids",
                         text);
    }
    if (rc == 0 && ids.count == 0) /* a filter without ids would mean all tasks */
        rc = err_set(err, ERR_NOT_FOUND, "no ids on standard input");
    if (rc < 0) {
        free(ids.items);
        return rc;
    }
    if (sorted)
        qsort(ids.items, ids.count, sizeof *ids.items, order_ids);
    for (size_t i = 0; i < ids.count; i++) {
        if (!sorted || count == 0 || ids.items[count - 1] != ids.items[i])
            ids.items[count++] = ids.items[i];
    }
    *ret = ids.items;
    *ret_count = count;
    return 0;
}

/* ---- messages ---- */

static void put_line(struct buf *b, const char *prefix, const char *text, size_t len)
{
    buf_str(b, prefix);
    text_escape(b, text, len, 0);
    buf_chr(b, '\n');
}

static void say_line(const char *prefix, const char *text, size_t len)
{
    BUF_LOCAL struct buf line = BUF_INIT;
    put_line(&line, prefix, text, len);
    out_sync(); /* the line comes after what was printed before */
    fwrite(line.data, 1, line.len, stderr);
}

static void __attribute__((format(printf, 2, 0)))
say(const char *prefix, const char *fmt, va_list ap)
{
    BUF_LOCAL struct buf text = BUF_INIT;
    buf_vprintf(&text, fmt, ap);
    say_line(prefix, text.data ? text.data : "", text.len);
}

void cmd_note(const struct cmd_context *c, const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    va_list ap;
    if (c->quiet)
        return;
    va_start(ap, fmt);
    if (c->notes) {
        buf_vprintf(&text, fmt, ap);
        put_line(c->notes, "", text.data ? text.data : "", text.len);
        buf_done(&text);
    } else {
        say("", fmt, ap);
    }
    va_end(ap);
}

/* "dq: " or "dq: VERB: " */
static const char *prefix_of(const struct cmd_context *c)
{
    static char prefix[64];
    if (!c->cmd)
        return "dq: ";
    snprintf(prefix, sizeof prefix, "dq: %s: ", c->cmd->name);
    return prefix;
}

void cmd_complain(struct cmd_context *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(prefix_of(c), fmt, ap);
    va_end(ap);
    c->exit_status = 1;
}

void cmd_fail(const struct cmd_context *c, const struct err *err)
{
    say_line(prefix_of(c), err->text, strlen(err->text));
}
