/*
 * debian_cron.c - the main loop and the parser of Debian's cron, cron.c and entry.c as they are,
 * under a clock that is set by their own sleeping. What would start a job notes when; see debian.
 *
 *   debian FROM TO MOST EXPRESSION...   seconds since the epoch, in the zone of TZ
 *   debian --read FILE                  a crontab; --read-system: one whose lines name users
 *
 * Prints a line for each expression: how often it ran (it is dropped after MOST times), how many
 * more starts there were at the same instant, and the FNV-1a of the instants (ms, 8 bytes each, the
 * lowest first). Of a crontab, prints what load_env and load_entry make of each line, with
 * \x1f between: LINE, the user, the command, the environment without what cron adds; or LINE and
 * "refused". A refused line ends the reading of cron, but not of this.
 */
#include "cron.h"

#include <stdbool.h>
#include <stdint.h>

static time_t now, end;
static uint64_t most;
static int left; /* expressions that have not run MOST times */
static user tab;
static struct run {
    const char *expression;
    uint64_t count, again, digest;
    time_t last;
} * runs;
static int run_count;

/* ---- the clock */

time_t time(time_t *ret)
{
    if (ret)
        *ret = now;
    return now;
}

static void print_and_exit(void)
{
    for (struct run *r = runs; r < runs + run_count; r++)
        printf("%s|%llu|%llu|%016llx\n", r->expression, (unsigned long long)r->count,
               (unsigned long long)r->again, (unsigned long long)r->digest);
    fflush(stdout);
    _exit(0);
}

unsigned sleep(unsigned seconds)
{
    now += seconds;
    if (now >= end)
        print_and_exit();
    return 0;
}

/* ---- jobs */

void job_add(entry *e, user *u)
{
    struct run *r = runs + atoi(e->cmd);
    time_t at = now - now % 60;
    uint64_t ms = (uint64_t)at * 1000;

    (void)u;
    if (r->last == at) {
        r->again++;
        return;
    }
    r->last = at;
    if (r->count == most)
        return;
    left -= ++r->count == most;
    for (int i = 0; i < 8; i++, ms >>= 8)
        r->digest = (r->digest ^ (ms & 255)) * 1099511628211u;
    if (getenv("PRINT"))
        printf("# %s %lld\n", r->expression, (long long)at);
    if (!left)
        print_and_exit();
    for (entry **p = &tab.crontab; r->count == most && *p; p = &(*p)->next)
        if (*p == e) {
            *p = e->next; /* e->next stays: the loop of cron goes on from it */
            break;
        }
}

int job_runqueue(void)
{
    return 0;
}

/* ---- one crontab, read once */

static void complain(const char *text)
{
    fprintf(stderr, "refused: %s\n", text);
}

void load_database(cron_db *db)
{
    static struct passwd pw = {.pw_name = "root", .pw_dir = "/"};
    static char *no_environment[] = {NULL};

    if (db->head)
        return;
    for (int i = 0; i < run_count; i++) {
        char line[256];
        snprintf(line, sizeof line, "%s %d\n", runs[i].expression, i);
        FILE *f = fmemopen(line, strlen(line), "r");
        entry *e = load_entry(f, complain, &pw, no_environment);
        fclose(f);
        if (!e) {
            fprintf(stderr, "debian: not taken: %s", line);
            continue;
        }
        e->next = tab.crontab;
        tab.crontab = e;
    }
    db->head = db->tail = &tab;
}

/* Every account exists. */
struct passwd *getpwnam(const char *name)
{
    static struct passwd pw = {.pw_dir = "/"};

    pw.pw_name = strdup(name);
    return &pw;
}

static void print_entry(int line, const entry *e, bool system)
{
    static const char *const added[] = {"SHELL=/bin/sh", "HOME=/", "PATH=/usr/bin:/bin"};

    printf("%d\x1f%s\x1f%s", line, system ? env_get("LOGNAME", e->envp) : "", e->cmd);
    for (char **v = e->envp; *v; v++) {
        bool own = strncmp(*v, "LOGNAME=", 8);
        for (size_t i = 0; i < sizeof added / sizeof *added; i++)
            own = own && strcmp(*v, added[i]);
        if (own)
            printf("\x1f%s", *v);
    }
    putchar('\n');
}

static int read_file(const char *path, bool system)
{
    char variable[MAX_ENVSTR], **env = env_init();
    struct passwd *pw = system ? NULL : getpwnam("me");
    FILE *f = fopen(path, "r");

    Set_LineNum(1);
    for (int kind; (kind = load_env(variable, f)) != ERR;)
        if (kind == TRUE) {
            env = env_set(env, variable);
        } else {
            entry *e = load_entry(f, NULL, pw, env);
            fseek(f, -1, SEEK_CUR);
            for (int c = getc(f); c != '\n' && c != EOF;) /* a refused line is left where it is */
                c = get_char(f);
            if (e)
                print_entry(LineNumber - 1, e, system);
            else
                printf("%d\x1frefused\n", LineNumber - 1);
        }
    if (*variable)
        printf("%d\x1frefused\n", LineNumber);
    return 0;
}

/* ---- what the loop does besides */

void check_orphans(cron_db *db)
{
    (void)db;
}
void acquire_daemonlock(int closing)
{
    (void)closing;
}
void set_cron_uid(void)
{
}
void set_cron_cwd(void)
{
}
void log_it(char *user_name, int pid, char *event, char *detail)
{
    (void)user_name, (void)pid, (void)event, (void)detail;
}

int cron_main(int argc, char **argv);

int main(int argc, char **argv)
{
    char *arguments[] = {"cron", "-f", NULL};

    if (!strncmp(argv[1], "--read", 6))
        return read_file(argv[2], argv[1][6]);
    now = atoll(argv[1]) - 1;
    end = atoll(argv[2]);
    most = strtoull(argv[3], NULL, 10);
    left = run_count = argc - 4;
    runs = calloc((size_t)run_count, sizeof *runs);
    for (int i = 0; i < run_count; i++)
        runs[i] =
            (struct run){.expression = argv[i + 4], .digest = 14695981039346656037u, .last = -1};
    return cron_main(2, arguments);
}
