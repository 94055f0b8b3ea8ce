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
#include "base/when_parse.h"
#include "cli/show/out.h"
#include "conf/conf.h"
#include "conf/conf_file.h"
#include "conf/conf_load.h"
#include "conf/handlers.h"
#include "conf/handlers_load.h"
#include "poller/lock.h"
#include "poller/poller.h"
#include "runner/check.h"
#include "wake/wake_listen.h"

#include <errno.h>
#include <getopt.h>
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

enum action { RUN, CHECK_CONFIG, LIST_HANDLERS };

struct command_line {
    enum action action;
    bool allow_overlap;
    const char *mode; /* as given; NULL: none */
    struct poller_options o;
    const char **tags;
    size_t tag_count;
};

static const char usage[] =
    "usage: dqd [--once | --for DURATION | --resident] [--config FILE] [--tag GLOB]... [--slots N]\n"
    "           [--log-level LEVEL] [--allow-overlap]\n"
    "       dqd --check-config | --list-handlers [--config FILE]\n"
    "       dqd --help | --version\n";
static const char help[] =
    "\nStart the handlers of tasks that are due.\n\n"
    "  --once             run until nothing is due and nothing runs, then exit (default; for timers)\n"
    "  --for DURATION     run for this long, then let running handlers finish (for cron: 55s)\n"
    "  --resident         run until SIGTERM (for a service)\n"
    "  --config FILE      read this file; default: $DQ_CONFIG, ~/.config/dq/dq.ini, /etc/dq/dq.ini\n"
    "  --tag GLOB         run only tasks whose tag matches; may be repeated\n"
    "  --slots N          at most N handler processes at a time; default: slots in [dqd]\n"
    "  --log-level LEVEL  error, warn, notice, info or debug; default: log_level in [dqd]\n"
    "  --allow-overlap    run even if another --once or --for run is active on this host\n"
    "  --check-config     check dq.ini and the handlers file, exit with 0 or 78\n"
    "  --list-handlers    print the handlers as dqd understands them\n\n"
    "On SIGTERM, dqd starts no more tasks and exits when running handlers have finished; a second SIGTERM\n"
    "kills them. SIGHUP reloads both files. See dqd(8), dq.ini(5), dq-handlers(5).\n";

static const struct option options[] = {{"once", no_argument, NULL, 'o'},
                                        {"for", required_argument, NULL, 'f'},
                                        {"resident", no_argument, NULL, 'r'},
                                        {"config", required_argument, NULL, 'c'},
                                        {"tag", required_argument, NULL, 't'},
                                        {"slots", required_argument, NULL, 's'},
                                        {"log-level", required_argument, NULL, 'l'},
                                        {"allow-overlap", no_argument, NULL, 'a'},
                                        {"check-config", no_argument, NULL, 'C'},
                                        {"list-handlers", no_argument, NULL, 'L'},
                                        {"help", no_argument, NULL, 'h'},
                                        {"version", no_argument, NULL, 'V'},
                                        {NULL, 0, NULL, 0}};

/* Says what went wrong; returns the exit status. */
static int complain(const struct err *err)
{
    struct buf line = BUF_INIT;

    buf_printf(&line, "dqd: %s", err->text);
    log_say(line.data);
    buf_done(&line);
    return err_exit_status(err->code);
}

static int unknown_option(const char *given, struct err *err)
{
    const char *names[sizeof options / sizeof options[0]], *nearest;
    size_t n = 0;

    for (; options[n].name; n++)
        names[n] = options[n].name;
    nearest = strncmp(given, "--", 2) == 0 ? text_nearest(given + 2, names, n) : NULL;
    if (nearest)
        return err_set(err, ERR_USAGE, "unknown option %s; did you mean --%s?", given, nearest);
    return err_set(err, ERR_USAGE, "unknown option %s; see dqd --help", given);
}

static int set_action(struct command_line *c, enum action action, const char *name, struct err *err)
{
    if (c->mode)
        return err_set(err, ERR_USAGE, "%s and %s cannot be combined", c->mode, name);
    c->mode = name;
    c->action = action;
    return 0;
}

static int set_mode(struct command_line *c, enum poller_mode mode, const char *name,
                    struct err *err)
{
    c->o.mode = mode;
    return set_action(c, RUN, name, err);
}

static int take_slots(struct command_line *c, const char *text, struct err *err)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (*text == '\0' || *end || n < 1 || n > CONF_SLOTS_MAX)
        return err_set(err, ERR_USAGE, "--slots %s: give a whole number from 1 to %d", text,
                       CONF_SLOTS_MAX);
    c->o.slots = (int)n;
    return 0;
}

static int take_for(struct command_line *c, const char *text, struct err *err)
{
    if (when_parse_duration(text, &c->o.for_ms, err) < 0) {
        err_prefix(err, "--for");
        return err->code = ERR_USAGE;
    }
    return set_mode(c, POLLER_FOR, "--for", err);
}

static int take_option(struct command_line *c, int opt, char *const *argv, struct err *err)
{
    switch (opt) {
    case 'o':
        return set_mode(c, POLLER_ONCE, "--once", err);
    case 'r':
        return set_mode(c, POLLER_RESIDENT, "--resident", err);
    case 'f':
        return take_for(c, optarg, err);
    case 'c':
        c->o.conf_path = optarg;
        return 0;
    case 't':
        if (*optarg == '\0')
            return err_set(err, ERR_USAGE,
                           "--tag is empty and would match nothing; give a glob such as 'mail.*'");
        if (task_check_tag_wanted(optarg, err) < 0)
            return err_set(err, ERR_USAGE, "--tag: %s", err->text);
        c->tags = mem_resize(c->tags, c->tag_count + 2, sizeof *c->tags);
        c->tags[c->tag_count++] = optarg;
        c->tags[c->tag_count] = NULL;
        return 0;
    case 's':
        return take_slots(c, optarg, err);
    case 'l':
        c->o.log_level = log_level_parse(optarg);
        return c->o.log_level > 0
                   ? 0
                   : err_set(err, ERR_USAGE,
                             "--log-level %s: give error, warn, notice, info or debug", optarg);
    case 'a':
        c->allow_overlap = true;
        return 0;
    case 'C':
        return set_action(c, CHECK_CONFIG, "--check-config", err);
    case 'L':
        return set_action(c, LIST_HANDLERS, "--list-handlers", err);
    case ':':
        return err_set(err, ERR_USAGE, "option %s needs a value; see dqd --help", argv[optind - 1]);
    default:
        return unknown_option(argv[optind - 1], err);
    }
}

/* 1: help or the version was printed, which is all. */
static int parse(struct command_line *c, int argc, char **argv, struct err *err)
{
    int opt;

    opterr = 0;
    while ((opt = getopt_long(argc, argv, "+:hV", options, NULL)) != -1) {
        if (opt == 'h') {
            fputs(usage, stdout);
            fputs(help, stdout);
            return 1;
        }
        if (opt == 'V') {
            puts("dqd " PACKAGE_VERSION);
            return 1;
        }
        if (take_option(c, opt, argv, err) < 0)
            return err->code;
    }
    if (optind < argc)
        return err_set(err, ERR_USAGE,
                       "unexpected argument \"%s\"; dqd takes only options, see dqd --help",
                       argv[optind]);
    c->o.tags = c->tags;
    c->o.argv = argv;
    return 0;
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
    out_write(&b);
    buf_done(&b);
}

/* The files that the connection needs, which only a run would miss. */
static int check_mysql_files(const struct conf_mysql *m, struct err *err)
{
    const char *const files[][2] = {{"defaults_file", m->defaults_file},
                                    {"tls_ca", m->tls_ca},
                                    {"tls_cert", m->tls_cert},
                                    {"tls_key", m->tls_key}};
    char *password = NULL;

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
    struct buf text = BUF_INIT, line = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    text_escape(&line, text.data, text.len, 0);
    fprintf(to, "%s\n", line.data);
    buf_done(&text);
    buf_done(&line);
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

    if (deaf)
        say(stderr, "dqd: %s: warning: [dqd] wake_dir = %s: %s: dq could not wake this dqd",
            conf->path, conf->dqd.wake_dir, err.text);
    if (!handlers->count)
        say(stderr, "dqd: %s: warning: there are no handlers, so no task would be started",
            handlers->path);
    return (size_t)deaf + (handlers->count == 0);
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
    if (c->o.mode == POLLER_RESIDENT || c->allow_overlap)
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
    if (c->action == CHECK_CONFIG)
        return check_config(c, err);
    if (c->action == RUN)
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
    struct command_line c = {.o = {.lock_fd = -1}};
    struct err err = {0};
    int rc;

    prctl(PR_SET_NAME, "dqd"); /* a restart executes /proc/self/exe */
    hold_hup();
    log_fill_descriptors();
    log_open("dqd", LOG_INFO);
    rc = rlimit_check(true, &err);
    if (rc == 0)
        rc = parse(&c, argc, argv, &err);
    if (rc == 0)
        rc = act(&c, &err);
    if (rc >= 0 && out_flush(&err) < 0)
        rc = err.code;
    conf_free(c.o.conf);
    handlers_free(c.o.handlers);
    free(c.tags);
    return rc < 0 ? complain(&err) : 0;
}
