/*
 * progress.h - a line on stderr that shows progress; nothing if stderr is not a terminal.
 */
#ifndef DQ_CLI_SHOW_PROGRESS_H
#define DQ_CLI_SHOW_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool on;
    const char *what; /* "lines" */
    int64_t started_at, shown_at;
};
void progress_init(struct progress *p, bool quiet, const char *what);
/* count things are done, which is `fraction` of all (0..1; negative: not known). Redraws at most
 * ten times a second. */
void progress_show(struct progress *p, uint64_t count, double fraction);
/* The same for work of several kinds: shows the current one instead of a count. Always redraws. */
void progress_phase(struct progress *p, const char *what, double fraction);
/* The same for tasks that are counted (struct tag_count_how); arg: a struct progress. */
void progress_counting(double fraction, void *arg);
void progress_clear(struct progress *p); /* before anything else goes to stderr */
int64_t progress_elapsed_ms(const struct progress *p);

#endif
