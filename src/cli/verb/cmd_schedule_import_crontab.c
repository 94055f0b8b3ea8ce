/*
 * cmd_schedule_import_crontab.c - dq schedule import-crontab: a crontab's lines as schedules, and
 * their commands as handlers.
 */
#include "cli/line/verbs.h"
#include "cli/many/act.h"
#include "cli/many/schedule_words.h"
#include "conf/crontab.h"
#include "conf/handlers_load.h"
#include "cli/show/body.h"
#include "cli/show/inert.h"
#include "store/ask/schedule_store.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"
#include "base/zone.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OWNER "crontab"
#define TAG_PREFIX "cron."
/* Those of cron, which sets no time limit and does not repeat what failed. */
#define CRON_PATH "/usr/bin:/bin"
#define CRON_TIMEOUT "24h"

struct import_values {
    const char *user;
    bool system, own, dry_run;
};

struct import {
    struct cmd_context *c;
    const struct import_values *v;
    const char *user; /* of lines that name none */
    struct schedule *rows;
    size_t count, cap;
    struct schedule *stored; /* those that there are */
    size_t stored_count;
    struct buf handlers; /* the lines of the handlers file */
};

/* Two crontabs may have lines that are called alike. */
static char *free_name(const struct import *im, const char *wanted)
{
    char *name = mem_strdup(wanted);
    for (size_t i = 0, n = 2; i < im->count; i++) {
        if (strcmp(im->rows[i].name, name) == 0) {
            free(name);
            name = mem_printf("%s-%zu", wanted, n++);
            i = SIZE_MAX;
        }
    }
    return name;
}

static void put_value(struct buf *b, const char *key, const char *text)
{
    buf_printf(b, "    %s: ", key);
    json_put_string(b, text, strlen(text));
    buf_chr(b, '\n');
}

static void put_pair(struct buf *b, const char *name, size_t len, const char *value)
{
    buf_str(b, b->data[b->len - 1] == '{' ? "" : ", ");
    json_put_string(b, name, len);
    buf_str(b, ": ");
    json_put_string(b, value, strlen(value));
}

/* Returns the HOME of the crontab; NULL: it sets none. */
static const char *put_env(struct buf *b, const struct crontab_entry *e, const char *shell)
{
    const char *home = NULL;
    bool path = false;
    buf_str(b, "    env: {");
    for (char **s = e->env; *s; s++) {
        size_t len = strcspn(*s, "=");
        path |= strncmp(*s, "PATH=", 5) == 0;
        home = strncmp(*s, "HOME=", 5) == 0 ? *s + 5 : home;
        put_pair(b, *s, len, *s + len + 1);
    }
    if (!path)
        put_pair(b, "PATH", 4, CRON_PATH);
    put_pair(b, "SHELL", 5, shell);
    buf_str(b, "}\n");
    return home;
}

static void put_handler(struct buf *b, const struct crontab_entry *e, const char *name,
                        const char *user, const struct passwd *pw)
{
    const char *shell = e->shell ? e->shell : "/bin/sh";
    buf_str(b, "  ");
    json_put_string(b, name, strlen(name));
    buf_str(b, ":\n");
    put_value(b, "run", e->command);
    put_value(b, "shell", shell);
    put_value(b, "user", user);
    const char *home = put_env(b, e, shell);
    put_value(b, "cwd", home ? home : pw->pw_dir);
    buf_str(b, "    retry: never\n    timeout: " CRON_TIMEOUT "\n");
    if (e->mailto && *e->mailto) {
        buf_str(b, "    # on_failed: a tag whose handler mails to ");
        text_escape(b, e->mailto, strlen(e->mailto), 0);
        buf_chr(b, '\n');
    }
}

static struct schedule make_schedule(struct import *im, const struct crontab_entry *e)
{
    MEM_LOCAL char *name = free_name(im, e->name);
    const char *input = e->input ? e->input : "";
    return (struct schedule){
        .name = mem_strdup(name),
        .owner = mem_strdup(OWNER),
        .tag = mem_printf(TAG_PREFIX "%s", name),
        .body = mem_strdup(input),
        .body_size = strlen(input),
        .kind = TIMETABLE_CRON,
        .expression = mem_strdup(e->expression),
        .zone = e->zone ? mem_strdup(e->zone) : zone_local_name(),
        .from_at = TASK_TIME_NONE,
        .to_at = TASK_TIME_NONE,
        .spread_ms = e->spread_minutes * WHEN_MINUTE,
        .catch_up = SLOT_CATCH_UP_SKIP,
        .overlap = SLOT_OVERLAP_ALLOW,
    };
}

static bool is_text(const struct crontab_entry *e)
{
    bool good = json_utf8_valid(e->command, strlen(e->command), NULL, NULL);
    for (char **s = e->env; *s; s++)
        good = good && json_utf8_valid(*s, strlen(*s), NULL, NULL);
    return good;
}

/* Why the line cannot become this schedule; false: it can. */
static bool check(const struct import *im, const struct crontab_entry *e, const struct schedule *s,
                  const struct passwd *pw, const char *user, struct err *why)
{
    BUF_LOCAL struct buf word = BUF_INIT;

    if (!pw)
        return err_set(why, ERR_DATA,
                       "there is no account %s on this host, so its home is not known", user);
    if (!is_text(e))
        return err_set(why, ERR_DATA, "it is not UTF-8, as a handlers file has to be");
    if (!s->zone)
        return err_set(why, ERR_DATA, "the time zone of this host has no name; set CRON_TZ");
    text_shell_word(&word, s->name);
    for (size_t i = 0; i < im->stored_count; i++)
        if (strcmp(im->stored[i].name, s->name) == 0 && schedule_row_differs(&im->stored[i], s))
            return err_set(why, ERR_DATA,
                           "there is a schedule %s that differs; dq schedule show %s", s->name,
                           word.data);
    struct timetable *t = schedule_row_timetable(s, why);
    timetable_free(t);
    return !t;
}

static int check_handler(const char *handler, struct err *why)
{
    MEM_LOCAL char *text = mem_printf("handlers:\n%s", handler);
    struct handlers *h = NULL;
    int rc = handlers_load_again("its handler", text, strlen(text), &h, why);
    handlers_free(h);
    return rc;
}

static void take_entry(struct import *im, const char *file, const struct crontab_entry *e)
{
    const char *verdict = crontab_verdict_name(e->verdict), *note = e->note ? e->note : "";
    const char *user = e->user ? e->user : im->user;
    struct err why = {0};
    if (e->verdict == CRONTAB_REFUSED) {
        cmd_complain(im->c, "%s:%u: %s: %s", file, e->line, verdict, note);
        return;
    }
    if (e->verdict == CRONTAB_HOST_OWN && !im->v->own) {
        cmd_note(im->c, "%s:%u: left, as its own: %s", file, e->line, note);
        return;
    }
    struct schedule s = make_schedule(im, e);
    const struct passwd *pw = getpwnam(user);
    BUF_LOCAL struct buf handler = BUF_INIT;
    bool bad = check(im, e, &s, pw, user, &why);
    if (!bad) {
        put_handler(&handler, e, s.tag, user, pw);
        bad = check_handler(handler.data, &why) < 0;
    }
    if (bad) {
        cmd_complain(im->c, "%s:%u: refused: %s", file, e->line, why.text);
        schedule_row_done(&s);
        return;
    }
    cmd_note(im->c, "%s:%u: %s as %s%s%s", file, e->line, verdict, s.name, *note ? ": " : "", note);
    buf_add(&im->handlers, handler.data, handler.len);
    MEM_ROOM(im->rows, im->count, im->cap);
    im->rows[im->count++] = s;
}

static bool is_system(const char *path)
{
    return strcmp(path, "/etc/crontab") == 0 || strncmp(path, "/etc/cron.d/", 12) == 0;
}

static int read_crontab(struct import *im, const char *path, struct err *err)
{
    BUF_LOCAL struct buf text = BUF_INIT;
    MEM_LOCAL char *word = mem_printf("@%s", path);
    struct crontab tab;
    const bool has_user = im->v->system || (!im->v->user && is_system(path));
    int rc = body_read(strcmp(path, "-") == 0 ? path : word, &text, err);
    if (rc < 0)
        return rc;
    crontab_read(text.data ? text.data : "", text.len, has_user, &tab);
    for (size_t i = 0; i < tab.count; i++)
        take_entry(im, path, &tab.entries[i]);
    if (tab.ignored)
        cmd_note(
            im->c,
            "%s:%u: because of this line, Debian's cron ignores the whole file: none of its jobs has run",
            path, tab.ignored);
    crontab_done(&tab);
    return 0;
}

static int store(struct import *im, struct err *err)
{
    struct schedule_change *changes = mem_zero(im->count + 1, sizeof *changes);
    size_t bad;
    for (size_t i = 0; i < im->count; i++)
        changes[i].set = &im->rows[i];
    int rc = act_schedules(im->c, im->c->operands[0], NULL, changes, im->count, NULL, &bad, err);
    schedule_store_change_done(changes, im->count);
    free(changes);
    return rc;
}

static void print(const struct import *im)
{
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < im->count; i++) {
        buf_str(&b, "# dq schedule set ");
        schedule_words_put(&b, &cmd_schedule_set, &im->rows[i]);
        buf_chr(&b, '\n');
    }
    if (im->count) {
        buf_str(&b, "handlers:\n");
        buf_add(&b, im->handlers.data, im->handlers.len);
    }
    inert_take(&b);
}

static int run(struct cmd_context *c, struct err *err)
{
    struct import im = {.c = c, .v = c->values, .handlers = BUF_INIT};
    const struct passwd *pw = getpwuid(getuid());
    MEM_LOCAL char *own = mem_strdup(pw ? pw->pw_name : "");
    int64_t now_at;
    im.user = im.v->user ? im.v->user : own;
    int rc = schedule_store_list(c->db, &(struct schedule_filter){.bodies = true}, &im.stored,
                                 &im.stored_count, &now_at, err);
    for (int i = 0; rc == 0 && i < c->operand_count; i++)
        rc = read_crontab(&im, c->operands[i], err);
    if (rc == 0 && im.count && !im.v->dry_run)
        rc = store(&im, err);
    if (rc == 0)
        print(&im);
    if (rc == 0 && im.count && !im.v->dry_run) {
        cmd_wake_rules(c);
        cmd_note(
            c,
            "put these handlers into the handlers file of every host, then remove the lines from the crontab");
    }
    schedule_row_free(im.rows, im.count);
    schedule_row_free(im.stored, im.stored_count);
    buf_done(&im.handlers);
    return rc;
}

#define FIELD(name) offsetof(struct import_values, name)
static const struct cmd_option options[] = {
    {"user", 0, CMD_TEXT, FIELD(user), "USER", NULL, 0},
    {"system", 0, CMD_FLAG, FIELD(system), NULL, NULL, 0},
    {"own", 0, CMD_FLAG, FIELD(own), NULL, NULL, 0},
    {"dry-run", 0, CMD_FLAG, FIELD(dry_run), NULL, NULL, 0},
};

const struct cmd cmd_schedule_import_crontab = {
    .name = "schedule import-crontab",
    CMD_OPTIONS(options, import_values),
    .exclusive = "user system",
    .min_operands = 1,
    .max_operands = -1,
    .formats = OUT_BIT(OUT_TABLE),
    .run = run,
};
