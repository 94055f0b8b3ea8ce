/*
 * poke.h - waking the dqd of this host, so that what has just become due need not wait for their
 * next look.
 *
 * Each dqd that stays has an empty file in one directory ([dqd] wake_dir), named after its
 * database, and learns when somebody opens it (inotify(7)). That says "look now" and nothing else;
 * a dqd that misses it looks a poll_interval later at most.
 */
#ifndef DQ_BASE_POKE_H
#define DQ_BASE_POKE_H

#define POKE_PREFIX_SIZE 24

/* "wake.<hash of the database's name>.", which the names of the files begin with. Returns buf. */
const char *poke_prefix(char buf[POKE_PREFIX_SIZE], const char *database);

/* Wakes every dqd of the database. dir "": none. Never blocks, writes nothing anywhere; that there
 * is no such directory or nobody there is as good as success. */
void poke_send(const char *dir, const char *database);

#endif
