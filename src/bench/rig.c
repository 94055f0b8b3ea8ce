/*
 * rig.c - a directory with the files that the programs under measure read.
 */
#include "bench/rig.h"

#include "base/mem.h"
#include "conf/conf.h"
#include "conf/conf_env.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DESCRIPTORS 1024 /* far more than dq ever has */

static int write_file(const char *path, const struct buf *text, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = 0;

    if (fd < 0 || write(fd, text->data, text->len) != (ssize_t)text->len)
        rc = err_set(err, ERR_SYSTEM, "cannot write %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

static int write_files(const struct rig *rig, struct err *err)
{
    static char none[] = "";
    struct conf conf = *rig->conf;
    BUF_LOCAL struct buf ini = BUF_INIT, yaml = BUF_INIT;

    conf.mysql = rig->scratch->conf;
    conf.dqd.handlers = rig->handlers;
    conf.dqd.lock_file = none;
    conf.dqd.wake_dir = none;
    conf_put_section(&ini, &conf, "mysql");
    conf_put_section(&ini, &conf, "dqd");
    buf_printf(&yaml,
               "defaults:\n  max_running: %d\n"
               "handlers:\n  " RIG_TAG_PROCESS ":\n    run: ':'\n"
               "  " RIG_TAG_BATCH ":\n    run: exec cat >/dev/null\n    batch: %d\n"
               "  " RIG_TAG_LATE ":\n    run: ':'\n",
               conf.dqd.slots, RIG_BATCH);
    int rc = write_file(rig->ini, &ini, err);
    if (rc == 0)
        rc = write_file(rig->handlers, &yaml, err);
    return rc;
}

static char *find_in_path(const char *name)
{
    const char *path = getenv("PATH");

    for (const char *p = path ? path : ""; *p; p += *p == ':') {
        size_t len = strcspn(p, ":");
        char *try = mem_printf("%.*s/%s", (int)len, p, name);
        if (*p == '/' && access(try, X_OK) == 0)
            return try;
        free(try);
        p += len;
    }
    return NULL;
}

/* Beside dq, else in PATH; NULL. */
static char *find_dqd(void)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

    if (len > 0) {
        self[len] = '\0';
        char *beside = mem_printf("%.*s/dqd", (int)(strrchr(self, '/') - self), self);
        if (access(beside, X_OK) == 0)
            return beside;
        free(beside);
    }
    return find_in_path("dqd");
}

int rig_init(struct rig *rig, const struct conf *conf, const struct scratch_db *scratch,
             struct err *err)
{
    const char *tmp = getenv("TMPDIR");
    cpu_set_t cpus;
    char *dir = mem_printf("%s/dq-bench.XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");

    *rig = (struct rig){.conf = conf, .scratch = scratch, .dqd = find_dqd()};
    rig->cores = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    unsetenv("NOTIFY_SOCKET"); /* of a unit that runs dq bench: its dqd must not use it */
    conf_env_clear();          /* the file below has all settings */
    for (int fd = 3; fd < DESCRIPTORS; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (!mkdtemp(dir)) {
        int rc =
            err_set(err, ERR_SYSTEM, "cannot create the directory %s: %s", dir, strerror(errno));
        free(dir);
        return rc;
    }
    rig->dir = dir;
    rig->ini = mem_printf("%s/dq.ini", dir);
    rig->handlers = mem_printf("%s/handlers.yaml", dir);
    rig->log = mem_printf("%s/log", dir);
    return write_files(rig, err);
}

void rig_done(struct rig *rig)
{
    if (rig->dir) {
        unlink(rig->ini);
        unlink(rig->handlers);
        unlink(rig->log);
        rmdir(rig->dir);
    }
    free(rig->dir);
    free(rig->ini);
    free(rig->handlers);
    free(rig->log);
    free(rig->dqd);
}
