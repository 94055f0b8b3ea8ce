/*
 * when_parse.c - see when_parse.h. Invariant: a text is read exactly or refused.
 */
#include "base/mem.h"
#include "base/when_parse.h"

#include "base/duration.h"
#include "base/moment.h"
#include "base/moment_resolve.h"
#include "base/when.h"

int when_parse_duration(const char *text, int64_t *ret_ms, struct err *err)
{
    struct scan s = {"duration", text, text, err};
    return duration_scan(&s, ret_ms, NULL);
}

static int parse(const char *text, bool past, int64_t now_at, int64_t *ret_at, struct err *err)
{
    struct scan s = {"time", text, text, err};
    LOCAL_BY(moment_done) struct moment m = {0};
    int64_t at = 0;

    int rc = moment_scan(&s, past, &m);
    if (rc == 0)
        rc = moment_resolve(&m, &s, now_at, &at);
    if (rc < 0)
        return rc;
    if (at < WHEN_AT_MIN || at > WHEN_AT_MAX)
        return scan_fault(&s, NULL, NULL, "out of range: years go from 1000 to 9999");
    *ret_at = at;
    return 0;
}

int when_parse_instant(const char *text, int64_t now_at, int64_t *ret_at, struct err *err)
{
    return parse(text, false, now_at, ret_at, err);
}

int when_parse_past(const char *text, int64_t now_at, int64_t *ret_at, struct err *err)
{
    return parse(text, true, now_at, ret_at, err);
}

int when_parse_check(const char *text, bool past, struct err *err)
{
    struct scan s = {"time", text, text, err};
    LOCAL_BY(moment_done) struct moment m = {0};

    return moment_scan(&s, past, &m);
}

int when_parse_sql(const char *text, int64_t *ret_at, struct err *err)
{
    struct scan s = {"time", text, text, NULL};
    struct civil c = {0};
    int64_t clock = 0;

    if (moment_scan_date(&s, 0, &c) || *s.p++ != ' ' || moment_scan_clock(&s, &clock) || *s.p)
        return err_set(err, ERR_FATAL, "the server sent an invalid time: \"%.40s\"", text);
    *ret_at = civil_to_days(&c) * WHEN_DAY + clock;
    return 0;
}
