/*
 * runner_rig.h - a runner to be driven by tests: handlers written as YAML, jobs sent, reports kept.
 */
#ifndef DQ_TEST_RUNNER_RIG_H
#define DQ_TEST_RUNNER_RIG_H

#include "conf/handlers.h"
#include "runner/link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A report, with copies of what it points to (NUL-terminated). */
struct rig_report {
    struct message m;
    char *error, *output; /* NULL: none; output: of a RESULT or CHUNK */
};

struct rig {
    struct link *link;
    struct handlers *handlers;
    char dir[64]; /* of this rig alone; removed at the end */
    struct rig_report *reports;
    size_t count;
    uint32_t jobs; /* sent so far */
};

/* Starts a runner. "@DIR@" in yaml stands for the rig's directory. The process is ended by SIGALRM
 * after ten minutes: a test that waits for what never comes fails. */
void rig_open(struct rig *r, const char *yaml, int slots);
void rig_close(struct rig *r);
void rig_write_handlers(const struct rig *r, const char *yaml);
char *rig_path(const struct rig *r, const char *name); /* in a static buffer */

/* Fills a job of one task for a tag, due and with a lease of an hour; its id is new, stdin
 * is empty. */
void rig_fill(struct rig *r, struct message_job *j, const char *tag);
uint32_t rig_put(struct rig *r, const struct message_job *j); /* not flushed; its number */
uint32_t rig_send(struct rig *r, const char *tag);            /* its number */
uint32_t rig_send_body(struct rig *r, const char *tag, const void *body, size_t len);
/* In the message, or, if it is long, in a descriptor. */
void rig_input(struct message_job *j, const void *p, size_t len);
int rig_memfd(const void *body, size_t len);
void rig_flush(struct rig *r);

/* Takes reports until there is one of this type, of this job; returns it. Pointers are valid until
 * the next wait. */
const struct rig_report *rig_wait(struct rig *r, enum message_type type, uint32_t job);
/* waits for ENDED; the last RESULT */
const struct rig_report *rig_end(struct rig *r, uint32_t job);
/* the first so far, or NULL */
const struct rig_report *rig_find(const struct rig *r, enum message_type type, uint32_t job);
size_t rig_count(const struct rig *r, enum message_type type);
void rig_ping(struct rig *r); /* until all that was sent has been dealt with */

/* Waits, while reports are taken, until the file exists and ends in a newline; its text, to be
 * freed. */
char *rig_read_file(struct rig *r, const char *name);
/* until there is no such process, or a zombie of somebody else */
void rig_until_gone(struct rig *r, pid_t pid);
bool rig_alive(pid_t pid);
/* How many entries a directory of the runner's in /proc has: "fd", "task". */
size_t rig_count_proc(const struct rig *r, const char *name);
/* Until nothing of the session lives, at most a minute; whether so. */
bool rig_session_ends(struct rig *r, pid_t session);

#endif
