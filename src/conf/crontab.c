/*
 * crontab.c - see crontab.h. The rules are those of Debian's cron: load_env of env.c, load_entry of
 * entry.c, and child_process of do_command.c for what a "%" means.
 */
#include "conf/crontab.h"

#include "base/buf.h"
#include "base/cron.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define BLANKS " \t"
#define COMMAND_MAX 998 /* of cron */

struct reader {
    struct crontab *tab;
    unsigned line;
    bool has_user;
    char **env; /* "NAME=VALUE" for the lines below */
    size_t env_count, env_cap;
};

static void note_ignored(struct reader *r)
{
    if (!r->tab->ignored)
        r->tab->ignored = r->line;
}

/* ---- variables */

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, BLANKS);
}

/* Takes a word, perhaps in quotes, off *p; `stop` ends one without quotes. NULL: a quote is open.
 * The caller frees it. */
static char *take_word(const char **p, const char *stop)
{
    const char quote[] = {**p == '\'' || **p == '"' ? **p : '\0', '\0'};
    const char *word = *p + !!*quote;
    size_t len = strcspn(word, *quote ? quote : stop);

    if (*quote && !word[len])
        return NULL;
    *p = word + len + !!*quote;
    return mem_dup(word, len);
}

/* The place of a variable in env; env_count: there is none. */
static size_t find_variable(const struct reader *r, const char *name)
{
    size_t i = 0, len = strlen(name);

    while (i < r->env_count && (strncmp(r->env[i], name, len) || r->env[i][len] != '='))
        i++;
    return i;
}

static void set_variable(struct reader *r, const char *name, const char *value)
{
    size_t i = find_variable(r, name);

    MEM_ROOM(r->env, r->env_count, r->env_cap);
    if (i == r->env_count)
        r->env[r->env_count++] = NULL;
    free(r->env[i]);
    r->env[i] = mem_printf("%s=%s", name, value);
}

/* NAME = VALUE, each perhaps in quotes. False: the line is none, so it is a job. */
static bool read_variable(struct reader *r, const char *p)
{
    MEM_LOCAL char *name = take_word(&p, BLANKS "=");
    MEM_LOCAL char *value = NULL;

    p = skip_blanks(p);
    if (!name || !*name || strchr(name, '=') || *p != '=')
        return false;
    p = skip_blanks(p + 1);
    size_t len = strlen(p);
    bool quoted = *p == '\'' || *p == '"';
    while (!quoted && len && isspace((unsigned char)p[len - 1]))
        len--;
    value = quoted ? take_word(&p, "") : mem_dup(p, len);
    if (!value || (quoted && *skip_blanks(p)))
        return false;
    if (!*value && !quoted)
        note_ignored(r);
    set_variable(r, name, value);
    return true;
}

/* ---- the name */

/* What stands before a command and says nothing about it; a digit: how many words it takes. */
/* clang-format off */
static const char *const wrappers[] = {
    "&& 0", "|| 0", "{ 0", "if 0", "then 0", "command 0", "exec 0", "env 0", "nohup 0", "setsid 0",
    "time 0", "nice 0", "ionice 0", "sudo 0", "chronic 0", "screen 0", "bash 0", "sh 0", "php 0",
    "perl 0", "python 0", "python3 0", "ruby 0", "node 0", "rake 0", "bundle 0", "run-parts 0",
    ". 1", "source 1", "export 1", "exit 1", "cd 1", "umask 1", "su 1", "flock 1", "timeout 1"};
/* clang-format on */

static int wrapper_takes(const char *word)
{
    const char *base = strrchr(word, '/') ? strrchr(word, '/') + 1 : word;

    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
        size_t len = strlen(wrappers[i]) - 2;
        if (strlen(base) == len && !strncmp(base, wrappers[i], len))
            return wrappers[i][len + 1] - '0';
    }
    return -1;
}

/* The word of a command that says most: "backup-db" of "cd / && flock -n l nice /bin/backup-db". */
static const char *find_word(char *command)
{
    int skip = 0;
    bool test = false;

    for (char *word; (word = strsep(&command, BLANKS "\n'\"();"));) {
        int takes = wrapper_takes(word);
        if (test)
            test = strcmp(word, "&&") && strcmp(word, "||") && strcmp(word, "]");
        else if (!strcmp(word, "[") || !strcmp(word, "test"))
            test = true;
        else if (takes >= 0)
            skip = takes;
        else if (*word == '-')
            skip += !strcmp(word, "-u") || !strcmp(word, "-w") || !strcmp(word, "-s");
        else if (skip && *word)
            skip--;
        else if ((isalpha((unsigned char)*word) || strchr(word, '/')) && !strchr(word, '='))
            return word;
    }
    return "job";
}

static char *propose_name(const struct reader *r, const char *text)
{
    static const char *const extensions[] = {".sh", ".bash", ".py", ".pl", ".php", ".rb", ".js"};
    MEM_LOCAL char *command = mem_strdup(text);
    char *name, *p;
    const char *word = find_word(command), *slash = strrchr(word, '/');

    word = slash && slash[1] ? slash + 1 : word;
    word = strcspn(word, "&<>|") ? word : "job";
    name = mem_dup(word, MIN(strcspn(word, "&<>|"), 60));
    p = strrchr(name, '.');
    for (size_t i = 0; p && i < sizeof extensions / sizeof *extensions; i++)
        if (!strcmp(p, extensions[i]))
            *p = '\0';
    for (p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
            *p = '-';
    for (size_t i = 0, n = 1; i < r->tab->count; i++)
        if (r->tab->entries[i].name && !strcmp(r->tab->entries[i].name, name)) {
            char *shorter = n > 1 ? strrchr(name, '-') : NULL;
            int len = shorter ? (int)(shorter - name) : (int)strlen(name);
            p = mem_printf("%.*s-%zu", len, name, ++n);
            free(name);
            name = p;
            i = (size_t)-1; /* is that one taken, too? */
        }
    return name;
}

/* ---- lines */

/* Cuts the command at its first bare "%"; what is behind it, with newlines for more of them, is
 * the standard input. */
static void split_input(struct crontab_entry *e, const char *text)
{
    struct buf command = BUF_INIT, input = BUF_INIT, *b = &command;

    for (const char *p = text; *p; p++) {
        bool escaped = *p == '\\' && (p[1] == '%' || (p[1] == '\\' && b == &command));
        if (escaped)
            buf_chr(b, *++p);
        else if (*p != '%')
            buf_chr(b, *p);
        else if (b == &command)
            b = &input;
        else
            buf_chr(b, '\n');
    }
    e->command = buf_take(&command);
    if (input.len && input.data[input.len - 1] != '\n')
        buf_chr(&input, '\n');
    if (input.len)
        e->input = buf_take(&input);
    buf_done(&input);
}

static void put_note(struct crontab_entry *e, enum crontab_verdict v, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void put_note(struct crontab_entry *e, enum crontab_verdict v, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list ap;

    buf_printf(&b, "%s%s", e->note ? e->note : "", e->note ? "; " : "");
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    free(e->note);
    e->note = buf_take(&b);
    e->verdict = MAX(e->verdict, v);
}

/* clang-format off */
/* Parts of commands that care for one machine: its files, packages, clock, statistics. */
static const char *const host_own[] = {
    "run-parts",  "anacron",   "/etc/cron.",    "/run/systemd/system", "logrotate",  "debian-sa1",
    "/sa1",       "/sa2",      "e2scrub",       "fstrim",              "checkarray", "zpool ",
    "apt-get",    "apt ",      "unattended-up", "popularity-contest",  "updatedb",   "mandb",
    "certbot",    "sessionclean", "ntpdate",    "hwclock",             "shutdown",   "reboot",
    "tmpreaper",  "tmpwatch",  "/proc/",        "freshclam",           "munin-node", "hostname"};
#define OWN_COUNT (sizeof host_own / sizeof *host_own)
/* clang-format on */

/* Says what a schedule does otherwise. */
static void judge(struct crontab_entry *e, const char *delay)
{
    size_t i = 0;

    while (i < OWN_COUNT && !strstr(e->command, host_own[i]))
        i++;
    if (i < OWN_COUNT)
        put_note(e, CRONTAB_HOST_OWN,
                 "this looks like one host's own business (%s): leave it in cron", host_own[i]);
    e->spread_minutes = delay ? (unsigned)MIN(strtoul(delay, NULL, 10), 1440) : 0;
    if (delay && e->spread_minutes)
        put_note(e, CRONTAB_CHANGED, "RANDOM_DELAY becomes --spread %um", e->spread_minutes);
    if (e->zone)
        put_note(e, CRONTAB_CHANGED, "CRON_TZ becomes --zone %s; Debian's cron would ignore it",
                 e->zone);
    if (e->mailto && *e->mailto)
        put_note(e, CRONTAB_CHANGED,
                 "MAILTO=%s becomes on_failed: output of runs that succeed is not sent", e->mailto);
    if (e->input)
        put_note(e, CRONTAB_TAKEN, "its standard input begins at the first %% without a backslash");
    if (strstr(e->command, "flock"))
        put_note(e, CRONTAB_CHANGED,
                 "flock holds on one host only: set --overlap skip, which holds on all");
}

/* Takes the expression off *p: five words, or one that begins with "@". */
static char *take_expression(const char **p)
{
    struct buf b = BUF_INIT;

    for (int words = **p == '@' ? 1 : 5; words && **p; words--) {
        size_t len = strcspn(*p, BLANKS);
        buf_str(&b, b.len ? " " : "");
        buf_add(&b, *p, len);
        *p = skip_blanks(*p + len);
    }
    return buf_take(&b);
}

/* Copies the variables for a job; those with a meaning go to their places. */
static void take_env(const struct reader *r, struct crontab_entry *e, char **ret_delay)
{
    struct {
        const char *name;
        char **place;
    } known[] = {{"CRON_TZ=", &e->zone},
                 {"SHELL=", &e->shell},
                 {"MAILTO=", &e->mailto},
                 {"RANDOM_DELAY=", ret_delay}};
    char **next = e->env;

    for (size_t i = 0; i < r->env_count; i++) {
        char **place = NULL;
        size_t len = 0;
        for (size_t k = 0; k < sizeof known / sizeof *known && !place; k++) {
            len = strlen(known[k].name);
            place = strncmp(r->env[i], known[k].name, len) ? NULL : known[k].place;
        }
        if (!strncmp(r->env[i], "LOGNAME=", 8))
            continue; /* cron sets it itself */
        if (place)
            *place = mem_strdup(r->env[i] + len);
        else
            *next++ = mem_strdup(r->env[i]);
    }
}

static void read_job(struct reader *r, const char *p, bool returned)
{
    struct crontab_entry e = {.line = r->line, .env = mem_zero(r->env_count + 1, sizeof *e.env)};
    MEM_LOCAL char *delay = NULL;
    struct cron cron;
    struct err err;
    int rc;

    e.expression = take_expression(&p);
    if (r->has_user) {
        e.user = mem_dup(p, strcspn(p, BLANKS));
        p = skip_blanks(p + strlen(e.user));
    }
    rc = cron_parse(e.expression, &cron, &err);
    bool last_day = rc == 0 && cron.bits[CRON_DAY] >> CRON_LAST_DAY;
    if (rc == ERR_DATA || (rc == 0 && (last_day || (!*p && r->has_user) || *p == '*')) ||
        strlen(p) + returned > COMMAND_MAX)
        note_ignored(r);
    if (rc) {
        put_note(&e, CRONTAB_REFUSED, "%s", err.text);
    } else if (!*p) {
        put_note(&e, CRONTAB_REFUSED, "there is no %scommand", r->has_user ? "user, or no " : "");
    } else if (*p == '*') {
        put_note(&e, CRONTAB_REFUSED,
                 "the command begins with \"*\": there are six fields, and cron has five");
    } else {
        take_env(r, &e, &delay);
        split_input(&e, p);
        e.name = propose_name(r, e.command);
        judge(&e, delay);
        if (last_day)
            put_note(&e, CRONTAB_CHANGED, "cron does not know L");
        if (returned)
            put_note(&e, CRONTAB_CHANGED,
                     "the carriage return at its end, which cron leaves in the command, is cut");
    }
    MEM_ROOM(r->tab->entries, r->tab->count, r->tab->cap);
    r->tab->entries[r->tab->count++] = e;
}

void crontab_read(const char *text, size_t len, bool has_user, struct crontab *ret)
{
    struct reader r = {.tab = ret, .has_user = has_user};

    *ret = (struct crontab){0};
    for (const char *p = text, *end = text + len; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t size = (size_t)((newline ? newline : end) - p);
        MEM_LOCAL char *line = mem_dup(p, size);
        const char *start = skip_blanks(line);
        bool returned = size && line[size - 1] == '\r';
        r.line++;
        if (returned)
            line[size - 1] = '\0';
        if (*start != '#' && ((*start && !newline) || (!*start && returned)))
            note_ignored(&r);
        if (*start && *start != '#' && !read_variable(&r, start))
            read_job(&r, start, returned);
        p += size + 1;
    }
    for (size_t i = 0; i < r.env_count; i++)
        free(r.env[i]);
    free(r.env);
}

void crontab_done(struct crontab *tab)
{
    for (size_t i = 0; i < tab->count; i++) {
        struct crontab_entry *e = &tab->entries[i];
        for (char **variable = e->env; *variable; variable++)
            free(*variable);
        char *owned[] = {e->note,    e->name,  e->expression, e->zone,  e->user,
                         e->command, e->input, e->shell,      e->mailto};
        for (size_t k = 0; k < sizeof owned / sizeof *owned; k++)
            free(owned[k]);
        free(e->env);
    }
    free(tab->entries);
    *tab = (struct crontab){0};
}

const char *crontab_verdict_name(enum crontab_verdict v)
{
    static const char *const names[] = {"taken", "changed", "own", "refused"};
    return names[v];
}
