/*
 * infile.h - a file or stdin, line by line, in memory bounded by its longest line.
 */
#ifndef DQ_CLI_LINE_INFILE_H
#define DQ_CLI_LINE_INFILE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes of a line that a person or a program wrote. */
#define INFILE_LINE_MAX ((uint64_t)64 << 20)

struct infile {
    const char *name; /* for messages: the path, or "standard input" */
    int fd;
    struct buf data;
    size_t start, scanned; /* data: the unread part, and how far of it holds no newline */
    uint64_t number;       /* of the line that was returned last, from 1 */
    uint64_t bytes;        /* consumed so far */
    uint64_t size;         /* of the file; 0: it is not one, or empty */
    uint64_t line_max;     /* bytes */
    off_t origin;          /* of the first line in the file, or in data if that is kept */
    bool ended;
};
/* path "-" is stdin. A line longer than line_max bytes is an error when it is read. ERR_DATA if the
 * file cannot be read. infile_done is fine after a failure. */
int infile_open(struct infile *l, const char *path, uint64_t line_max, struct err *err)
    __attribute__((warn_unused_result));
void infile_done(struct infile *l);
/* The next line without its newline: 1, 0 at the end, ERR_DATA, or ERR_TRANSIENT after an interrupt
 * that is caught (interrupt.h), also while it waits for input. Valid until the next call. A byte
 * order mark at the beginning is dropped. */
int infile_next(struct infile *l, const char **ret_line, size_t *ret_len, struct err *err)
    __attribute__((warn_unused_result));
/* Reads what is no file into memory, all of it. */
int infile_keep(struct infile *l, struct err *err) __attribute__((warn_unused_result));
/* Begins again at the first line; only for a file (size), or after infile_keep. */
int infile_rewind(struct infile *l, struct err *err) __attribute__((warn_unused_result));

#endif
