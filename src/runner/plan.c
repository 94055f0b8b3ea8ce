/*
 * plan.c - works out how the handlers of a table are started.
 *
 * Invariants: handlers inherit nothing of dqd's own environment except TZ; names that begin with
 * DQ_ are not the handlers file's (handlers_load refuses them).
 */
#include "runner/plan.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/words.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BASE_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static bool same_name(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");

    return strncmp(a, b, n) == 0 && (b[n] == '=' || !b[n]);
}

/* Takes over `setting`, "NAME=value". */
static void env_set(struct setup *p, char *setting)
{
    for (size_t i = 0; i < p->env_count; i++) {
        if (same_name(p->env[i], setting)) {
            free(p->env[i]);
            p->env[i] = setting;
            return;
        }
    }
    p->env = mem_resize(p->env, p->env_count + 2, sizeof *p->env);
    p->env[p->env_count++] = setting;
    p->env[p->env_count] = NULL;
}

/* As the kernel would decide, but for access control lists. need: one of the bits of "others". */
static bool account_may(const struct child_account *a, const char *path, mode_t need)
{
    struct stat st;
    int shift = 0;

    if (stat(path, &st) != 0)
        return false;
    for (size_t i = 0; i < a->group_count; i++)
        if (a->groups[i] == st.st_gid)
            shift = 3;
    if (st.st_uid == a->uid)
        shift = 6;
    return a->uid == 0 || st.st_mode >> shift & need;
}

static bool may_read(const struct setup *s, const char *path)
{
    MEM_LOCAL char *dir = mem_strdup(path);
    bool may = true;

    if (!s->switches) {
        may = access(path, R_OK) == 0;
    } else {
        for (char *end = strrchr(dir, '/'); may && end && end != dir; end = strrchr(dir, '/')) {
            *end = '\0';
            may = account_may(&s->account, dir, S_IXOTH);
        }
        may = may && account_may(&s->account, path, S_IROTH);
    }
    return may;
}

static void make_env(struct setup *p, const struct plan *plan, const struct passwd *pw)
{
    const char *tz = getenv("TZ");
    const struct handler *h = plan->handler;

    env_set(p, mem_strdup("PATH=" BASE_PATH));
    env_set(p, mem_strdup("LANG=C.UTF-8"));
    if (tz)
        env_set(p, mem_printf("TZ=%s", tz));
    env_set(p, mem_printf("HOME=%s", pw && *pw->pw_dir ? pw->pw_dir : "/"));
    env_set(p, mem_printf("SHELL=%s", pw && *pw->pw_shell ? pw->pw_shell : "/bin/sh"));
    if (pw) {
        env_set(p, mem_printf("USER=%s", pw->pw_name));
        env_set(p, mem_printf("LOGNAME=%s", pw->pw_name));
    }
    for (char **e = h->env; e && *e; e++)
        env_set(p, mem_strdup(*e));
    if (plan->words) /* as the shell would */
        env_set(p, mem_printf("PWD=%s", h->cwd ? h->cwd : "/"));
    env_set(p, mem_strdup("DQ_REPLY_FD=" TEXT_OF(CHILD_REPLY)));
    if (plan->config && may_read(p, plan->config))
        env_set(p, mem_printf("DQ_CONFIG=%s", plan->config));
}

static const char *env_get(const struct setup *p, const char *name)
{
    for (size_t i = 0; i < p->env_count; i++)
        if (same_name(p->env[i], name))
            return p->env[i] + strlen(name) + 1;
    return "";
}

/* Lists where the program may be: the path itself, or its name in each directory of the handler's
 * PATH. */
static void make_programs(struct setup *p, const char *name)
{
    const char *path = env_get(p, "PATH");
    size_t n = 0;

    if (strchr(name, '/')) {
        p->programs = mem_zero(2, sizeof *p->programs);
        p->programs[0] = mem_strdup(name);
        return;
    }
    do {
        size_t len = strcspn(path, ":");
        p->programs = mem_resize(p->programs, n + 2, sizeof *p->programs);
        p->programs[n++] =
            len ? mem_printf("%.*s/%s", (int)len, path, name) : mem_printf("./%s", name);
        p->programs[n] = NULL;
        path += len;
    } while (*path++);
}

/* A shell that would only execute a program takes as long to start as a small program does. */
static void make_argv(struct plan *p)
{
    const struct handler *h = p->handler;

    p->argv = (const char *const *)h->argv;
    if (!h->run)
        return;
    p->shell[0] = h->shell ? h->shell : "/bin/sh";
    p->shell[1] = "-c";
    p->shell[2] = h->run;
    p->argv = p->shell;
    if (!h->shell && words_split(h->run, &p->words) && p->words[0] && !strchr(p->words[0], '=') &&
        !words_is_built_in(p->words[0]))
        p->argv = (const char *const *)p->words;
}

static void load_groups(struct child_account *a)
{
    int count = 16;

    a->groups = mem_resize(NULL, (size_t)count, sizeof *a->groups);
    while (getgrouplist(a->name, a->gid, a->groups, &count) < 0)
        a->groups = mem_resize(a->groups, (size_t)count, sizeof *a->groups);
    a->group_count = (size_t)count;
}

/* Reads the entry of an account; user NULL: of this process's. 0, with *ret NULL if there is none;
 * else an errno. The caller frees *memory. */
static int look_up(const char *user, struct passwd *pw, char **memory, struct passwd **ret)
{
    size_t size = 1024;
    int rc;

    do {
        *memory = mem_resize(*memory, size *= 2, 1);
        rc = user ? getpwnam_r(user, pw, *memory, size, ret)
                  : getpwuid_r(geteuid(), pw, *memory, size, ret);
    } while (rc == ERANGE && size < ((size_t)1 << 20));
    return rc;
}

struct setup *setup_new(const struct plan *p, struct err *err)
{
    const char *user = p->handler->user ? p->handler->user : p->default_user;
    bool stay = !user || !*user;
    struct setup *s = NULL;
    struct passwd entry, *pw = NULL;
    MEM_LOCAL char *memory = NULL;
    int rc = look_up(stay ? NULL : user, &entry, &memory, &pw);

    if (!stay && !pw) {
        err_set(err, ERR_SYSTEM, "user %s: %s", user,
                rc ? strerror(rc) : "there is no such account");
        goto out;
    }
    s = mem_zero(1, sizeof *s);
    s->switches = !stay && (geteuid() == 0 || pw->pw_uid != geteuid());
    if (s->switches) {
        s->account = (struct child_account){
            .name = mem_strdup(pw->pw_name), .uid = pw->pw_uid, .gid = pw->pw_gid};
        load_groups(&s->account);
    }
    make_env(s, p, pw);
    make_programs(s, p->argv[0]);
out:
    return s;
}

struct table *table_new(const struct handlers *handlers, const char *default_user,
                        const char *config)
{
    struct table *t = mem_zero(1, sizeof *t);

    t->handlers = handlers;
    t->plans = mem_zero(handlers->count, sizeof *t->plans);
    for (size_t i = 0; i < handlers->count; i++) {
        t->plans[i].handler = &handlers->items[i];
        t->plans[i].contract = contract_of(&handlers->items[i]);
        t->plans[i].default_user = default_user;
        t->plans[i].config = config;
        t->weighted |= handlers->items[i].weight != handlers->items[0].weight;
        make_argv(&t->plans[i]);
    }
    return t;
}

static void free_strings(char **list)
{
    for (char **s = list; s && *s; s++)
        free(*s);
    free(list);
}

void setup_free(struct setup *s)
{
    if (!s)
        return;
    free_strings((char **)s->programs);
    free_strings(s->env);
    free(s->account.name);
    free(s->account.groups);
    free(s);
}

void table_free(struct table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->handlers->count; i++) {
        free(t->plans[i].words);
        free(t->plans[i].kept.why);
        free((char *)t->plans[i].kept.tell.last);
        setup_free(t->plans[i].setup);
    }
    free(t->plans);
    handlers_free(t->owned);
    free(t);
}
