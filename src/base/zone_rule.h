/*
 * zone_rule.h - when clocks are changed every year, as POSIX writes it in TZ and RFC 8536 at the
 * end of a file of the time zone database: "CET-1CEST,M3.5.0,M10.5.0/3".
 */
#ifndef DQ_BASE_ZONE_RULE_H
#define DQ_BASE_ZONE_RULE_H

#include <stdbool.h>
#include <stdint.h>

/* A day of each year, and the time of that day by the clock that is changed. */
struct zone_rule_change {
    char kind; /* 'M': the week-th `day` (0: Sunday) of a month; 'J': day 1 to 365, never 29
                * February; '0': day 0 to 365 */
    int month, week, day;
    int64_t time_ms;
};

struct zone_rule {
    int64_t standard_ms, summer_ms; /* ahead of UTC */
    bool changes;                   /* there is a summer time: from `begin` to `end` */
    struct zone_rule_change begin, end;
};

/* False, with *ret undefined, for what is no such rule. */
bool zone_rule_parse(const char *text, struct zone_rule *ret) __attribute__((warn_unused_result));
/* How far the clock is ahead of UTC at an instant, in ms. */
int64_t zone_rule_offset(const struct zone_rule *r, int64_t at);
/* The first instant after `at` at which a change falls due; INT64_MAX: none. */
int64_t zone_rule_next_change(const struct zone_rule *r, int64_t at);

#endif
