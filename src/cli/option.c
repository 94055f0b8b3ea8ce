/*
 * option.c - the command line, by the tables of options.
 *
 * getopt_long cuts it up; what a word means, whether its value is allowed and what is said about a
 * wrong one is decided here, in the same way for every verb. Nothing is asked and nothing is
 * changed before the whole line is known to be right.
 */
#include "cli/cmd.h"

#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
const struct cmd_option cmd_global_options[] = {
    {"config", 0, CMD_TEXT, offsetof(struct cmd_context, config_path), "FILE", "read this dq.ini instead of the default one", NULL,
     0},
    {"output", 'o', CMD_CHOICE, offsetof(struct cmd_context, output), "FORMAT", "table, json, ndjson, tsv or id", out_format_names,
     0},
    {"quiet", 'q', CMD_FLAG, offsetof(struct cmd_context, quiet), NULL, "no notes on standard error", NULL, 0},
    {"verbose", 'v', CMD_FLAG, offsetof(struct cmd_context, verbose), NULL, "print more", NULL, 0},
    {"help", 'h', CMD_FLAG, offsetof(struct cmd_context, help), NULL, "print this help and exit", NULL, 0},
    {"version", 0, CMD_FLAG, offsetof(struct cmd_context, version), NULL, "print the version and exit", NULL, 0},
};
/* clang-format on */
const size_t cmd_global_option_count = sizeof cmd_global_options / sizeof cmd_global_options[0];

#define LONG_BASE 256 /* getopt's val of option i is LONG_BASE + i: above every letter */

struct scan {              /* the options that may occur at one place */
    const struct cmd *cmd; /* NULL: before the verb */
    const struct cmd_option **options;
    size_t count, own; /* the first `own` belong to the verb */
    struct option *longs;
    struct buf letters;
};

static void scan_init(struct scan *s, const struct cmd *cmd)
{
    *s = (struct scan){.cmd = cmd, .own = cmd ? cmd->option_count : 0, .letters = BUF_INIT};
    s->count = s->own + cmd_global_option_count;
    s->options = mem_zero(s->count, sizeof(struct cmd_option *));
    s->longs = mem_zero(s->count + 1, sizeof *s->longs);
    buf_str(&s->letters, cmd ? ":" : "+:");
    for (size_t i = 0; i < s->count; i++) {
        const struct cmd_option *o =
            cmd && i < s->own ? &cmd->options[i] : &cmd_global_options[i - s->own];
        s->options[i] = o;
        s->longs[i] = (struct option){o->name, o->arg ? required_argument : no_argument, NULL,
                                      LONG_BASE + (int)i};
        if (o->letter != 0) {
            buf_chr(&s->letters, o->letter);
            buf_str(&s->letters, o->arg ? ":" : "");
        }
    }
}

static void scan_done(struct scan *s)
{
    free(s->options);
    free(s->longs);
    buf_done(&s->letters);
}

static size_t scan_index(const struct scan *s, int val)
{
    if (val >= LONG_BASE)
        return (size_t)(val - LONG_BASE);
    size_t i = 0;
    while (i < s->count && s->options[i]->letter != val)
        i++;
    return i;
}

static int unknown_long(const struct scan *s, const char *arg, struct err *err)
{
    char *name = mem_dup(arg + 2, strcspn(arg + 2, "="));
    const char **names = mem_zero(s->count, sizeof *names);
    size_t starting = 0;
    for (size_t i = 0; i < s->count; i++) {
        names[i] = s->options[i]->name;
        starting += strncmp(names[i], name, strlen(name)) == 0;
    }
    const char *near = text_nearest(name, names, s->count);
    int rc;
    if (starting > 1)
        rc = err_set(err, ERR_USAGE, "option \"--%s\" is ambiguous", name);
    else if (near)
        rc = err_set(err, ERR_USAGE, "unknown option \"--%s\": did you mean --%s?", name, near);
    else
        rc = err_set(err, ERR_USAGE, "unknown option \"--%s\": see dq help%s%s", name,
                     s->cmd ? " " : "", s->cmd ? s->cmd->name : "");
    free(names);
    free(name);
    return rc;
}

/* What getopt could not take: found is '?' or ':'. */
static int scan_refuse(const struct scan *s, int found, char **argv, struct err *err)
{
    size_t i = scan_index(s, optopt);
    const char *verb = s->cmd ? s->cmd->name : "";
    if (found == ':')
        return err_set(err, ERR_USAGE, "option --%s needs a value: --%s %s", s->options[i]->name,
                       s->options[i]->name, s->options[i]->arg);
    if (optopt == 0)
        return unknown_long(s, argv[optind - 1], err);
    if (i < s->count)
        return err_set(err, ERR_USAGE, "option --%s takes no value", s->options[i]->name);
    return err_set(err, ERR_USAGE, "unknown option \"-%c\": see dq help%s%s", optopt,
                   *verb ? " " : "", verb);
}

/* ---- values ---- */

static int parse_count(const char *text, int64_t min, int64_t *ret, struct err *err)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0')
        return err_set(err, ERR_USAGE, "\"%s\" is not a number", text);
    if (errno == ERANGE || n < min || n > UINT32_MAX)
        return err_set(err, ERR_USAGE, "%s is out of range: %lld to %lld", text, (long long)min,
                       (long long)UINT32_MAX);
    *ret = n;
    return 0;
}

static int parse_choice(const char *text, const char *const *choices, int *ret, struct err *err)
{
    struct buf all = BUF_INIT;
    for (int i = 0; choices[i]; i++) {
        if (strcmp(choices[i], text) == 0) {
            *ret = i;
            buf_done(&all);
            return 0;
        }
        buf_printf(&all, "%s%s", i ? ", " : "", choices[i]);
    }
    int rc = err_set(err, ERR_USAGE, "\"%s\" is not one of %s", text, all.data);
    buf_done(&all);
    return rc;
}

static int parse_statuses(const char *text, unsigned *ret, struct err *err)
{
    static const char *const words[] = {"pending",   "running", "done", "failed",
                                        "cancelled", "all",     "live", "finished"};
    unsigned mask = 0;
    for (const char *s = text;; s++) {
        size_t len = strcspn(s, ",");
        char *word = mem_dup(s, len);
        int status = task_status_parse(word);
        unsigned bits = status >= 0                     ? TASK_BIT(status)
                        : strcmp(word, "all") == 0      ? TASK_ANY
                        : strcmp(word, "live") == 0     ? TASK_LIVE
                        : strcmp(word, "finished") == 0 ? TASK_FINISHED
                                                        : 0;
        if (bits == 0) {
            const char *near = text_nearest(word, words, sizeof words / sizeof words[0]);
            int rc = err_set(
                err, ERR_USAGE, "unknown status \"%s\"%s%s%s", word, near ? ": did you mean " : "",
                near ? near : "",
                near ? "?"
                     : ": use pending, running, done, failed, cancelled, live, finished or all");
            free(word);
            return rc;
        }
        free(word);
        mask |= bits;
        s += len;
        if (*s == '\0')
            break;
    }
    *ret = mask;
    return 0;
}

bool cmd_time_is_relative(const char *text)
{
    bool has_year = true;
    for (int i = 0; has_year && i < 4; i++)
        has_year = isdigit((unsigned char)text[i]) != 0;
    return text[0] != '@' && !(has_year && text[4] == '-');
}

/* A time that needs no clock is checked at once, so that a wrong one is told before a connection is
 * made. */
static int parse_when(const struct cmd_option *o, const char *text, struct cmd_when *ret,
                      struct err *err)
{
    int64_t ms;
    struct err none;
    ret->option = o->name;
    ret->text = text;
    ret->past = o->type == CMD_SINCE;
    ret->ago = o->type == CMD_SINCE && when_parse_duration(text, &ms, &none) == 0;
    if (ret->ago || cmd_time_is_relative(text))
        return 0;
    return when_parse_instant(text, 0, &ms, err);
}

static int option_set(const struct cmd_option *o, void *base, const char *text, struct err *err)
{
    void *field = (char *)base + o->offset;
    int rc = 0;
    switch (o->type) {
    case CMD_FLAG:
        *(bool *)field = true;
        break;
    case CMD_TEXT:
        *(const char **)field = text;
        break;
    case CMD_COUNT:
        rc = parse_count(text, o->min, field, err);
        break;
    case CMD_DURATION:
        rc = when_parse_duration(text, field, err);
        break;
    case CMD_CHOICE:
        rc = parse_choice(text, o->choices, field, err);
        break;
    case CMD_STATUSES:
        rc = parse_statuses(text, field, err);
        break;
    case CMD_INSTANT:
    case CMD_SINCE:
        rc = parse_when(o, text, field, err);
        break;
    }
    if (rc < 0) {
        err_prefix(err, "--%s", o->name);
        /* on the command line a malformed value is wrong use, not wrong data */
        err->code = ERR_USAGE;
        return ERR_USAGE;
    }
    return 0;
}

static void option_unset(const struct cmd_option *o, void *base)
{
    void *field = (char *)base + o->offset;
    if (o->type == CMD_COUNT || o->type == CMD_DURATION)
        *(int64_t *)field = -1;
    else if (o->type == CMD_CHOICE)
        *(int *)field = -1;
}

/* Takes the options that s allows; afterwards optind is the first operand. */
static int scan_options(const struct scan *s, struct cmd_context *c, int argc, char **argv,
                        struct err *err)
{
    optind = 0; /* glibc: start anew */
    opterr = 0;
    for (;;) {
        int found = getopt_long(argc, argv, s->letters.data, s->longs, NULL);
        if (found < 0)
            return 0;
        if (found == '?' || found == ':')
            return scan_refuse(s, found, argv, err);
        size_t i = scan_index(s, found);
        int rc = option_set(s->options[i], i < s->own ? c->values : (void *)c, optarg, err);
        if (rc < 0)
            return rc;
    }
}

const struct cmd *cmd_lookup(const char *name, struct err *err)
{
    const char *names[64];
    size_t count = 0;
    for (size_t i = 0; cmd_table[i] && count < 63; i++) {
        const struct cmd *cmd = cmd_table[i];
        if (strcmp(cmd->name, name) == 0 || (cmd->alias && strcmp(cmd->alias, name) == 0))
            return cmd;
        names[count++] = cmd->name;
        if (cmd->alias)
            names[count++] = cmd->alias;
    }
    const char *near = text_nearest(name, names, count);
    if (near)
        err_set(err, ERR_USAGE, "unknown command \"%s\": did you mean \"%s\"?", name, near);
    else
        err_set(err, ERR_USAGE, "unknown command \"%s\": see dq help", name);
    return NULL;
}

static int check_operands(const struct cmd_context *c, struct err *err)
{
    const struct cmd *cmd = c->cmd;
    int len = (int)strcspn(cmd->usage, "\n");
    if (c->operand_count < cmd->min_operands)
        return err_set(err, ERR_USAGE, "missing argument: dq %s %.*s", cmd->name, len, cmd->usage);
    if (cmd->max_operands >= 0 && c->operand_count > cmd->max_operands)
        return err_set(err, ERR_USAGE, "unexpected argument \"%s\": dq %s %.*s",
                       c->operands[cmd->max_operands], cmd->name, len, cmd->usage);
    return 0;
}

int cmd_parse(struct cmd_context *c, int argc, char **argv, struct err *err)
{
    struct scan s;
    for (size_t i = 0; i < cmd_global_option_count; i++)
        option_unset(&cmd_global_options[i], c);
    scan_init(&s, NULL);
    int rc = scan_options(&s, c, argc, argv, err);
    scan_done(&s);
    if (rc < 0 || optind == argc)
        return rc;
    int at = optind;
    c->cmd = cmd_lookup(argv[at], err);
    if (!c->cmd)
        return ERR_USAGE;
    c->values = mem_zero(1, c->cmd->values_size + 1);
    for (size_t i = 0; i < c->cmd->option_count; i++)
        option_unset(&c->cmd->options[i], c->values);
    scan_init(&s, c->cmd);
    rc = scan_options(&s, c, argc - at, argv + at, err);
    scan_done(&s);
    if (rc < 0)
        return rc;
    c->operands = argv + at + optind;
    c->operand_count = argc - at - optind;
    return c->help || c->version ? 0 : check_operands(c, err);
}
