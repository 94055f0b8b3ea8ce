/*
 * verdict.h - one line of a handler's answer:
 * {"id":1,"result":"done|retry|fail|snooze","after":"10m","hold":"30s","error":"..."}
 */
#ifndef DQ_RUNNER_VERDICT_H
#define DQ_RUNNER_VERDICT_H

#include "base/err.h"
#include "base/json.h"
#include "base/when.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a handler may ask for: a longer wait is a mistake rather than a wish. */
#define VERDICT_AFTER_MOST_MS (366 * WHEN_DAY)
#define VERDICT_HOLD_MOST_MS WHEN_DAY
/* A shorter snooze is this long: as its attempt does not count, nothing else would end a loop. */
#define VERDICT_SNOOZE_LEAST_MS WHEN_SECOND

enum verdict_result { VERDICT_DONE, VERDICT_RETRY, VERDICT_FAIL, VERDICT_SNOOZE };
struct verdict {
    bool named;  /* it has an id */
    uint64_t id; /* 0: of a rehearsal without a task */
    enum verdict_result result;
    int64_t after_ms; /* -1: by the retry policy; not with snooze */
    /* retry with `hold` is a snooze, and nothing under the limit of the task starts for so long; 0
     */
    int64_t hold_ms;
    const char *error; /* NULL: none. Valid until the reader is used again */
};
/* 0, or ERR_DATA: the line is not a verdict. `after` is allowed with retry, needed with snooze. */
int verdict_parse(struct json_reader *r, const char *line, size_t len, struct verdict *ret,
                  struct err *err) __attribute__((warn_unused_result));

/* Whether a line that is not a verdict was meant as one: it begins as a JSON object does. */
bool verdict_is_meant(const char *line, size_t len);
/* The next number that the line calls an "id", searched from *at, which moves past it. Quotes of
 * either kind around it and a fraction are ignored. 0: there is none. */
uint64_t verdict_next_id(const char *line, size_t len, size_t *at);

#endif
