/*
 * log.h - one line per event on stderr: `2026-11-20T10:00:00.123Z info dqd msg="task done" id=7
 * tag=mail.welcome ms=12`.
 *
 * Under systemd (JOURNAL_STREAM is set and stderr is that stream) the time is left out and the line
 * begins with `<6>`. Bodies and secrets are never logged.
 *
 * Nothing here waits for a reader of the log. If stderr is a pipe, socket or terminal that takes no
 * more, lines are lost; they are counted, and a line reports how many as soon as there is room
 * again.
 */
#ifndef DQ_BASE_LOG_H
#define DQ_BASE_LOG_H

/* syslog's numbers */
enum log_level { LOG_ERROR = 3, LOG_WARN = 4, LOG_NOTE = 5, LOG_INFO = 6, LOG_DEBUG = 7 };

/* Call this first. If descriptor 0, 1 or 2 is closed, the next file or socket that is opened would
 * take its place and get output that is meant for the terminal. This puts something there that
 * fails when it is used. */
void log_fill_descriptors(void);

/* Lines above `level` are dropped; `name` ("dqd", "dqd-runner") goes into each line. Reads the
 * environment once, and opens a descriptor (close-on-exec): a process that closes what it inherited
 * calls this afterwards. Before the first call a line may wait. */
void log_open(const char *name, int level);
void log_set_level(int level);
/* "error" "warn" "notice" "info" "debug"; -1: none of them */
int log_level_parse(const char *name);
int log_level(void);

/* Writes `msg="..."` and then fields, formatted like printf: log_event(LOG_INFO, "late", "id=%d
 * tag=%s", id, log_quote(tag)). One write(2) per line; a line is cut at 2,000 bytes. Never blocks,
 * unless stderr is a file on a file system that does. errno is kept. No fields: "%s", "". */
void log_event(int level, const char *msg, const char *fields, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports lines that were lost, if there are any and stderr takes lines again. For loops: it costs
 * nothing otherwise. */
void log_catch_up(void);

/* A line for people, without time and level: the last words of a program. Does not wait either; it
 * is lost if there is no room. */
void log_say(const char *text);

/* text as a field value: unchanged if it is plain, else quoted and escaped; cut at 200 bytes. The
 * result is text or lives in a ring of eight static buffers. NULL gives "-". */
const char *log_quote(const char *text);

#endif
