/*
 * usage.c - the texts of `dq help`, generated from the tables so that they cannot disagree with the
 * parser.
 */
#include "cli/line/usage.h"

#include "cli/line/option.h"
#include "cli/line/select.h"
#include "cli/line/texts.h"

#include <stdio.h>
#include <string.h>

#define TEXT_WIDTH 80
#define COMMAND_WIDTH 17 /* of a column of names */

/* Words of one paragraph, wrapped at TEXT_WIDTH, but not within brackets; the first line begins at
 * column `at`, the others are indented to `indent`. */
static void put_wrapped(struct buf *b, const char *text, size_t len, size_t at, size_t indent)
{
    size_t column = at;
    bool first = true;
    for (size_t i = 0; i < len;) {
        size_t word = 0;
        for (int open = 0; i + word < len && (text[i + word] != ' ' || open > 0); word++)
            open += (text[i + word] == '[') - (text[i + word] == ']');
        if (!first && column + 1 + word > TEXT_WIDTH) {
            buf_printf(b, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            buf_chr(b, ' ');
            column++;
        }
        buf_add(b, text + i, word);
        column += word;
        first = false;
        i += word + 1;
    }
    buf_chr(b, '\n');
}

/* A filter that only `dq help filters` shows. */
static bool is_more(const struct cmd_option *o)
{
    for (size_t i = SELECT_SHOWN; i < select_filter_count; i++)
        if (strcmp(o->name, select_filters[i].name) == 0)
            return true;
    return false;
}

/* Those of a command; all: also each filter. Returns whether filters were left out. */
static bool put_options(struct buf *b, const char *command, const struct cmd_option *options,
                        size_t count, bool all)
{
    const size_t indent = 28;
    bool more = false;
    for (size_t i = 0; i < count; i++) {
        const struct cmd_option *o = &options[i];
        char head[64], letter[8] = "   ";
        if (!all && is_more(o)) {
            more = true;
            continue;
        }
        if (o->letter != 0)
            snprintf(letter, sizeof letter, "-%c,", o->letter);
        int len = snprintf(head, sizeof head, "  %s --%s%s%s", letter, o->name, o->arg ? " " : "",
                           o->arg ? o->arg : "");
        buf_str(b, head);
        if ((size_t)len + 2 > indent)
            buf_printf(b, "\n%*s", (int)indent, "");
        else
            buf_printf(b, "%*s", (int)indent - len, "");
        const char *help = texts_option(command, o->name);
        put_wrapped(b, help, strlen(help), indent, indent);
    }
    return more;
}

static void put_examples(struct buf *b, const char *examples)
{
    buf_str(b, "\nexamples:\n");
    for (const char *s = examples; *s != '\0';) {
        size_t len = strcspn(s, "\n");
        buf_printf(b, "  %.*s\n", (int)len, s);
        s += len;
        s += *s == '\n';
    }
}

static void put_global_names(struct buf *b)
{
    BUF_LOCAL struct buf line = BUF_INIT;

    buf_str(&line, "options of every command (dq help options):");
    for (size_t i = 0; i < option_global_count; i++) {
        const struct cmd_option *o = &option_global[i];
        if (o->letter)
            buf_printf(&line, " -%c", o->letter);
        else
            buf_printf(&line, " --%s", o->name);
    }
    buf_chr(b, '\n');
    put_wrapped(b, line.data, line.len, 0, 2);
}

void usage_put_verb(struct buf *b, const struct cmd *cmd)
{
    const char *prefix = "usage:", *dq = cmd->program ? "" : "dq ";
    const size_t indent = 8 + strlen(dq) + strlen(cmd->name);
    const struct texts_help *help = texts_help(cmd->name);
    for (const char *s = help->usage;; s++) {
        size_t len = strcspn(s, "\n");
        buf_printf(b, "%-6s %s%s%s", prefix, dq, cmd->name, len ? " " : "");
        put_wrapped(b, s, len, indent, indent);
        prefix = "";
        s += len;
        if (*s == '\0')
            break;
    }
    buf_printf(b, "\n%s: %s", cmd->name, help->summary);
    if (cmd->alias)
        buf_printf(b, " (short: %s)", cmd->alias);
    buf_str(b, "\n");
    for (const char *s = help->details; *s != '\0';) {
        size_t len = strcspn(s, "\n");
        buf_chr(b, '\n');
        put_wrapped(b, s, len, 0, 0);
        s += len;
        s += *s == '\n';
    }
    if (cmd->commands)
        buf_str(b, "\ncommands:\n");
    for (size_t i = 0; cmd->commands && cmd->commands[i]; i++) {
        const char *one = cmd->commands[i]->name, *summary = texts_help(one)->summary;
        buf_printf(b, "  %-*s", COMMAND_WIDTH, one + strlen(cmd->name) + 1);
        put_wrapped(b, summary, strlen(summary), COMMAND_WIDTH + 2, COMMAND_WIDTH + 2);
    }
    if (cmd->option_count > 0) {
        buf_str(b, "\noptions:\n");
        if (put_options(b, cmd->name, cmd->options, cmd->option_count, false))
            buf_str(b, "  more filters, by body, host and other times: dq help filters\n");
    }
    if (cmd->program)
        return;
    if (*help->examples)
        put_examples(b, help->examples);
    put_global_names(b);
}

void usage_put_global(struct buf *b, const struct cmd *const *verbs __attribute__((unused)))
{
    buf_str(b, "options of every command, before or after it:\n");
    put_options(b, "dq", option_global, option_global_count, true);
}

void usage_put_filters(struct buf *b, const struct cmd *const *verbs)
{
    buf_str(b, "filters, with which commands select tasks. A task must match all that are\n"
               "given; if one is repeated, any of its values:\n");
    put_options(b, "filters", select_filters, select_filter_count, true);
    buf_str(b, "\ncommands that take them:");
    for (size_t i = 0; verbs[i]; i++)
        for (size_t k = 0; k < verbs[i]->option_count; k++)
            if (strcmp(verbs[i]->options[k].name, "due-after") == 0)
                buf_printf(b, " %s", verbs[i]->name);
    buf_chr(b, '\n');
}

void usage_put_all(struct buf *b, const struct cmd *const *verbs)
{
    buf_str(b, "usage: dq [OPTION]... COMMAND [ARGUMENT]...\n\n"
               "Manage delayed tasks in MySQL or MariaDB; dqd runs them when they are due.\n");
    const char *group = "";
    for (size_t i = 0; verbs[i]; i++) {
        const struct texts_help *help = texts_help(verbs[i]->name);
        if (strcmp(group, help->group) != 0)
            buf_printf(b, "\n%s:\n", help->group);
        group = help->group;
        buf_printf(b, "  %-12s ", help->name);
        put_wrapped(b, help->summary, strlen(help->summary), 15, 15);
    }
    buf_chr(b, '\n');
    usage_put_global(b, verbs);
    buf_str(b,
            "\n\"dq help COMMAND\" explains a command, \"dq help filters\" how to select tasks.\n"
            "The manual is dq(1).\n");
}
