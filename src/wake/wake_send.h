/*
 * wake_send.h - wakes the dqd of this host when something has just become due.
 *
 * Every resident dqd has a file of one byte in one directory ([dqd] wake_dir). The name of the file
 * begins with a hash of the database's name. To wake these dqd, dq opens their files and closes
 * them again; inotify(7) reports that to each of them. A wake-up says "look now" and nothing else:
 * a dqd that misses one looks a poll_interval later at most. If dq also reads a file, it says "look
 * at schedules and limits, too".
 */
#ifndef DQ_WAKE_WAKE_SEND_H
#define DQ_WAKE_WAKE_SEND_H

#include <stdbool.h>

/* Wakes every dqd of this host that serves the database and has its file in dir; dir "" wakes none.
 * rules: schedules or limits have changed.
 * Never blocks and writes nothing anywhere. A missing directory, or one without such files, is no
 * error: then nobody is to be woken. */
void wake_send(const char *dir, const char *database, bool rules);

/* ---- what the listener has to know, too */

#define WAKE_FILE_PREFIX_SIZE 24
/* No more are looked at: other accounts may be able to fill the directory. */
#define WAKE_ENTRIES_MAX 4096
/* The names of a database's files begin with this: "wake.<hash of the database's name>.". Returns
 * buf. */
const char *wake_file_prefix(char buf[WAKE_FILE_PREFIX_SIZE], const char *database);

#endif
