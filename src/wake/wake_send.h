/*
 * wake_send.h - wakes the dqd of this host when something has just become due.
 */
#ifndef DQ_WAKE_WAKE_SEND_H
#define DQ_WAKE_WAKE_SEND_H

/* Wakes every dqd of this host that serves the database and has its file in dir; dir "" wakes none.
 * Never blocks and writes nothing anywhere. A missing directory, or one without such files, is no
 * error: then nobody is to be woken. */
void wake_send(const char *dir, const char *database);

#endif
