/*
 * check.c - checks whether handlers could be started.
 *
 * Invariant: a file that this account is not allowed to see counts as present, because the
 * handler's account may see it.
 */
#include "runner/check.h"

#include "runner/plan.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* 0, or the errno with which every account would fail. */
static int directory_fault(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return errno == ENOENT || errno == ENOTDIR ? errno : 0;
    return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}

static int program_fault(const char *path)
{
    struct stat st;

    if (path[0] != '/') /* an entry of PATH that is relative to cwd */
        return 0;
    if (stat(path, &st) != 0)
        return errno == ENOENT || errno == ENOTDIR ? errno : 0;
    return S_ISREG(st.st_mode) && st.st_mode & 0111 ? 0 : EACCES;
}

static int check_program(const struct setup *s, const char *name, struct err *err)
{
    const char *const *program = s->programs;
    int fault = 0, worst = ENOENT;

    for (; *program && (fault = program_fault(*program)) != 0; program++)
        worst = fault == EACCES ? EACCES : worst;
    if (*program)
        return 0;
    if (worst == EACCES)
        return err_set(err, ERR_CONFIG, "%s is not an executable file", name);
    return err_set(err, ERR_CONFIG, "%s: %s", name,
                   strchr(name, '/') ? strerror(worst) : "no such program in the handler's PATH");
}

static int check_restart_on(const struct handler *h, struct err *err)
{
    struct stat st;

    for (char *const *path = h->restart_on; path && *path; path++)
        if (stat(*path, &st) != 0 && errno == ENOENT)
            return err_set(err, ERR_CONFIG, "restart_on %s: no such file; dqd looks for it", *path);
    return 0;
}

static int check_plan(const struct plan *p, struct err *err)
{
    int fault = directory_fault(p->handler->cwd);
    struct setup *s = setup_new(p, err);

    if (!s)
        return err->code = ERR_CONFIG;
    int rc = fault ? err_set(err, ERR_CONFIG, "cwd %s: %s", p->handler->cwd, strerror(fault))
                   : check_program(s, p->argv[0], err);
    setup_free(s);
    return rc ? rc : check_restart_on(p->handler, err);
}

size_t check_handlers(const struct handlers *handlers, const char *default_user,
                      void (*warn)(const struct handlers *handlers, const struct handler *h,
                                   const char *why))
{
    struct table *table = table_new(handlers, default_user, NULL);
    struct err err;
    size_t count = 0;

    for (size_t i = 0; i < handlers->count; i++) {
        if (check_plan(&table->plans[i], &err) == 0)
            continue;
        warn(handlers, &handlers->items[i], err.text);
        count++;
    }
    table_free(table);
    return count;
}
