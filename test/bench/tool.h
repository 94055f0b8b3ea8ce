/*
 * tool.h - what the programs of the benchmark share.
 */
#ifndef DQ_BENCH_TOOL_H
#define DQ_BENCH_TOOL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* with the text of errno, if any */
_Noreturn void tool_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* a whole number >= 0, or it dies */
long tool_number(const char *text, const char *what);
/* CLOCK_REALTIME: comparable between processes, as planned instants are */
int64_t tool_wall_us(void);
int64_t tool_steady_us(void); /* CLOCK_MONOTONIC: for rates */
void tool_sleep_until(int64_t wall_us);
void tool_print_rate(long count, int64_t from_steady_us); /* "1234.5" a second, and a newline */

/* Starts `sh -c command`, or the program if it is nothing but its path; in_fd and out_fd become its
 * stdin, and stdout with stderr; -1: as ours. */
pid_t tool_start(const char *command, int in_fd, int out_fd);
/* A file with this text, to be a stdin. */
int tool_body(const void *body, size_t size);
/* One handler as a careful worker runs it: body on stdin, output read to its end, waited for. */
void tool_run(const char *command, const void *body, size_t size);

/* Forks `count` workers that call work(arg) for ever, each call being one task done, until `tasks`
 * tasks are done by all of them; begin() makes arg in each worker. Prints the rate. */
void tool_crew(long count, long tasks, void *(*begin)(void), void (*work)(void *arg));

#endif
