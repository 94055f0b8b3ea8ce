/*
 * cmd_completion.c - dq completion: the scripts that connect a shell to dq, and the words that
 * these ask for.
 *
 * Invariant: for the words, nothing is printed but words, and it takes a fraction of a second,
 * whatever is wrong with the configuration or the database.
 */
#include "cli/line/complete.h"
#include "cli/line/texts.h"
#include "cli/line/verbs.h"
#include "store/ask/complete_store.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define PATIENCE_MS 300

struct completion_values {
    bool line;
};

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

struct found {
    struct buf *to;
    const char *word; /* that is completed */
    size_t lead;      /* bytes of it that stay */
};

static void take_word(const char *word, const char *help, void *arg)
{
    const struct found *f = arg;
    if (complete_is_inert(word))
        buf_printf(f->to, "%.*s%s\t%s\n", (int)f->lead, f->word, word,
                   help && complete_is_inert(help) ? help : "");
}

/* Words that are in the database. Errors are not reported: a person is typing. */
static void print_stored(struct cmd_context *c, enum complete_store_kind kind, const char *stem,
                         struct found *f)
{
    struct err none;
    if (*stem != '\0' && !complete_is_inert(stem))
        return;
    end_soon();
    c->quiet = true;
    if (cmd_open(c, CMD_SCHEMA, &none) == 0 &&
        complete_store_list(c->db, kind, stem, take_word, f, &none) == 0)
        out_write(f->to);
}

static int print_words(struct cmd_context *c, struct err *err)
{
    static char nothing[] = "", *no_word[] = {nothing};
    char **words = c->operand_count ? c->operands : no_word;
    int count = c->operand_count ? c->operand_count : 1, rc;
    const char *stem, *config;
    BUF_LOCAL struct buf b = BUF_INIT;
    struct found f = {.to = &b, .word = words[count - 1]};

    enum complete_more more = complete_line(&b, words, count, &stem, &f.lead, &config);
    if (config)
        c->config_path = config;
    if (more == COMPLETE_FILES)
        buf_str(&b, ":files\t\n");
    out_write(&b);
    rc = out_flush(err);
    buf_reset(&b);
    if (rc == 0 && more == COMPLETE_TAGS)
        print_stored(c, COMPLETE_STORE_TAGS, stem, &f);
    else if (rc == 0 && more == COMPLETE_IDS)
        print_stored(c, COMPLETE_STORE_IDS, stem, &f);
    else if (rc == 0 && more == COMPLETE_KEYS)
        print_stored(c, COMPLETE_STORE_KEYS, stem, &f);
    return rc;
}

static int run(struct cmd_context *c, const void *values, struct err *err)
{
    const struct completion_values *v = values;

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
