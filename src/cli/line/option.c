/*
 * option.c - the command line, by the tables of options.
 *
 * getopt_long cuts it up; this file decides what a word means and whether its value is allowed, in
 * the same way for every verb. The database is not asked before the whole line has been checked.
 */
#include "cli/line/option.h"

#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"
#include "base/when_parse.h"
#include "cli/line/texts.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

const struct cmd_option option_global[] = {
    {"config", 0, CMD_TEXT, offsetof(struct cmd_context, config_path), "FILE", NULL, 0},
    {"output", 'o', CMD_CHOICE, offsetof(struct cmd_context, output), "FORMAT", out_format_names,
     0},
    {"color", 0, CMD_CHOICE, offsetof(struct cmd_context, color), "WHEN", conf_color_names, 0},
    {"no-pager", 0, CMD_FLAG, offsetof(struct cmd_context, no_pager), NULL, NULL, 0},
    {"quiet", 'q', CMD_FLAG, offsetof(struct cmd_context, quiet), NULL, NULL, 0},
    {"verbose", 'v', CMD_FLAG, offsetof(struct cmd_context, verbose), NULL, NULL, 0},
    {"help", 'h', CMD_FLAG, offsetof(struct cmd_context, help), NULL, NULL, 0},
    {"version", 0, CMD_FLAG, offsetof(struct cmd_context, version), NULL, NULL, 0},
};
const size_t option_global_count = sizeof option_global / sizeof option_global[0];

#define LONG_BASE 256 /* getopt's val of option i is LONG_BASE + i: above every letter */

struct grammar {           /* the options that may occur at one place */
    const struct cmd *cmd; /* NULL: before the verb */
    const struct cmd_option **options;
    size_t count, own; /* the first `own` belong to the verb */
    struct option *longs;
    struct buf letters;
};

static void grammar_init(struct grammar *g, const struct cmd *cmd)
{
    *g = (struct grammar){.cmd = cmd, .own = cmd ? cmd->option_count : 0, .letters = BUF_INIT};
    g->count = g->own + (cmd && cmd->program ? 0 : option_global_count);
    g->options = mem_zero(g->count, sizeof(struct cmd_option *));
    g->longs = mem_zero(g->count + 1, sizeof *g->longs);
    buf_str(&g->letters, cmd ? ":" : "+:");
    for (size_t i = 0; i < g->count; i++) {
        const struct cmd_option *o =
            cmd && i < g->own ? &cmd->options[i] : &option_global[i - g->own];
        g->options[i] = o;
        g->longs[i] = (struct option){o->name, o->arg ? required_argument : no_argument, NULL,
                                      LONG_BASE + (int)i};
        if (o->letter != 0) {
            buf_chr(&g->letters, o->letter);
            buf_str(&g->letters, o->arg ? ":" : "");
        }
    }
}

static void grammar_done(struct grammar *g)
{
    free(g->options);
    free(g->longs);
    buf_done(&g->letters);
}

static size_t grammar_index(const struct grammar *g, int val)
{
    if (val >= LONG_BASE)
        return (size_t)(val - LONG_BASE);
    size_t i = 0;
    while (i < g->count && g->options[i]->letter != val)
        i++;
    return i;
}

/* Where the options are explained. */
static const char *put_help(char *ret, size_t size, const struct grammar *g)
{
    const char *name = g->cmd ? g->cmd->name : "";
    if (g->cmd && g->cmd->program)
        snprintf(ret, size, "%s --help", name);
    else
        snprintf(ret, size, "dq help%s%s", *name ? " " : "", name);
    return ret;
}

static int unknown_long(const struct grammar *g, const char *arg, struct err *err)
{
    char text[64];
    MEM_LOCAL char *name = mem_dup(arg + 2, strcspn(arg + 2, "="));
    MEM_LOCAL const char **names = mem_zero(g->count, sizeof *names);
    size_t starting = 0;
    for (size_t i = 0; i < g->count; i++) {
        names[i] = g->options[i]->name;
        starting += strncmp(names[i], name, strlen(name)) == 0;
    }
    const char *near = text_nearest(name, names, g->count);
    int rc;
    if (starting > 1)
        rc = err_set(err, ERR_USAGE, "option \"--%s\" is ambiguous", name);
    else if (near)
        rc = err_set(err, ERR_USAGE, "unknown option \"--%s\": did you mean --%s?", name, near);
    else
        rc = err_set(err, ERR_USAGE, "unknown option \"--%s\": see %s", name,
                     put_help(text, sizeof text, g));
    return rc;
}

/* Reports what getopt refused: found is '?' or ':'. */
static int grammar_refuse(const struct grammar *g, int found, char **argv, struct err *err)
{
    size_t i = grammar_index(g, optopt);
    char text[64];
    if (found == ':')
        return err_set(err, ERR_USAGE, "option --%s needs a value: --%s %s", g->options[i]->name,
                       g->options[i]->name, g->options[i]->arg);
    if (optopt == 0)
        return unknown_long(g, argv[optind - 1], err);
    if (i < g->count)
        return err_set(err, ERR_USAGE, "option --%s takes no value", g->options[i]->name);
    return err_set(err, ERR_USAGE, "unknown option \"-%c\": see %s", optopt,
                   put_help(text, sizeof text, g));
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
    BUF_LOCAL struct buf all = BUF_INIT;
    for (int i = 0; choices[i]; i++) {
        if (strcmp(choices[i], text) == 0) {
            *ret = i;
            return 0;
        }
        buf_printf(&all, "%s%s", i ? ", " : "", choices[i]);
    }
    return err_set(err, ERR_USAGE, "\"%s\" is not one of %s", text, all.data);
}

#define STATUS_WORDS (sizeof option_statuses / sizeof option_statuses[0] - 1)
const char *const option_statuses[] = {"pending", "running", "done",     "failed", "cancelled",
                                       "all",     "live",    "finished", NULL};

static int parse_statuses(const char *text, unsigned *ret, struct err *err)
{
    unsigned mask = 0;
    for (const char *s = text;; s++) {
        size_t len = strcspn(s, ",");
        MEM_LOCAL char *word = mem_dup(s, len);
        int status = task_status_parse(word);
        unsigned bits = status >= 0                     ? TASK_BIT(status)
                        : strcmp(word, "all") == 0      ? TASK_ANY
                        : strcmp(word, "live") == 0     ? TASK_LIVE
                        : strcmp(word, "finished") == 0 ? TASK_FINISHED
                                                        : 0;
        if (bits == 0) {
            const char *near = text_nearest(word, option_statuses, STATUS_WORDS);
            return err_set(
                err, ERR_USAGE, "unknown status \"%s\"%s%s%s", word, near ? ": did you mean " : "",
                near ? near : "",
                near ? "?"
                     : ": use pending, running, done, failed, cancelled, live, finished or all");
        }
        mask |= bits;
        s += len;
        if (*s == '\0')
            break;
    }
    *ret |= mask;
    return 0;
}

/* A time is checked as far as it needs no clock, so that an invalid one is reported before a
 * connection is made. */
static int parse_when(const struct cmd_option *o, const char *text, struct cmd_when *ret,
                      struct err *err)
{
    int64_t at;
    ret->option = o->name;
    ret->text = text;
    ret->past = o->type == CMD_SINCE;
    return cmd_time_is_relative(text) ? when_parse_check(text, ret->past, err)
                                      : when_parse_instant(text, 0, &at, err);
}

/* Appends to the error the option that a refused duration or time was meant for. */
static void suggest_option(const struct cmd_context *c, const struct cmd_option *o,
                           const char *text, struct err *err)
{
    static const struct {
        const char *duration, *instant;
    } pairs[] = {{"in", "at"}, {"for", "until"}};
    bool duration = o->type == CMD_DURATION;
    struct err none;
    int64_t ms;

    if (!c->cmd || (!duration && o->type != CMD_INSTANT) ||
        (duration ? when_parse_check(text, false, &none) : when_parse_duration(text, &ms, &none)) <
            0)
        return;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const char *own = duration ? pairs[i].duration : pairs[i].instant;
        const char *other = duration ? pairs[i].instant : pairs[i].duration;
        bool found = false;
        for (size_t j = 0; strcmp(o->name, own) == 0 && j < c->cmd->option_count; j++)
            found = found || strcmp(c->cmd->options[j].name, other) == 0;
        if (found)
            err_set(err, err->code, "%s: did you mean --%s?", err->text, other);
    }
}

static int add_text(char **texts, const char *text, struct err *err)
{
    if (strchr(text, '\n'))
        return err_set(err, ERR_USAGE, "it has a line break; in a glob, ? matches that, too");
    char *all = *texts ? mem_printf("%s\n%s", *texts, text) : mem_strdup(text);
    free(*texts);
    *texts = all;
    return 0;
}

static bool is_set(const struct cmd_option *o, const void *base)
{
    const void *field = (const char *)base + o->offset;
    switch (o->type) {
    case CMD_FLAG:
        return *(const bool *)field;
    case CMD_COUNT:
    case CMD_DURATION:
        return *(const int64_t *)field >= 0;
    case CMD_CHOICE:
        return *(const int *)field >= 0;
    case CMD_STATUSES:
        return *(const unsigned *)field != 0;
    case CMD_INSTANT:
    case CMD_SINCE:
        return ((const struct cmd_when *)field)->text;
    default:
        return *(const char *const *)field;
    }
}

static bool is_repeatable(const struct cmd_option *o)
{
    return o->type == CMD_FLAG || o->type == CMD_STATUSES || o->type == CMD_TEXTS ||
           o->type == CMD_NAMES || o->type == CMD_TAGS;
}

static int option_set(const struct cmd_context *c, const struct cmd_option *o, void *base,
                      const char *text, struct err *err)
{
    void *field = (char *)base + o->offset;
    char least[WHEN_TEXT_SIZE];
    int rc = 0;
    if (base != (const void *)c && !is_repeatable(o) && is_set(o, base))
        return err_set(err, ERR_USAGE, "--%s can be given only once", o->name);
    switch (o->type) {
    case CMD_FLAG:
        *(bool *)field = true;
        break;
    case CMD_NAMES:
    case CMD_TAGS:
        rc = (o->type == CMD_TAGS ? task_check_tag_wanted : task_check_wanted)(text, err);
        /* fall through */
    case CMD_TEXTS:
        rc = rc == 0 ? add_text(field, text, err) : rc;
        break;
    case CMD_NAME:
        rc = task_check_wanted(text, err);
        /* fall through */
    case CMD_TEXT:
    case CMD_BODY:
        *(const char **)field = text;
        break;
    case CMD_COUNT:
        rc = parse_count(text, o->min, field, err);
        break;
    case CMD_DURATION:
        rc = when_parse_duration(text, field, err);
        if (rc == 0 && *(int64_t *)field < o->min)
            rc = err_set(err, ERR_USAGE, "%s is too short: give %s or more", text,
                         when_format_duration(least, o->min));
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
        suggest_option(c, o, text, err);
        /* on the command line a malformed value is a usage error, not bad data */
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

/* Takes the options that g allows; afterwards optind is the first operand. */
static int take_options(const struct grammar *g, struct cmd_context *c, int argc, char **argv,
                        struct err *err)
{
    optind = 0; /* glibc: a new command line */
    opterr = 0;
    for (;;) {
        int found = getopt_long(argc, argv, g->letters.data, g->longs, NULL);
        if (found < 0)
            return 0;
        if (found == '?' || found == ':')
            return grammar_refuse(g, found, argv, err);
        size_t i = grammar_index(g, found);
        int rc = option_set(c, g->options[i], i < g->own ? c->values : (void *)c, optarg, err);
        if (rc < 0)
            return rc;
    }
}

/* list: as in struct cmd. */
static int check_list(const struct cmd_context *c, const char *list, bool exclusive,
                      struct err *err)
{
    const struct cmd_option *given = NULL;
    for (const char *s = list; s && *s;) {
        size_t len = strcspn(s, " ,");
        const struct cmd_option *o = c->cmd->options;
        while (strlen(o->name) != len || memcmp(o->name, s, len) != 0)
            o++;
        bool set = is_set(o, c->values);
        if (given && exclusive && set)
            return err_set(err, ERR_USAGE, "--%s and --%s cannot be combined", given->name,
                           o->name);
        if (given && !exclusive && !set)
            return err_set(err, ERR_USAGE, "--%s requires --%s", given->name, o->name);
        s += len;
        given = *s == ',' ? NULL : set ? o : given;
        s += strspn(s, ", ");
    }
    return 0;
}

static int check_operands(const struct cmd_context *c, struct err *err)
{
    const struct cmd *cmd = c->cmd;
    const char *usage = texts_help(cmd->name)->usage;
    int len = (int)strcspn(usage, "\n");
    const char *dq = cmd->program ? "" : "dq ";
    bool replaced = false;
    for (size_t i = 0; cmd->instead && i < cmd->option_count; i++)
        replaced |=
            strcmp(cmd->options[i].name, cmd->instead) == 0 && is_set(&cmd->options[i], c->values);
    if (c->operand_count < cmd->min_operands && !replaced)
        return err_set(err, ERR_USAGE, "missing argument: %s%s %.*s", dq, cmd->name, len, usage);
    int most = MAX(cmd->min_operands, cmd->max_operands);
    if (cmd->max_operands >= 0 && c->operand_count > most)
        return err_set(err, ERR_USAGE, "unexpected argument \"%s\": %s%s %.*s", c->operands[most],
                       dq, cmd->name, len, usage);
    return 0;
}

const struct cmd *option_command(const struct cmd *cmd, const char *word, struct err *err)
{
    const char *words[32], *near;
    size_t count = 0, skip = strlen(cmd->name) + 1;
    for (; cmd->commands[count]; count++) {
        words[count] = cmd->commands[count]->name + skip;
        if (strcmp(words[count], word) == 0)
            return cmd->commands[count];
    }
    near = text_nearest(word, words, count);
    if (near)
        err_set(err, ERR_USAGE, "unknown command \"%s %s\": did you mean \"%s %s\"?", cmd->name,
                word, cmd->name, near);
    else
        err_set(err, ERR_USAGE, "unknown command \"%s %s\": see dq help %s", cmd->name, word,
                cmd->name);
    return NULL;
}

int option_parse_own(struct cmd_context *c, int argc, char **argv, struct err *err)
{
    LOCAL_BY(grammar_done) struct grammar g = {0};
    c->values = mem_zero(1, c->cmd->values_size + 1);
    for (size_t i = 0; i < c->cmd->option_count; i++)
        option_unset(&c->cmd->options[i], c->values);
    grammar_init(&g, c->cmd);
    int rc = take_options(&g, c, argc, argv, err);
    if (rc < 0)
        return rc;
    c->operands = argv + optind;
    c->operand_count = argc - optind;
    if (c->help || c->version)
        return 0;
    rc = check_list(c, c->cmd->exclusive, true, err);
    if (rc == 0)
        rc = check_list(c, c->cmd->requires, false, err);
    return rc < 0 ? rc : check_operands(c, err);
}

int option_parse(struct cmd_context *c, const struct cmd *(*find)(const char *, struct err *),
                 int argc, char **argv, struct err *err)
{
    LOCAL_BY(grammar_done) struct grammar g = {0};
    struct err none;
    for (size_t i = 0; i < option_global_count; i++)
        option_unset(&option_global[i], c);
    grammar_init(&g, NULL);
    int rc = take_options(&g, c, argc, argv, err), at = optind;
    if (rc < 0 || at == argc)
        return rc;
    c->cmd = find(argv[at], err);
    if (c->cmd && c->cmd->commands) {
        /* options of its own make it no command */
        int word = take_options(&g, c, argc - at, argv + at, &none) < 0 ? at + 1 : at + optind;
        if (word < argc && argv[word][0] != '-')
            c->cmd = option_command(c->cmd, argv[at = word], err);
    }
    return c->cmd ? option_parse_own(c, argc - at, argv + at, err) : ERR_USAGE;
}

/* ---- what was given ---- */

static void put_statuses(struct buf *b, unsigned mask)
{
    const char *separator = "";
    for (int s = 0; s < TASK_STATUS_COUNT && mask != TASK_ANY; s++) {
        if (!(mask & TASK_BIT(s)))
            continue;
        buf_printf(b, "%s%s", separator, task_status_name(s));
        separator = ",";
    }
    if (mask == TASK_ANY)
        buf_str(b, "all");
}

/* Of an option that is set; nothing for a flag. */
static void put_given(struct buf *b, const struct cmd_option *o, const void *values)
{
    const void *field = (const char *)values + o->offset;
    char text[WHEN_TEXT_SIZE];
    switch (o->type) {
    case CMD_FLAG:
        break;
    case CMD_NAME:
    case CMD_TEXT:
    case CMD_BODY:
        text_shell_word(b, *(const char *const *)field);
        break;
    case CMD_COUNT:
        buf_u64(b, *(const uint64_t *)field);
        break;
    case CMD_DURATION:
        buf_str(b, when_format_duration(text, *(const int64_t *)field));
        break;
    case CMD_CHOICE:
        buf_str(b, o->choices[*(const int *)field]);
        break;
    case CMD_STATUSES:
        put_statuses(b, *(const unsigned *)field);
        break;
    case CMD_INSTANT:
    case CMD_SINCE:
        text_shell_word(b, ((const struct cmd_when *)field)->text);
        break;
    case CMD_TEXTS:
    case CMD_NAMES:
    case CMD_TAGS:
        for (const char *s = *(const char *const *)field;; s++) {
            MEM_LOCAL char *one = mem_dup(s, strcspn(s, "\n"));
            text_shell_word(b, one);
            s += strlen(one);
            if (*s == '\0')
                break;
            buf_printf(b, " --%s ", o->name);
        }
        break;
    }
}

void option_put_given(struct buf *b, const struct cmd_context *c, bool bodies)
{
    for (size_t i = 0; i < c->cmd->option_count; i++) {
        const struct cmd_option *o = &c->cmd->options[i];
        if (o->type == CMD_FLAG || !is_set(o, c->values) || (o->type == CMD_BODY && !bodies))
            continue;
        buf_printf(b, " --%s ", o->name);
        put_given(b, o, c->values);
    }
}
