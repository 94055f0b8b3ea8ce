/*
 * wake_file.c - see wake_file.h. Invariant: a prefix is shorter than its buffer, whatever the name
 * of the database.
 */
#include "wake/wake_file.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *wake_file_prefix(char buf[WAKE_FILE_PREFIX_SIZE], const char *database)
{
    snprintf(buf, WAKE_FILE_PREFIX_SIZE, "wake.%016" PRIx64 ".",
             text_hash(TEXT_HASH_INIT, database, strlen(database)));
    return buf;
}
