/*
 * verdict.h - one line of a batch handler's stdout:
 * {"id":1,"result":"done|retry|fail","after":"10m","error":"..."}
 */
#ifndef DQ_RUNNER_VERDICT_H
#define DQ_RUNNER_VERDICT_H

#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum verdict_result { VERDICT_DONE, VERDICT_RETRY, VERDICT_FAIL };
struct verdict {
    uint64_t id;
    enum verdict_result result;
    int64_t after_ms;  /* -1: by the ladder */
    const char *error; /* NULL: none. Lives until the reader is used again */
};
/* 0, or ERR_DATA when the line is no verdict. `after` goes only with retry. */
int verdict_parse(struct json_reader *r, const char *line, size_t len, struct verdict *ret,
                  struct err *err) __attribute__((warn_unused_result));

/* Of a line that is no verdict: whether it was meant as one, which is to say, begins as an object
 * does. */
bool verdict_is_meant(const char *line, size_t len);
/* The next number that it calls an "id", from *at on, which moves behind it: quotes of either kind
 * and a fraction are overlooked. 0: there is none. */
uint64_t verdict_next_id(const char *line, size_t len, size_t *at);

#endif
