/*
 * zone.h - time zones: that of the process, and those of the host's time zone database by name.
 *
 * The C library knows one zone per process, and another one only by changing TZ for all threads.
 * Named zones are therefore read from the files of the database (RFC 8536).
 */
#ifndef DQ_BASE_ZONE_H
#define DQ_BASE_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zone; /* NULL stands for the zone of the process (TZ) */

/* Loads "Europe/Berlin" from $TZDIR, or /usr/share/zoneinfo. NULL: there is no such zone. */
struct zone *zone_new(const char *name, size_t len);
void zone_free(struct zone *z);

/* The name of the zone of the process: that of TZ, or of the file to which /etc/localtime links.
 * Heap memory. NULL: it has none, as a rule in TZ ("CET-1CEST"), and its clock is not UTC. */
char *zone_local_name(void);

/* Whether this host has the zone that TZ names. If not, the C library would take it for UTC. */
bool zone_local_is_known(void);

/* How far the zone's clock is ahead of UTC at an instant, in ms. */
int64_t zone_offset(const struct zone *z, int64_t at);

/* The first instant after `at` at which the offset may change; INT64_MAX: none. Of a named zone. */
int64_t zone_next_change(const struct zone *z, int64_t at);

/* Of the file of a named zone. */
uint64_t zone_digest(const struct zone *z);

/* The folder of the host's database. */
const char *zone_database(void);

/* The instants at which the zone's clock shows `local` (the instant at which UTC would), earliest
 * first. 1: ret[0] = ret[1]. 2: a clock set back shows it twice. 0: a clock set forward skips it;
 * ret is what it would be by the offsets before and after. */
int zone_readings(const struct zone *z, int64_t local, int64_t ret[2]);

#endif
