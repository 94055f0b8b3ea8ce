/*
 * poke.h - waking the dqd of this host, so that what has just become due need not wait for their next look.
 *
 * Each dqd that stays has a datagram socket in one directory ([dqd] wake_dir), named after its database. A datagram says "look now"
 * and nothing else: its content is not read, and a dqd that misses it looks a poll_interval later at most.
 */
#ifndef DQ_BASE_POKE_H
#define DQ_BASE_POKE_H

#define POKE_PREFIX_SIZE 24

/* "wake.<hash of the database's name>.", which the names of the sockets begin with. Returns buf. */
const char *poke_prefix(char buf[POKE_PREFIX_SIZE], const char *database);

/* Sends an empty datagram to every dqd of the database. dir "": nothing. Never blocks; that there is no such directory, nobody
 * there or no room in a queue is as good as success. */
void poke_send(const char *dir, const char *database);

#endif
