/*
 * zone.c - see zone.h. Invariant: every index into a zone's file has been checked by zone_new.
 */
#include "base/zone.h"

#include "base/civil.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"
#include "base/zone_rule.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#define DATABASE "/usr/share/zoneinfo"
#define NAME_MAX_LENGTH 64
#define FILE_MAX ((size_t)64 << 10) /* the largest has 4 KB */
#define HEADER 44
#define TYPE 6 /* bytes of a type: offset (4), summer time, name */

struct zone {
    unsigned char *file;
    uint64_t digest;
    /* in the file: instants of changes (8 bytes each), the type that each leads to, the types */
    const unsigned char *changes, *leads_to, *types;
    size_t change_count;
    bool has_rule; /* for instants behind the last change */
    struct zone_rule rule;
};

/* ---- the file */

static uint32_t get_u32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t get_seconds(const unsigned char *p)
{
    return (int64_t)((uint64_t)get_u32(p) << 32 | get_u32(p + 4));
}

/* The numbers of a header. */
struct header {
    size_t is_ut, is_std, leaps, changes, types, chars;
};

/* Reads a header at p. time_size: of an instant in the block behind it, whose length is
 * *ret_size. */
static bool read_header(const unsigned char *p, size_t len, size_t time_size, struct header *ret,
                        size_t *ret_size)
{
    if (len < HEADER || memcmp(p, "TZif", 4) != 0)
        return false;
    *ret = (struct header){get_u32(p + 20), get_u32(p + 24), get_u32(p + 28),
                           get_u32(p + 32), get_u32(p + 36), get_u32(p + 40)};
    *ret_size = ret->changes * (time_size + 1) + ret->types * TYPE + ret->chars +
                ret->leaps * (time_size + 4) + ret->is_std + ret->is_ut;
    return true;
}

/* The line behind the second block: "\nCET-1CEST,M3.5.0,M10.5.0/3\n". */
static bool read_rule(struct zone *z, const unsigned char *p, size_t len)
{
    char text[128];
    const unsigned char *end = len > 1 && *p == '\n' ? memchr(p + 1, '\n', len - 1) : NULL;
    size_t size = end ? (size_t)(end - p - 1) : 0;

    if (!end || size >= sizeof text)
        return false;
    memcpy(text, p + 1, size);
    text[size] = '\0';
    z->has_rule = size > 0;
    return !z->has_rule || zone_rule_parse(text, &z->rule);
}

/* Files of version 2 and later, without leap seconds: others are not in use. */
static bool read_zone(struct zone *z, size_t len)
{
    struct header h;
    size_t first, second;
    const unsigned char *p = z->file;

    if (!read_header(p, len, 4, &h, &first) || p[4] < '2' || len - HEADER < first)
        return false;
    p += HEADER + first;
    len -= HEADER + first;
    if (!read_header(p, len, 8, &h, &second) || len - HEADER < second || !h.types || h.leaps)
        return false;
    z->changes = p + HEADER;
    z->change_count = h.changes;
    z->leads_to = z->changes + h.changes * 8;
    z->types = z->leads_to + h.changes;
    for (size_t i = 0; i < h.changes; i++)
        if (z->leads_to[i] >= h.types)
            return false;
    return read_rule(z, p + HEADER + second, len - HEADER - second);
}

static bool is_name(const char *name, size_t len)
{
    if (!len || len > NAME_MAX_LENGTH || name[0] == '/')
        return false;
    for (size_t i = 0; i < len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-/", name[i]))
            return false;
    return true;
}

const char *zone_database(void)
{
    const char *dir = getenv("TZDIR");
    return dir && *dir ? dir : DATABASE;
}

/* Up to FILE_MAX bytes. */
static size_t read_file(const char *path, unsigned char *bytes)
{
    size_t len = 0;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return 0;
    while (len < FILE_MAX && (n = read(fd, bytes + len, FILE_MAX - len)) > 0)
        len += (size_t)n;
    close(fd);
    return len;
}

struct zone *zone_new(const char *name, size_t len)
{
    if (!is_name(name, len))
        return NULL;
    MEM_LOCAL char *path = mem_printf("%s/%.*s", zone_database(), (int)len, name);
    struct zone *z = mem_zero(1, sizeof *z);
    z->file = mem_alloc(FILE_MAX);
    size_t size = read_file(path, z->file);
    z->digest = text_hash(TEXT_HASH_INIT, z->file, size);
    if (!read_zone(z, size)) {
        zone_free(z);
        z = NULL;
    }
    return z;
}

void zone_free(struct zone *z)
{
    if (z)
        free(z->file);
    free(z);
}

/* What has digits may be a rule, "CET-1CEST", and no file. */
bool zone_local_is_known(void)
{
    const char *zone = getenv("TZ");
    bool file = zone && *zone == ':';
    char path[512];

    if (!zone || (!file && strpbrk(zone, "0123456789")) || !strcmp(zone, "UTC"))
        return true;
    zone += file;
    snprintf(path, sizeof path, "%s%s%s", *zone == '/' ? "" : zone_database(),
             *zone == '/' ? "" : "/", zone);
    return access(path, R_OK) == 0;
}

char *zone_local_name(void)
{
    static const char part[] = "zoneinfo/";
    char link[512];
    const char *name = getenv("TZ");

    if (name)
        name += *name == ':';
    else {
        ssize_t len = readlink("/etc/localtime", link, sizeof link - 1);
        link[MAX(len, 0)] = '\0';
        name = strstr(link, part) ? strstr(link, part) + strlen(part) : "";
    }
    const int64_t now_at = when_host_wall();
    struct zone *z = zone_new(name, strlen(name));
    bool utc = !zone_offset(NULL, now_at) && !zone_offset(NULL, now_at + 26 * WHEN_WEEK);
    zone_free(z);
    return z ? mem_strdup(name) : utc ? mem_strdup("UTC") : NULL;
}

/* ---- offsets */

/* How many changes of the file there are until then. */
static size_t changes_until(const struct zone *z, int64_t at)
{
    int64_t seconds = civil_floor_div(at, WHEN_SECOND);
    size_t low = 0, high = z->change_count; /* changes[low - 1] <= seconds < changes[high] */

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (get_seconds(z->changes + middle * 8) <= seconds)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t zone_offset(const struct zone *z, int64_t at)
{
    if (!z)
        return when_local_offset(at);
    size_t low = changes_until(z, at);
    if (low == z->change_count && z->has_rule)
        return zone_rule_offset(&z->rule, at);
    const unsigned char *type = z->types + (low ? z->leads_to[low - 1] : 0) * TYPE;
    return (int32_t)get_u32(type) * WHEN_SECOND;
}

int64_t zone_next_change(const struct zone *z, int64_t at)
{
    size_t i = changes_until(z, at);

    if (i == z->change_count)
        return z->has_rule ? zone_rule_next_change(&z->rule, at) : INT64_MAX;
    int64_t seconds = get_seconds(z->changes + i * 8);
    return seconds > WHEN_AT_MAX / WHEN_SECOND ? INT64_MAX : seconds * WHEN_SECOND;
}

uint64_t zone_digest(const struct zone *z)
{
    return z->digest;
}

int zone_readings(const struct zone *z, int64_t local, int64_t ret[2])
{
    /* No zone has ever been 16 hours away from UTC or changed twice within three days: at most one
     * change lies between. */
    int64_t before = zone_offset(z, local - 16 * WHEN_HOUR),
            after = zone_offset(z, local + 16 * WHEN_HOUR);
    int64_t by_before = local - before, by_after = local - after;

    if (before == after) {
        ret[0] = ret[1] = by_before;
        return 1;
    }
    bool holds_before = zone_offset(z, by_before) == before,
         holds_after = zone_offset(z, by_after) == after;
    if (holds_before != holds_after) {
        ret[0] = ret[1] = holds_before ? by_before : by_after;
        return 1;
    }
    ret[0] = before > after ? by_before : by_after;
    ret[1] = before > after ? by_after : by_before;
    return holds_before ? 2 : 0;
}
