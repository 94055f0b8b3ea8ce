/*
 * env.h - the environment of a handler's process.
 */
#ifndef DQ_RUNNER_ENV_H
#define DQ_RUNNER_ENV_H

#include "base/buf.h"

#include <stddef.h>

struct job;
struct setup;

/* The memory of an environment. Zero it before the first use; it is never freed. */
struct env_room {
    struct buf text;
    char **vars;
    size_t cap;
};

/* The environment of this job's process, or of one without a job (NULL), valid until the next call
 * with the same room. */
char *const *env_make(struct env_room *room, const struct job *j, const struct setup *setup);

#endif
