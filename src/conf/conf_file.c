/*
 * conf_file.c - finds, opens and reads the files that decide what dq does.
 *
 * Invariant: owner and mode are checked on the descriptor that is then read, so nothing can be
 * exchanged in between; a secret leaves no copy behind but the one the caller gets.
 */
#include "conf/conf_file.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET_MAX 1024
#define SYSTEM_FILE "/etc/dq/dq.ini"
#define NAME_SIZE 64 /* of an account in a message */

/* The demands on a file. */
struct demands {
    const char *what; /* its role, for messages */
    mode_t forbidden; /* bits of its mode */
    /* if root owns it, the group may read it: then it is kept for the accounts of that group */
    bool group_may_read;
    const char *complaint; /* what others can do with it */
    const char *remedy;    /* argument of chmod */
};

/* The name of an account, or "user id 1234". Returns out. */
static char *put_account(char out[NAME_SIZE], uid_t uid)
{
    const struct passwd *found = getpwuid(uid);

    snprintf(out, NAME_SIZE, "user id %u", (unsigned)uid);
    if (found)
        snprintf(out, NAME_SIZE, "%s", found->pw_name);
    return out;
}

/* The name of a group, or its number. Returns out. */
static char *put_group(char out[NAME_SIZE], gid_t gid)
{
    const struct group *found = getgrgid(gid);

    snprintf(out, NAME_SIZE, "%u", (unsigned)gid);
    if (found)
        snprintf(out, NAME_SIZE, "%s", found->gr_name);
    return out;
}

static int fail_permission(const char *path, const struct demands *d, struct err *err)
{
    char reader[NAME_SIZE], owner[NAME_SIZE], group[NAME_SIZE];
    struct stat st;

    put_account(reader, geteuid());
    if (stat(path, &st) != 0) /* it is the directory that refuses */
        return err_set(
            err, ERR_CONFIG,
            "%s: the account %s may not read the %s; change its owner or run as another user", path,
            reader, d->what);
    put_account(owner, st.st_uid);
    put_group(group, st.st_gid);
    if (st.st_uid == 0 && st.st_gid != 0 && st.st_mode & S_IRGRP)
        return err_set(
            err, ERR_CONFIG,
            "%s: only the group %s may read the %s; add the account %s to it: usermod -aG %s %s",
            path, group, d->what, reader, group, reader);
    return err_set(
        err, ERR_CONFIG,
        "%s: the account %s may not read the %s (owner %s, group %s, mode %04o); change its owner or run as another user",
        path, reader, d->what, owner, group, (unsigned)(st.st_mode & 07777));
}

static int fail_open(const char *path, const struct demands *d, int error, struct err *err)
{
    switch (error) {
    case ENOENT:
        return err_set(err, ERR_CONFIG, "%s: there is no such %s", path, d->what);
    case EACCES:
        return fail_permission(path, d, err);
    default:
        return err_set(err, ERR_CONFIG, "%s: cannot open the %s: %s", path, d->what,
                       strerror(error));
    }
}

static int check_kind_and_owner(const struct stat *st, const char *path, const char *what,
                                struct err *err)
{
    char owner[NAME_SIZE], reader[NAME_SIZE];

    if (S_ISDIR(st->st_mode))
        return err_set(err, ERR_CONFIG, "%s: this is a directory; name the %s itself", path, what);
    if (!S_ISREG(st->st_mode))
        return err_set(err, ERR_CONFIG, "%s: the %s must be a regular file", path, what);
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return err_set(err, ERR_CONFIG,
                       "%s: the %s belongs to %s, who could change it; give it to root%s%s", path,
                       what, put_account(owner, st->st_uid), geteuid() ? " or to " : "",
                       geteuid() ? put_account(reader, geteuid()) : "");
    return 0;
}

/* Whether this process may read what a group may. */
static bool in_group(gid_t gid)
{
    gid_t groups[NGROUPS_MAX];
    int count = getgroups(NGROUPS_MAX, groups);
    bool found = geteuid() == 0 || getegid() == gid;

    for (int i = 0; i < count; i++)
        found = found || groups[i] == gid;
    return found;
}

static mode_t forbidden_bits(const struct stat *st, const struct demands *d)
{
    bool for_group = d->group_may_read && st->st_uid == 0 && in_group(st->st_gid);
    return d->forbidden & ~(for_group ? (mode_t)S_IRGRP : 0);
}

/* Opens without blocking on a FIFO and without following the file into a terminal. */
static int open_checked(const char *path, const struct demands *d, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail_open(path, d, errno, err);
    struct stat st;
    int rc;
    if (fstat(fd, &st) != 0)
        rc = fail_open(path, d, errno, err);
    else
        rc = check_kind_and_owner(&st, path, d->what, err);
    if (rc == 0 && (st.st_mode & forbidden_bits(&st, d)) != 0)
        rc = err_set(err, ERR_CONFIG, "%s: others can %s the %s (mode %04o); run: chmod %s %s",
                     path, d->complaint, d->what, (unsigned)(st.st_mode & 07777), d->remedy, path);
    if (rc != 0) {
        close(fd);
        return rc;
    }
    return fd;
}

int conf_file_open(const char *path, const char *what, struct err *err)
{
    const struct demands d = {what, S_IWGRP | S_IWOTH, false, "write to", "go-w"};
    return open_checked(path, &d, err);
}

int conf_file_read(const char *path, const char *what, size_t max, struct buf *ret, struct err *err)
{
    int fd = conf_file_open(path, what, err);
    if (fd < 0)
        return fd;
    int rc = 0;
    size_t start = ret->len;
    for (;;) {
        char chunk[8192];
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc =
                err_set(err, ERR_CONFIG, "%s: cannot read the %s: %s", path, what, strerror(errno));
        if (n <= 0)
            break;
        buf_add(ret, chunk, (size_t)n);
        if (ret->len - start > max) {
            rc =
                err_set(err, ERR_CONFIG, "%s: the %s is longer than %zu KiB; is it the right file?",
                        path, what, max / 1024);
            break;
        }
    }
    close(fd);
    return rc;
}

/* The first line of bytes[0..len-1] as a password. */
static int take_secret(const char *path, const char *bytes, size_t len, char **ret_secret,
                       struct err *err)
{
    const char *newline = memchr(bytes, '\n', len);
    size_t line = newline ? (size_t)(newline - bytes) : len;
    if (!newline && len == SECRET_MAX)
        return err_set(
            err, ERR_CONFIG,
            "%s: the first line of the password file is longer than %d bytes; is it the right file?",
            path, SECRET_MAX - 1);
    if (line > 0 && bytes[line - 1] == '\r')
        line--;
    if (line == 0)
        return err_set(err, ERR_CONFIG,
                       "%s: the first line of the password file is empty; write the password there",
                       path);
    if (memchr(bytes, '\0', line))
        return err_set(err, ERR_CONFIG,
                       "%s: the password contains a NUL byte; is it the right file?", path);
    *ret_secret = mem_dup(bytes, line);
    return 0;
}

int conf_file_read_secret(const char *path, char **ret_secret, struct err *err)
{
    static const struct demands d = {"password file", S_IRWXG | S_IRWXO, true, "read or change",
                                     "600"};
    int fd = open_checked(path, &d, err);
    if (fd < 0)
        return fd;
    char bytes[SECRET_MAX];
    size_t len = 0;
    ssize_t n = 0;
    while (len < sizeof bytes &&
           ((n = read(fd, bytes + len, sizeof bytes - len)) > 0 || (n < 0 && errno == EINTR)))
        len += n > 0 ? (size_t)n : 0;
    int rc;
    if (n < 0)
        rc = err_set(err, ERR_CONFIG, "%s: cannot read the password file: %s", path,
                     strerror(errno));
    else
        rc = take_secret(path, bytes, len, ret_secret, err);
    explicit_bzero(bytes, sizeof bytes);
    close(fd);
    return rc;
}

void conf_file_wipe_secret(char *secret)
{
    if (!secret)
        return;
    explicit_bzero(secret, strlen(secret));
    free(secret);
}

char *conf_file_absolute(const char *path)
{
    char cwd[PATH_MAX];
    if (path[0] == '/' || !getcwd(cwd, sizeof cwd))
        return mem_strdup(path);
    return conf_file_resolve(cwd, path);
}

char *conf_file_directory(const char *absolute)
{
    const char *slash = strrchr(absolute, '/');
    if (!slash)
        return mem_strdup(".");
    return slash == absolute ? mem_strdup("/") : mem_dup(absolute, (size_t)(slash - absolute));
}

char *conf_file_resolve(const char *dir, const char *path)
{
    if (path[0] == '/')
        return mem_strdup(path);
    while (path[0] == '.' && path[1] == '/')
        for (path += 2; *path == '/';)
            path++;
    if (path[0] == '\0' || strcmp(path, ".") == 0)
        return mem_strdup(dir);
    return mem_printf("%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/", path);
}

char *conf_file_find(const char *explicit_path, struct err *err)
{
    /* an unset variable in a script must not mean another file */
    if (explicit_path && *explicit_path == '\0') {
        err_set(err, ERR_CONFIG,
                "the name of the configuration file is empty; give one or leave the option out");
        return NULL;
    }
    const char *named = explicit_path ? explicit_path : getenv("DQ_CONFIG");
    if (named && *named != '\0')
        return mem_strdup(named);
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    MEM_LOCAL char *own = NULL;
    struct stat st;
    if (xdg && *xdg == '/') /* the XDG specification: relative ones are ignored */
        own = mem_printf("%s/dq/dq.ini", xdg);
    else if (home && *home == '/')
        own = mem_printf("%s/.config/dq/dq.ini", home);
    if (own && stat(own, &st) == 0)
        return mem_strdup(own);
    if (stat(SYSTEM_FILE, &st) != 0 && errno == ENOENT) {
        err_set(err, ERR_CONFIG,
                "no configuration: there is neither %s%s" SYSTEM_FILE
                "; name one with --config FILE or $DQ_CONFIG",
                own ? own : "", own ? " nor " : "$HOME/.config/dq/dq.ini nor ");
        return NULL;
    }
    return mem_strdup(SYSTEM_FILE);
}
