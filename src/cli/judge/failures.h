/*
 * failures.h - failed attempts in groups: those of a tag whose errors differ only in numbers, ids
 * and quoted words (base/pattern.h). Pure.
 */
#ifndef DQ_CLI_JUDGE_FAILURES_H
#define DQ_CLI_JUDGE_FAILURES_H

#include "base/index.h"
#include "cli/judge/seen.h"
#include "store/ask/failure_list.h"

#include <stdint.h>

/* Failures that are read without --exact: the newest for some time, and the oldest. */
#define FAILURES_NEWEST 200000
#define FAILURES_OLDEST 1000
#define FAILURES_NEWEST_MS 700

struct failures_group {
    char *tag;
    const char *pattern; /* a glob that matches the errors; behind the tag, in the same memory */
    uint64_t failures;   /* attempts */
    uint64_t failed;     /* tasks whose last failure was one of these, and that have failed */
    uint64_t retrying;   /* the same, that are pending or running */
    int64_t first_at, last_at;
    uint64_t id; /* of the task that failed so last */
};

struct failures {
    struct failures_group *items;
    size_t count, cap;
    struct index index; /* of the items, by tag and pattern */
    struct seen tasks;  /* ids */
};
/* Initialize with {0}. Of each task the newest failure must be added before its others. failures: a
 * struct failures; failure_list calls it. */
void failures_add(const struct failure *x, void *failures);
void failures_sort(struct failures *f); /* the most frequent first; none is added afterwards */
/* Whether the pattern of a group has text of its own and matches no error of another group whose
 * tag matches. False also if there are too many groups to tell. g: one of the items. */
bool failures_alone(const struct failures *f, const struct failures_group *g, const char *tag_glob);
void failures_done(struct failures *f);

#endif
