/*
 * zone_names.h - what the host's time zone database says about itself, in its file tzdata.zi: its
 * version and the names of its zones.
 */
#ifndef DQ_BASE_ZONE_NAMES_H
#define DQ_BASE_ZONE_NAMES_H

#include "base/buf.h"
#include "base/err.h"

struct zone;

/* Loads the zone of that name; "UTC" needs no file and is NULL. ERR_DATA: it is unknown, in one
 * line that names the nearest one; or it is "localtime". */
int zone_names_load(const char *name, struct zone **ret, struct err *err)
    __attribute__((warn_unused_result));

/* "2026a"; "" if the database does not say. Reads a file at each call; valid until the next one. */
const char *zone_names_version(void);

#endif
