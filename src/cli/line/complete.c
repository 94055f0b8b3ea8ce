/*
 * complete.c - see complete.h. Invariant: nothing is listed here that a table of verbs, options or
 * columns has.
 */
#include "cli/line/complete.h"

#include "base/text.h"
#include "cli/line/option.h"
#include "cli/line/texts.h"
#include "cli/line/verbs.h"
#include "cli/show/task_columns.h"

#include <ctype.h>
#include <string.h>

#define CONFIG "--config=" /* or the value is a word of its own */

struct line {
    struct buf *to;
    const char *word; /* to be completed */
    const char *stem; /* its part that the candidates replace */
    /* as the words before it have it: */
    const struct cmd *cmd; /* NULL: there is no verb yet */
    bool unknown;          /* the verb is none of dq's */
    int operands;
    const struct cmd_option *waits; /* for its value, which is the next word; NULL: none does */
    bool operands_only;             /* a -- has come */
    const char *config;
};

static void offer(const struct line *l, const char *word, const char *help)
{
    if (strncmp(word, l->stem, strlen(l->stem)) == 0)
        buf_printf(l->to, "%.*s%s\t%s\n", (int)(l->stem - l->word), l->word, word,
                   help ? help : "");
}

static void offer_all(const struct line *l, const char *const *words)
{
    for (; *words; words++)
        offer(l, *words, NULL);
}

/* Of the verb, or of all verbs; NULL: there is none. len: of the name, which may be long. */
static const struct cmd_option *find_option(const struct line *l, const char *name, size_t len)
{
    size_t own = l->cmd ? l->cmd->option_count : 0;
    for (size_t i = 0; i < own + option_global_count; i++) {
        const struct cmd_option *o = i < own ? &l->cmd->options[i] : &option_global[i - own];
        if (len == 1 ? o->letter == *name : strlen(o->name) == len && !strncmp(o->name, name, len))
            return o;
    }
    return NULL;
}

static void offer_options(const struct line *l, const char *command,
                          const struct cmd_option *options, size_t count)
{
    BUF_LOCAL struct buf name = BUF_INIT;
    for (size_t i = 0; i < count; i++) {
        buf_reset(&name);
        buf_printf(&name, "--%s", options[i].name);
        offer(l, name.data, texts_option(command, options[i].name));
    }
}

static void offer_verbs(const struct line *l)
{
    for (size_t i = 0; verbs_table[i]; i++)
        offer(l, verbs_table[i]->name, texts_help(verbs_table[i]->name)->summary);
}

static void offer_formats(const struct line *l)
{
    for (int i = 0; i < OUT_FORMAT_COUNT; i++) {
        if (!l->cmd || cmd_prints(l->cmd, i))
            offer(l, out_format_names[i], NULL);
    }
}

/* The stem of a list begins behind its last comma. */
static void enter_list(struct line *l)
{
    const char *comma = strrchr(l->stem, ',');
    if (comma)
        l->stem = comma + 1;
}

static enum complete_more offer_values(struct line *l, const struct cmd_option *o)
{
    if (o->choices == out_format_names)
        offer_formats(l);
    else if (o->choices)
        offer_all(l, o->choices);
    else if (o->type == CMD_STATUSES) {
        enter_list(l);
        offer_all(l, option_statuses);
    } else if (strcmp(o->name, "columns") == 0) {
        const struct out_table tasks = {.columns = task_columns, .count = task_column_count};
        const struct out_table *t = l->cmd->columns ? l->cmd->columns : &tasks;
        enter_list(l);
        for (size_t i = 0; i < t->count; i++)
            offer(l, t->columns[i].name, t->columns[i].help);
    } else if (strcmp(o->name, "tag") == 0)
        return COMPLETE_TAGS;
    else if (strcmp(o->name, "key") == 0)
        return COMPLETE_KEYS;
    else if (o->arg && strcmp(o->arg, "FILE") == 0)
        return COMPLETE_FILES;
    return COMPLETE_NO_MORE;
}

/* By the word with which the first line of the verb's usage begins; an id, with which any does. */
static enum complete_more offer_operand(struct line *l)
{
    const char *usage = texts_help(l->cmd->name)->usage;
    bool ids = strncmp(usage, "ID", 2) == 0 || strstr(usage, "\nID");
    for (size_t i = 0; l->operands == 0 && l->cmd->commands && l->cmd->commands[i]; i++)
        offer(l, l->cmd->commands[i]->name + strlen(l->cmd->name) + 1,
              texts_help(l->cmd->commands[i]->name)->summary);
    if (strncmp(usage, "ID...", 5) == 0 || (ids && l->operands == 0))
        return COMPLETE_IDS;
    if (l->operands > 0)
        return COMPLETE_NO_MORE;
    if (strncmp(usage, "TAG", 3) == 0)
        return COMPLETE_TAGS;
    if (strncmp(usage, "[FILE", 5) == 0)
        return COMPLETE_FILES;
    if (strncmp(usage, "[COMMAND", 8) == 0)
        offer_verbs(l);
    /* words in lower case stand for themselves: bash | zsh */
    for (const char *s = usage; *s != '\n' && *s != '\0';) {
        char word[32] = "";
        size_t len = strspn(s, "abcdefghijklmnopqrstuvwxyz");
        if (len > 0 && len < sizeof word) {
            memcpy(word, s, len);
            offer(l, word, NULL);
        }
        s += len + strcspn(s + len, " \n");
        s += strspn(s, " |");
    }
    return COMPLETE_NO_MORE;
}

/* The option of a word that takes the next word as its value; NULL: none does. */
static const struct cmd_option *awaits_value(const struct line *l, const char *word)
{
    const struct cmd_option *o = NULL;
    if (strncmp(word, "--", 2) == 0)
        o = strchr(word, '=') ? NULL : find_option(l, word + 2, strlen(word + 2));
    else {
        for (const char *s = word + 1; *s != '\0' && !(o && o->arg); s++) {
            o = find_option(l, s, 1);
            if (o && o->arg && s[1] != '\0')
                return NULL; /* the rest of the word is the value */
        }
    }
    return o && o->arg ? o : NULL;
}

static void take_word(struct line *l, const char *word)
{
    struct err none;

    if (l->waits) {
        if (l->waits == find_option(l, "config", 6))
            l->config = word;
        l->waits = NULL;
    } else if (!l->operands_only && strcmp(word, "--") == 0) {
        l->operands_only = true;
    } else if (!l->operands_only && strncmp(word, CONFIG, strlen(CONFIG)) == 0) {
        l->config = word + strlen(CONFIG);
    } else if (!l->operands_only && word[0] == '-' && word[1] != '\0') {
        l->waits = awaits_value(l, word);
    } else if (l->cmd) {
        const struct cmd *own =
            l->cmd->commands && !l->operands ? option_command(l->cmd, word, &none) : NULL;
        l->cmd = own ? own : l->cmd;
        l->operands += !own;
    } else {
        l->cmd = verbs_find(word, &none);
        l->unknown = !l->cmd;
    }
}

static enum complete_more complete_word(struct line *l)
{
    const char *equals = strchr(l->word, '=');

    if (l->unknown)
        return COMPLETE_NO_MORE;
    if (l->waits)
        return offer_values(l, l->waits);
    if (!l->operands_only && strncmp(l->word, "--", 2) == 0 && equals) {
        const struct cmd_option *o = find_option(l, l->word + 2, (size_t)(equals - l->word - 2));
        l->stem = equals + 1;
        return o && o->arg ? offer_values(l, o) : COMPLETE_NO_MORE;
    }
    if (!l->operands_only && l->word[0] == '-') {
        if (l->cmd)
            offer_options(l, l->cmd->name, l->cmd->options, l->cmd->option_count);
        offer_options(l, "dq", option_global, option_global_count);
        return COMPLETE_NO_MORE;
    }
    if (l->cmd)
        return offer_operand(l);
    offer_verbs(l);
    return COMPLETE_NO_MORE;
}

enum complete_more complete_line(struct buf *b, char **words, int count, const char **ret_stem,
                                 size_t *ret_lead, const char **ret_config)
{
    struct line l = {.to = b, .word = words[count - 1], .stem = words[count - 1]};

    for (int i = 0; i < count - 1 && !l.unknown; i++)
        take_word(&l, words[i]);
    enum complete_more more = complete_word(&l);
    *ret_stem = l.stem;
    *ret_lead = (size_t)(l.stem - l.word);
    *ret_config = l.config;
    return more;
}

bool complete_is_inert(const char *word)
{
    size_t len = strlen(word), size;
    uint32_t c;
    for (size_t i = 0; i < len; i += size) {
        size = text_utf8_next(word + i, len - i, &c);
        if (size == 0 || text_char_unsafe(c) || text_char_space(c))
            return false;
        if (c < 0x80 && !isalnum((int)c) && !strchr(i == 0 ? "_./" : "_./@%+:=,-", (int)c))
            return false;
    }
    return len > 0;
}
