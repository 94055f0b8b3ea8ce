/*
 * cmd_completion.c - dq completion: the scripts that connect a shell to dq, and the words that
 * these ask for.
 *
 * Invariant: for the words, nothing is printed but words, and it takes a fraction of a second,
 * whatever is wrong with the configuration or the database. Nothing is listed here that a table of
 * verbs, options or columns has.
 */
#include "cli/line/option.h"
#include "cli/line/texts.h"
#include "cli/line/verbs.h"
#include "store/ask/complete_store.h"

#include "base/text.h"

#include <ctype.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define PATIENCE_MS 300
#define CONFIG "--config=" /* or the value is a word of its own */

/* ---- what the tables of verbs and options offer ---- */

/* What to offer besides the words of the tables, unless it is an enum complete_store_kind. */
enum { MORE_NONE = -1, MORE_FILES = -2 };

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

static int offer_values(struct line *l, const struct cmd_option *o)
{
    if (o->choices == out_format_names)
        offer_formats(l);
    else if (o->choices)
        offer_all(l, o->choices);
    else if (o->type == CMD_STATUSES) {
        enter_list(l);
        offer_all(l, option_statuses);
    } else if (strcmp(o->name, "columns") == 0) {
        const struct out_table t = cmd_columns(l->cmd, false);
        enter_list(l);
        for (size_t i = 0; i < t.count; i++)
            offer(l, t.columns[i].name, t.columns[i].help);
    } else if (strcmp(o->name, "tag") == 0)
        return COMPLETE_STORE_TAGS;
    else if (strcmp(o->name, "key") == 0)
        return COMPLETE_STORE_KEYS;
    else if (o->arg && strcmp(o->arg, "FILE") == 0)
        return MORE_FILES;
    return MORE_NONE;
}

/* By the word with which the first line of the verb's usage begins; an id, with which any does. */
static int offer_operand(struct line *l)
{
    const char *usage = texts_help(l->cmd->name)->usage;
    bool ids = strncmp(usage, "ID", 2) == 0 || strstr(usage, "\nID");
    for (size_t i = 0; l->operands == 0 && l->cmd->commands && l->cmd->commands[i]; i++)
        offer(l, l->cmd->commands[i]->name + strlen(l->cmd->name) + 1,
              texts_help(l->cmd->commands[i]->name)->summary);
    if (strncmp(usage, "ID...", 5) == 0 || (ids && l->operands == 0))
        return COMPLETE_STORE_IDS;
    if (l->operands > 0)
        return MORE_NONE;
    if (strncmp(usage, "TAG", 3) == 0)
        return COMPLETE_STORE_TAGS;
    if (strncmp(usage, "[FILE", 5) == 0)
        return MORE_FILES;
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
    return MORE_NONE;
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

static int complete_word(struct line *l)
{
    const char *equals = strchr(l->word, '=');

    if (l->unknown)
        return MORE_NONE;
    if (l->waits)
        return offer_values(l, l->waits);
    if (!l->operands_only && strncmp(l->word, "--", 2) == 0 && equals) {
        const struct cmd_option *o = find_option(l, l->word + 2, (size_t)(equals - l->word - 2));
        l->stem = equals + 1;
        return o && o->arg ? offer_values(l, o) : MORE_NONE;
    }
    if (!l->operands_only && l->word[0] == '-') {
        if (l->cmd)
            offer_options(l, l->cmd->name, l->cmd->options, l->cmd->option_count);
        offer_options(l, "dq", option_global, option_global_count);
        return MORE_NONE;
    }
    if (l->cmd)
        return offer_operand(l);
    offer_verbs(l);
    return MORE_NONE;
}

/* ---- what the database offers ---- */

/* Whether the word has no character that a shell or a terminal acts on. */
static bool is_inert(const char *word)
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

static void leave(int number)
{
    (void)number;
    _exit(0);
}

/* Ends the process soon, as if there were no more words. */
static void end_soon(void)
{
    struct itimerval soon = {.it_value = {.tv_usec = PATIENCE_MS * 1000}};
    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &soon, NULL);
}

static void take_stored(const char *word, const char *help, void *arg)
{
    if (is_inert(word))
        offer(arg, word, help && is_inert(help) ? help : NULL);
}

/* Words that are in the database. Errors are not reported: a person is typing. */
static void print_stored(struct cmd_context *c, enum complete_store_kind kind, struct line *l)
{
    struct err none;
    if (*l->stem != '\0' && !is_inert(l->stem))
        return;
    end_soon();
    c->quiet = true;
    if (cmd_open(c, CMD_SCHEMA, &none) == 0 &&
        complete_store_list(c->db, kind, l->stem, take_stored, l, &none) == 0)
        out_write(l->to);
}

/* ---- the verb ---- */

struct completion_values {
    bool line;
};

/* A line for each word: the word, a tab, its help. The operands follow `dq`; the last one is to be
 * completed, and may be empty. */
static int print_words(struct cmd_context *c, struct err *err)
{
    const char *word = c->operand_count ? c->operands[c->operand_count - 1] : "";
    BUF_LOCAL struct buf b = BUF_INIT;
    struct line l = {.to = &b, .word = word, .stem = word};

    for (int i = 0; i < c->operand_count - 1 && !l.unknown; i++)
        take_word(&l, c->operands[i]);
    int more = complete_word(&l);
    if (l.config)
        c->config_path = l.config;
    if (more == MORE_FILES)
        buf_str(&b, ":files\t\n");
    out_write(&b);
    int rc = out_flush(err);
    buf_reset(&b);
    if (rc == 0 && more >= 0)
        print_stored(c, (enum complete_store_kind)more, &l);
    return rc;
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct completion_values *v = c->values;

    if (v->line)
        return print_words(c, err);
    const char *shell = c->operand_count == 1 ? c->operands[0] : "";
    const char *script = strcmp(shell, "bash") == 0   ? texts_bash
                         : strcmp(shell, "zsh") == 0  ? texts_zsh
                         : strcmp(shell, "fish") == 0 ? texts_fish
                                                      : NULL;
    if (!script)
        return err_set(err, ERR_USAGE, "give one shell: bash, zsh or fish");
    out_printf("%s", script);
    return 0;
}

#define FIELD(name) offsetof(struct completion_values, name)
static const struct cmd_option options[] = {
    {"line", 0, CMD_FLAG, FIELD(line), NULL, NULL, 0},
};

const struct cmd cmd_completion = {
    .name = "completion",
    CMD_OPTIONS(options, completion_values),
    .max_operands = -1,
    .level = CMD_NOTHING,
    .reads_only = true,
    .formats = OUT_BIT(OUT_TABLE),
    .run = run,
};
