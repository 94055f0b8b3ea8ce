/*
 * doctor.c - see doctor.h. Invariant: a finding that is not ok has no text of one that is. The
 * rules for owner and mode of a file are those of the reader, src/conf/conf_file.c.
 */
#include "cli/judge/doctor.h"

#include "base/mem.h"
#include "conf/conf_file.h"
#include "conf/handlers_load.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void doctor_find(struct doctor_finding *f, enum doctor_verdict verdict, const char *fmt, ...)
{
    va_list ap;

    if (verdict == DOCTOR_OK && f->verdict != DOCTOR_OK)
        return;
    if (verdict != DOCTOR_OK && f->verdict == DOCTOR_OK)
        buf_reset(&f->text);
    if (verdict > f->verdict)
        f->verdict = verdict;
    buf_str(&f->text, f->text.len ? "; " : "");
    va_start(ap, fmt);
    buf_vprintf(&f->text, fmt, ap);
    va_end(ap);
}

void doctor_find_failed(struct doctor_finding *f, const struct err *err)
{
    if (err->code == ERR_DENIED)
        doctor_find(f, DOCTOR_UNKNOWN, "not known: %s", err->text);
    else
        doctor_find(f, DOCTOR_BAD, "%s", err->text);
}

/* ---- this host */

/* Whoever can write to the directory of a file can replace it. */
static void check_directory(const char *path, struct doctor_finding *f)
{
    MEM_LOCAL char *dir = conf_file_directory(path);
    struct stat st;

    if (stat(dir, &st) == 0 && st.st_mode & S_IWOTH && !(st.st_mode & S_ISVTX))
        doctor_find(f, DOCTOR_BAD,
                    "%s: everybody can replace files in it (mode %04o); run: chmod o-w %s", dir,
                    (unsigned)(st.st_mode & 07777), dir);
}

int doctor_host_configuration(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    struct stat st;

    if (cmd_open(d->c, CMD_CONF, err) < 0) {
        doctor_find(f, DOCTOR_BAD, "%s", err->text);
        return 0;
    }
    d->stage = DOCTOR_CONF;
    check_directory(d->c->conf->path, f);
    if (stat(d->c->conf->path, &st) == 0)
        doctor_find(f, DOCTOR_OK, "%s, mode %04o", d->c->conf->path,
                    (unsigned)(st.st_mode & 07777));
    if (d->c->conf->variables)
        doctor_find(f, DOCTOR_OK, "overridden by the environment: %s", d->c->conf->variables);
    return 0;
}

int doctor_host_password(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    const char *path = d->c->conf->mysql.password_file;
    struct stat st;
    char *secret = NULL;

    if (!*path) {
        doctor_find(f, DOCTOR_OK, "no password_file");
        return 0;
    }
    if (conf_file_read_secret(path, &secret, err) < 0)
        doctor_find(f, DOCTOR_BAD, "%s", err->text);
    conf_file_wipe_secret(secret);
    check_directory(path, f);
    if (stat(path, &st) == 0)
        doctor_find(f, DOCTOR_OK, "%s, mode %04o", path, (unsigned)(st.st_mode & 07777));
    return 0;
}

int doctor_host_handlers(struct doctor *d, struct doctor_finding *f, struct err *err)
{
    const char *path = d->c->conf->dqd.handlers;
    const struct handler *lone;
    struct handlers *h = NULL;

    bool readable = access(path, R_OK) == 0;
    if (!readable && (errno == ENOENT || errno == ENOTDIR))
        doctor_find(f, DOCTOR_OK, "there is no %s: a host without dqd needs none", path);
    else if (!readable)
        doctor_find(f, DOCTOR_UNKNOWN,
                    "not known: %s: %s; dqd --check-config as its account says more", path,
                    strerror(errno));
    else if (handlers_load(path, &h, err) < 0)
        doctor_find(f, DOCTOR_BAD, "%s", err->text);
    else
        doctor_find(f, DOCTOR_OK, "%s: %zu handlers", path, h->count);
    for (size_t at = 0; h && (lone = handlers_unfollowed(h, &at));)
        doctor_find(f, DOCTOR_WARN, "%s:%u: on_failed: no handler here serves %s", path, lone->line,
                    lone->on_failed);
    handlers_free(h);
    return 0;
}
