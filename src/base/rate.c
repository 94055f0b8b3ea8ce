/*
 * rate.c - see rate.h. The cases are in test/data/rates.tbl.
 *
 * Invariant: the distance of starts is rounded up to a microsecond, so no start comes early. With
 * the bounds of rate.h, nothing overflows.
 */
#include "base/rate.h"

#include "base/duration.h"
#include "base/when.h"

#include <ctype.h>
#include <inttypes.h>
#include <sys/param.h>

#define PERIOD_MAX_MS (31 * WHEN_DAY)
#define BURST_MAX_MS (366 * WHEN_DAY)
static const char hint[] = "like 100/m, 5/s or 1/10s";

int64_t rate_slot_us(const struct rate *r)
{
    return (r->period_ms * 1000 + r->count - 1) / r->count;
}

int64_t rate_most_us(const struct rate *r)
{
    return RATE_RESERVED_US + r->burst * rate_slot_us(r);
}

/* How much earlier than evenly a start may be. */
static int64_t early(const struct rate *r)
{
    return (r->burst - 1) * rate_slot_us(r);
}

bool rate_set_back(const struct rate *r, int64_t next_us, int64_t now_us)
{
    return next_us > now_us + RATE_HORIZON_US + r->burst * rate_slot_us(r);
}

/* What next_us means now. */
static int64_t base(const struct rate *r, int64_t next_us, int64_t now_us)
{
    return rate_set_back(r, next_us, now_us) ? now_us + early(r) : MAX(next_us, now_us);
}

int64_t rate_first(const struct rate *r, int64_t next_us, int64_t now_us)
{
    return MAX(now_us, base(r, next_us, now_us) - early(r));
}

int64_t rate_since(const struct rate *r, int64_t next_us, int64_t now_us)
{
    bool known = next_us != INT64_MIN && !rate_set_back(r, next_us, now_us);

    return known ? next_us - early(r) : INT64_MIN;
}

uint64_t rate_may(const struct rate *r, int64_t next_us, int64_t now_us, int64_t horizon_us)
{
    int64_t until_us = MIN(horizon_us, now_us + RATE_HORIZON_US) + early(r);
    int64_t ahead = until_us - base(r, next_us, now_us);

    return ahead < 0 ? 0 : (uint64_t)(ahead / rate_slot_us(r)) + 1;
}

int64_t rate_take(const struct rate *r, int64_t next_us, int64_t now_us, int64_t *starts, size_t n)
{
    int64_t first = base(r, next_us, now_us);

    for (size_t i = 0; i < n; i++)
        starts[i] = MAX(now_us, first + (int64_t)i * rate_slot_us(r) - early(r));
    return first + (int64_t)n * rate_slot_us(r);
}

int rate_parse(const char *text, struct rate *ret, struct err *err)
{
    struct scan s = {"rate", text, text, err};
    int64_t period_ms;
    uint32_t count = 0;

    if (!isdigit((unsigned char)*s.p))
        return scan_fault(&s, s.p, hint, "a number is missing");
    for (; isdigit((unsigned char)*s.p); s.p++)
        count = count <= RATE_COUNT_MAX ? count * 10 + (uint32_t)(*s.p - '0') : count;
    if (count > RATE_COUNT_MAX)
        return scan_fault(&s, text, NULL, "at most %d starts", RATE_COUNT_MAX);
    if (!count && (!*s.p || *s.p == '/'))
        return scan_fault(&s, NULL, "use dq pause", "a rate of 0 lets nothing start");
    const char *period = s.p + 1;
    if (*s.p++ != '/')
        return scan_fault(&s, s.p - 1, hint, "\"/\" and a period are missing");
    if (isdigit((unsigned char)*s.p) ? duration_scan(&s, &period_ms, NULL)
                                     : duration_scan_unit(&s, &period_ms))
        return ERR_DATA;
    if (*s.p)
        return scan_fault(&s, s.p, NULL, "unexpected \"%c\"", *s.p);
    if (period_ms < 1 || period_ms > PERIOD_MAX_MS)
        return scan_fault(&s, period, NULL, "a period goes from 1ms to 31d");
    *ret = (struct rate){count, period_ms, 1};
    return 0;
}

int rate_set_burst(struct rate *r, int64_t burst, struct err *err)
{
    if (burst < 1 || burst > RATE_COUNT_MAX)
        return err_set(err, ERR_DATA, "burst %" PRId64 " is out of range: 1 to %d", burst,
                       RATE_COUNT_MAX);
    if (burst * rate_slot_us(r) > BURST_MAX_MS * 1000)
        return err_set(err, ERR_DATA, "burst %" PRId64 ": at this rate, it takes more than a year",
                       burst);
    r->burst = (uint32_t)burst;
    return 0;
}

int rate_check(const struct rate *r, struct err *err)
{
    struct rate copy = *r;

    if (r->count < 1 || r->count > RATE_COUNT_MAX || r->period_ms < 1 ||
        r->period_ms > PERIOD_MAX_MS)
        return err_set(err, ERR_DATA,
                       "rate of %" PRIu32 " in %" PRId64 " ms: counts go from 1 to %d, "
                       "periods from 1 ms to 31 d",
                       r->count, r->period_ms, RATE_COUNT_MAX);
    return rate_set_burst(&copy, r->burst, err);
}

void rate_put(struct buf *b, const struct rate *r)
{
    char text[WHEN_TEXT_SIZE];

    when_format_duration(text, r->period_ms);
    bool unit = *text == '1' && isalpha((unsigned char)text[1]); /* 1m, but not 1m30s */
    for (const char *c = text + 1; *c; c++)
        unit = unit && !isdigit((unsigned char)*c);
    buf_printf(b, "%" PRIu32 "/%s", r->count, text + unit);
}
