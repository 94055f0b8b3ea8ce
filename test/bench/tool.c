/*
 * tool.c - see tool.h.
 */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

void tool_die(const char *fmt, ...)
{
    int number = errno;
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, number ? ": %s\n" : "\n", strerror(number));
    exit(1);
}

long tool_number(const char *text, const char *what)
{
    char *end;
    long n = text ? strtol(text, &end, 10) : -1;

    if (n < 0 || *end) {
        errno = 0;
        tool_die("%s: give a number", what);
    }
    return n;
}

static int64_t clock_us(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t tool_wall_us(void)
{
    return clock_us(CLOCK_REALTIME);
}

int64_t tool_steady_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

void tool_sleep_until(int64_t wall_us)
{
    struct timespec t = {.tv_sec = wall_us / 1000000, .tv_nsec = wall_us % 1000000 * 1000};

    while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

void tool_print_rate(long count, int64_t from_steady_us)
{
    printf("%.1f\n", (double)count * 1e6 / (double)(tool_steady_us() - from_steady_us));
}

pid_t tool_start(const char *command, int in_fd, int out_fd)
{
    char *shell[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    char *program[] = {(char *)command, NULL};
    char **argv = *command == '/' && !strchr(command, ' ') ? program : shell;
    posix_spawn_file_actions_t actions;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    if (in_fd >= 0)
        posix_spawn_file_actions_adddup2(&actions, in_fd, 0);
    if (out_fd >= 0) {
        posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
        posix_spawn_file_actions_adddup2(&actions, out_fd, 2);
    }
    errno = posix_spawn(&pid, argv == shell ? "/bin/sh" : command, &actions, NULL, argv, environ);
    if (errno)
        tool_die("posix_spawn");
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

int tool_body(const void *body, size_t size)
{
    int fd = memfd_create("body", MFD_CLOEXEC);

    if (fd < 0 || pwrite(fd, body, size, 0) != (ssize_t)size)
        tool_die("body");
    return fd;
}

void tool_run(const char *command, const void *body, size_t size)
{
    char output[4096];
    int in = tool_body(body, size), out[2], status;
    pid_t pid;

    if (pipe2(out, O_CLOEXEC) < 0)
        tool_die("pipe");
    pid = tool_start(command, in, out[1]);
    close(in);
    close(out[1]);
    while (read(out[0], output, sizeof output) > 0)
        ;
    close(out[0]);
    if (waitpid(pid, &status, 0) != pid || status != 0) {
        errno = 0;
        tool_die("%s: wait status %d", command, status);
    }
}

void tool_crew(long count, long tasks, void *(*begin)(void), void (*work)(void *arg))
{
    struct shared {
        _Atomic long ready, done;
    } *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t *crew = calloc((size_t)count, sizeof *crew);
    int64_t from;

    if (shared == MAP_FAILED || !crew)
        tool_die("memory");
    for (long i = 0; i < count; i++) {
        crew[i] = fork();
        if (crew[i] != 0)
            continue;
        void *arg = begin();
        shared->ready++;
        for (;; shared->done++)
            work(arg);
    }
    while (shared->ready < count)
        usleep(100);
    from = tool_steady_us();
    while (shared->done < tasks) {
        usleep(500);
        if (waitpid(-1, NULL, WNOHANG) > 0)
            tool_die("a worker ended early");
    }
    tool_print_rate(tasks, from);
    for (long i = 0; i < count; i++)
        kill(crew[i], SIGKILL);
    while (wait(NULL) > 0)
        ;
    free(crew);
}
