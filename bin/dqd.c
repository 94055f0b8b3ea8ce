/*
 * dqd.c - the poller's command line: what to run, with which files. The work is in src/poller.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rlimit.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"
#include "cli/line/option.h"
#include "cli/line/usage.h"
#include "conf/conf.h"
#include "conf/conf_file.h"
#include "conf/conf_load.h"
#include "conf/handlers.h"
#include "conf/handlers_load.h"
#include "poller/lock.h"
#include "poller/poller.h"
#include "runner/check.h"
#include "wake/wake_listen.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <unistd.h>

struct dqd_values {
    bool once, resident, check_config, list_handlers, allow_overlap, help, version;
    int64_t for_ms, slots;
    int log_level; /* in level_names */
    const char *config;
    char *tags; /* one a line */
};

struct command_line {
    const struct dqd_values *v;
    struct poller_options o;
    const char **tags;
};

static const char *const level_names[] = {"error", "warn", "notice", "info", "debug", NULL};

#define FIELD(name) offsetof(struct dqd_values, name)
static const struct cmd_option options[] = {
    {"once", 0, CMD_FLAG, FIELD(once), NULL, NULL, 0},
    {"for", 0, CMD_DURATION, FIELD(for_ms), "DURATION", NULL, 0},
    {"resident", 0, CMD_FLAG, FIELD(resident), NULL, NULL, 0},
    {"config", 0, CMD_TEXT, FIELD(config), "FILE", NULL, 0},
    {"tag", 0, CMD_TAGS, FIELD(tags), "GLOB", NULL, 0},
    {"slots", 0, CMD_COUNT, FIELD(slots), "N", NULL, 0},
    {"log-level", 0, CMD_CHOICE, FIELD(log_level), "LEVEL", level_names, 0},
    {"allow-overlap", 0, CMD_FLAG, FIELD(allow_overlap), NULL, NULL, 0},
    {"check-config", 0, CMD_FLAG, FIELD(check_config), NULL, NULL, 0},
    {"list-handlers", 0, CMD_FLAG, FIELD(list_handlers), NULL, NULL, 0},
    {"help", 'h', CMD_FLAG, FIELD(help), NULL, NULL, 0},
    {"version", 'V', CMD_FLAG, FIELD(version), NULL, NULL, 0},
};

static const struct cmd dqd = {
    .name = "dqd",
    .program = true,
    CMD_OPTIONS(options, dqd_values),
    .exclusive = "once for resident check-config list-handlers",
};

/* Says what went wrong; returns the exit status. */
static int complain(const struct err *err)
{
    BUF_LOCAL struct buf line = BUF_INIT;

    buf_printf(&line, "dqd: %s", err->text);
    log_say(line.data);
    return err_exit_status(err->code);
}

/* Each glob becomes a text of its own. */
static int take_tags(struct command_line *c, char *globs, struct err *err)
{
    size_t count = 0;

    for (char *s = globs, *next; s; s = next) {
        next = strchr(s, '\n');
        if (next)
            *next++ = '\0';
        if (*s == '\0')
            return err_set(err, ERR_USAGE,
                           "--tag is empty and would match nothing; give a glob such as 'mail.*'");
        c->tags = mem_resize(c->tags, count + 2, sizeof *c->tags);
        c->tags[count++] = s;
        c->tags[count] = NULL;
    }
    c->o.tags = c->tags;
    return 0;
}

/* 1: help or the version was printed, which is all. */
static int parse(struct command_line *c, struct cmd_context *x, char **argv, int argc,
                 struct err *err)
{
    struct buf b = BUF_INIT;
    int rc = option_parse_own(x, argc, argv, err);

    c->v = x->values;
    if (rc == 0 && (c->v->help || c->v->version)) {
        if (c->v->help)
            usage_put_verb(&b, &dqd);
        else
            buf_str(&b, "dqd " PACKAGE_VERSION "\n");
        out_take(&b);
        return 1;
    }
    if (rc == 0 && (c->v->slots == 0 || c->v->slots > CONF_SLOTS_MAX))
        rc = err_set(err, ERR_USAGE, "--slots: %" PRId64 " is out of range: 1 to %d", c->v->slots,
                     CONF_SLOTS_MAX);
    if (rc < 0)
        return rc;
    c->o.argv = argv;
    c->o.conf_path = c->v->config;
    c->o.mode = c->v->resident ? POLLER_RESIDENT : c->v->for_ms >= 0 ? POLLER_FOR : POLLER_ONCE;
    c->o.for_ms = c->v->for_ms;
    c->o.slots = (int)MAX(c->v->slots, 0);
    c->o.log_level = c->v->log_level < 0 ? 0 : log_level_parse(level_names[c->v->log_level]);
    return take_tags(c, c->v->tags, err);
}

/* As it stands in the file but for what would act on a terminal: a backslash is the shell's own. */
static void put_line(struct buf *b, const char *line)
{
    for (size_t len; *line; line += len) {
        len = *line == '\\' ? 1 : strcspn(line, "\\");
        if (*line == '\\')
            buf_chr(b, '\\');
        else
            text_escape(b, line, len, 0);
    }
}

/* The shell's text with its line ends escaped, or a list as JSON. */
static void put_command(struct buf *b, const struct handler *h)
{
    if (h->run) {
        put_line(b, h->run);
        return;
    }
    for (char *const *word = h->argv; *word; word++) {
        buf_chr(b, word == h->argv ? '[' : ',');
        json_put_string(b, *word, strlen(*word));
    }
    buf_chr(b, ']');
}

static void list_handlers(const struct handlers *h)
{
    struct buf b = BUF_INIT;
    size_t width = sizeof "handler" - 1;

    for (size_t i = 0; i < h->count; i++)
        width = MAX(width, text_width(h->items[i].name, strlen(h->items[i].name)));
    buf_printf(&b, "%-*s  line   timeout  attempts  max_running  batch  user      run\n",
               (int)width, "handler");
    for (size_t i = 0; i < h->count; i++) {
        const struct handler *k = &h->items[i];
        char timeout[WHEN_TEXT_SIZE];

        text_escape(&b, k->name, strlen(k->name), 0);
        buf_printf(&b, "%*s  %4u  %8s  %8" PRIu32 "  %11d  %5d  %-8s  ",
                   (int)(width - text_width(k->name, strlen(k->name))), "", k->line,
                   when_format_duration(timeout, k->timeout_ms), retry_max_attempts(&k->retry),
                   k->max_running, k->batch, k->user ? k->user : "-");
        put_command(&b, k);
        buf_chr(&b, '\n');
    }
    out_take(&b);
}

/* The files that the connection needs, which only a run would miss. */
static int check_mysql_files(const struct conf_mysql *m, struct err *err)
{
    const char *const files[][2] = {
        {"tls_ca", m->tls_ca}, {"tls_cert", m->tls_cert}, {"tls_key", m->tls_key}};
    char *password = NULL;

    if (m->defaults_file[0]) {
        int fd = conf_file_open(m->defaults_file, "MySQL option file", err);
        if (fd < 0)
            return fd;
        close(fd);
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i][1][0] && access(files[i][1], R_OK) < 0)
            return err_set(err, ERR_CONFIG, "%s %s: %m", files[i][0], files[i][1]);
    if (!m->password_file[0])
        return 0;
    int rc = conf_file_read_secret(m->password_file, &password, err);
    conf_file_wipe_secret(password);
    return rc;
}

/* A line. */
static void __attribute__((format(printf, 2, 3))) say(FILE *to, const char *fmt, ...)
{
    BUF_LOCAL struct buf text = BUF_INIT, line = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    text_escape(&line, text.data, text.len, 0);
    if (to == stdout)
        out_printf("%s\n", line.data);
    else
        fprintf(to, "%s\n", line.data);
}

static void warn_of_handler(const struct handlers *handlers, const struct handler *h,
                            const char *why)
{
    say(stderr, "dqd: %s:%u: warning: %s cannot be started at present: %s", handlers->path, h->line,
        h->name, why);
}

static size_t warn_of_files(const struct conf *conf, const struct handlers *handlers)
{
    struct err err = {0};
    bool deaf = conf->dqd.wake_dir[0] && wake_listen_check(conf->dqd.wake_dir, &err) < 0;
    const struct handler *h;
    bool unread = conf->dqd.metrics_file[0] && fnmatch("*.prom", conf->dqd.metrics_file, 0);
    size_t warnings = (size_t)deaf + (size_t)unread + (handlers->count == 0);

    if (unread)
        say(stderr, "dqd: %s: warning: [dqd] metrics_file = %s: node_exporter reads only *.prom",
            conf->path, conf->dqd.metrics_file);
    if (deaf)
        say(stderr, "dqd: %s: warning: [dqd] wake_dir = %s: %s: dq could not wake this dqd",
            conf->path, conf->dqd.wake_dir, err.text);
    if (!handlers->count)
        say(stderr, "dqd: %s: warning: there are no handlers, so no task would be started",
            handlers->path);
    for (size_t at = 0; (h = handlers_unfollowed(handlers, &at)); warnings++)
        say(stderr, "dqd: %s:%u: warning: on_failed: no handler here serves %s", handlers->path,
            h->line, h->on_failed);
    return warnings;
}

/* What may be right at another time or for another account is a warning. */
static int check_config(const struct command_line *c, struct err *err)
{
    const struct conf *conf = c->o.conf;
    const struct handlers *handlers = c->o.handlers;
    char counted[40] = "";
    size_t warnings;
    int rc = check_mysql_files(&conf->mysql, err);

    if (rc < 0)
        return rc;
    if (conf->dqd.user[0] && !getpwnam(conf->dqd.user))
        return err_set(err, ERR_CONFIG, "%s: [dqd] user = %s: there is no such account", conf->path,
                       conf->dqd.user);
    warnings =
        check_handlers(handlers, conf->dqd.user, warn_of_handler) + warn_of_files(conf, handlers);
    rc = lock_check(conf, err);
    if (rc < 0 && rc != ERR_DENIED && conf->dqd.lock_file[0])
        return err_prefix(err, "%s: [dqd] lock_file", conf->path);
    if (rc < 0) {
        say(stderr, "dqd: %s: warning: %s", conf->path, err->text);
        warnings++;
    }
    if (warnings)
        snprintf(counted, sizeof counted, ", %zu warning%s", warnings, warnings == 1 ? "" : "s");
    say(stdout, "%s and %s are fine: %zu handler%s%s%s%s", conf->path, handlers->path,
        handlers->count, handlers->count == 1 ? "" : "s", counted,
        conf->variables ? "; overridden by the environment: " : "",
        conf->variables ? conf->variables : "");
    return 0;
}

/* 0: go on; 1: another run is at work, which is fine for a timer. */
static int guard(struct command_line *c, struct err *err)
{
    int rc;

    c->o.lock_fd = -1;
    if (c->o.mode == POLLER_RESIDENT || c->v->allow_overlap)
        return 0;
    rc = lock_take(c->o.conf, &c->o.lock_fd, err);
    if (rc != ERR_BUSY)
        return rc;
    log_event(LOG_INFO, "not started", "reason=%s", log_quote(err->text));
    return 1;
}

/* Hands the files over to the poller. */
static int run(struct command_line *c, struct err *err)
{
    struct poller_options o = c->o;
    int rc = guard(c, err);

    if (rc != 0)
        return rc;
    o.lock_fd = c->o.lock_fd;
    c->o.conf = NULL;
    c->o.handlers = NULL;
    return poller_run(&o, err);
}

static int act(struct command_line *c, struct err *err)
{
    if (conf_load(c->o.conf_path, &c->o.conf, err) < 0 ||
        handlers_load(c->o.conf->dqd.handlers, &c->o.handlers, err) < 0)
        return err->code;
    log_set_level(c->o.log_level ? c->o.log_level : c->o.conf->dqd.log_level);
    if (c->v->check_config)
        return check_config(c, err);
    if (!c->v->list_handlers)
        return run(c, err);
    list_handlers(c->o.handlers);
    return 0;
}

/* One that comes before the poller takes signals waits for it, and is a reload like any other. */
static void hold_hup(void)
{
    sigset_t hup;

    sigemptyset(&hup);
    sigaddset(&hup, SIGHUP);
    sigprocmask(SIG_BLOCK, &hup, NULL);
}

int main(int argc, char **argv)
{
    struct cmd_context x = {.cmd = &dqd};
    struct command_line c = {.o = {.lock_fd = -1}};
    struct err err = {0};
    int rc;

    prctl(PR_SET_NAME, "dqd"); /* a restart executes /proc/self/exe */
    hold_hup();
    log_fill_descriptors();
    log_open("dqd", LOG_INFO);
    rc = rlimit_check(true, &err);
    if (rc == 0)
        rc = parse(&c, &x, argv, argc, &err);
    if (rc == 0)
        rc = act(&c, &err);
    if (rc >= 0 && out_flush(&err) < 0)
        rc = err.code;
    conf_free(c.o.conf);
    handlers_free(c.o.handlers);
    free(c.tags);
    cmd_close(&x);
    return rc < 0 ? complain(&err) : 0;
}
