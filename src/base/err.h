/*
 * err.h - how a function reports an error.
 *
 * Every function that can fail returns 0 (or a count) on success and one of the negative codes
 * below on failure, and then fills the struct err that is its last argument. The text is one line,
 * without a newline, that can be shown to the operator as it is: what happened, to what, and what
 * to do next. It never contains a password or a task's body. Only programs print it.
 */
#ifndef DQ_BASE_ERR_H
#define DQ_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>

enum err_code {
    ERR_NONE = 0,
    ERR_NOT_FOUND = -1, /* no such thing, or nothing matched */
    ERR_STATE = -2,     /* it exists, but not in a state that allows this */
    ERR_USAGE = -3,     /* the command line is wrong */
    ERR_DATA = -4,      /* input data is malformed, too long, or refused by the server as such */
    /* no connection could be made (absent, refused, too many connections, read-only server) */
    ERR_UNAVAILABLE = -5,
    /* the connection broke; the outcome of a write that was under way is unknown */
    ERR_LOST = -6,
    /* deadlock, changed record: rolled back; the host is short of processes, files or memory: the
     * same call may succeed now */
    ERR_TRANSIENT = -7,
    ERR_DUPLICATE = -8, /* a unique key is taken */
    ERR_DENIED = -9,    /* wrong password or missing privilege */
    /* configuration or handlers file, unknown database, schema missing or of another version */
    ERR_CONFIG = -10,
    ERR_BUSY = -11,   /* another one is doing this now (lock held) */
    ERR_SYSTEM = -12, /* the operating system refused something */
    ERR_FATAL = -13,  /* anything else: a bug, or an unexpected server error */
    /* a row or a table is locked by another session: rolled back; that may last */
    ERR_LOCKED = -14,
};

struct err {
    int code;       /* one of enum err_code; 0 when nothing was set */
    char text[512]; /* NUL-terminated; cut with "..." when too long */
};

/* Sets code and text, returns code, so that callers write `return err_set(err, ERR_DATA, "...")`.
 * err may be NULL. What a terminal would act on, and what is no UTF-8, is replaced by '?'. An
 * argument may be err->text: err_set(err, err->code, "%s; ...", err->text) puts more behind it. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The analyzer does not look into functions with "...": to it, any code might come back. */
#ifdef __clang_analyzer__
#define err_set(err, code, ...) (err_set(err, code, __VA_ARGS__), code)
#endif
int err_vset(struct err *err, int code, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* ERR_TRANSIENT if this errno is a shortage of the host, of processes, files or memory, else
 * ERR_SYSTEM. */
int err_system(int error);
/* Puts "prefix: " before a text that is already set; keeps and returns its code (ERR_FATAL if err
 * is NULL). */
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Whether a read that failed with this code may succeed a moment later: the database was away, or
 * other sessions were in the way. */
bool err_may_pass(int code);

/* The exit status that a program ends with for a code: 0, 1 (not found, state), 64 usage, 65 data
 * and duplicate, 69 unavailable and lost, 70 fatal, 71 system, 75 transient and busy, 77 denied, 78
 * config. These are the numbers of sysexits(3). */
int err_exit_status(int code);

#endif
