/*
 * preload.c - a library for LD_PRELOAD that makes one call of a process fail, or kills the process
 * at it, or shifts its clock.
 *
 *   DQ_FAULT=NAME:CALL:N:WHAT   in the process of that name (dq, dqd, dqd-runner) the Nth call of
 * CALL (any: of all of these) fails with the error number WHAT, or kills the process (WHAT = kill;
 * late-kill: 50 ms later), or sends it a HUP and works (WHAT = hup) DQ_FAULT_LOG=FILE gets one line
 * when that has happened DQ_FAULT_CLOCK_MS=N         the wall clock is off by so much
 *
 * Memory is refused to the program only: the client library, and the C library in its rarer
 * corners, do not look whether they got it.
 *
 * Invariant: without a match every call does what it always does.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);

static char fault_name[32], fault_call[32];
static long fault_at, fault_seen, clock_ms;
static int fault_error; /* 0: kill */
static bool armed, late, hup;
static uintptr_t program_first, program_end; /* where the program itself lies */

static int note_program(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    program_first = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && end > program_end)
            program_end = end;
    }
    return 1; /* it comes first */
}

__attribute__((constructor)) static void read_orders(void)
{
    const char *order = getenv("DQ_FAULT"), *shift = getenv("DQ_FAULT_CLOCK_MS");
    char what[16];

    clock_ms = shift ? atol(shift) : 0;
    if (!order ||
        sscanf(order, "%31[^:]:%31[^:]:%ld:%15s", fault_name, fault_call, &fault_at, what) != 4)
        return;
    late = strcmp(what, "late-kill") == 0;
    hup = strcmp(what, "hup") == 0;
    fault_error = atoi(what);
    dl_iterate_phdr(note_program, NULL);
    armed = true;
}

/* Only system calls from here on: the caller may be malloc. */
static void say(const char *call)
{
    const char *path = getenv("DQ_FAULT_LOG");
    long fd =
        path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)
             : -1;

    if (fd < 0)
        return;
    syscall(SYS_write, fd, call, strlen(call));
    syscall(SYS_write, fd, "\n", 1L);
    syscall(SYS_close, fd);
}

/* Whether this call is the one; errno is set then. */
static bool hit(const char *call)
{
    char name[17] = "";

    if (!armed || (strcmp(fault_call, "any") != 0 && strcmp(fault_call, call) != 0))
        return false;
    prctl(PR_GET_NAME, name);
    if (strcmp(name, fault_name) != 0 || ++fault_seen != fault_at)
        return false;
    say(call);
    if (late) /* what it has begun goes on meanwhile */
        syscall(SYS_nanosleep, &(struct timespec){0, 50000000}, NULL);
    if (fault_error == 0)
        syscall(SYS_kill, syscall(SYS_getpid), hup ? SIGHUP : SIGKILL);
    if (hup)
        return false;
    errno = fault_error;
    return true;
}

static bool hit_ours(const char *call, const void *from)
{
    return (uintptr_t)from >= program_first && (uintptr_t)from < program_end && hit(call);
}

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

#define WRAP(type, name, failed, params, args)                                                     \
    type name params;                                                                              \
    type name params                                                                               \
    {                                                                                              \
        static type(*next) params;                                                                 \
        if (!next)                                                                                 \
            *(void **)&next = real(#name);                                                         \
        return hit(#name) ? (failed) : next args;                                                  \
    }

WRAP(ssize_t, read, -1, (int fd, void *p, size_t n), (fd, p, n))
WRAP(ssize_t, write, -1, (int fd, const void *p, size_t n), (fd, p, n))
WRAP(ssize_t, pwrite, -1, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))
WRAP(ssize_t, send, -1, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags))
WRAP(ssize_t, recv, -1, (int fd, void *p, size_t n, int flags), (fd, p, n, flags))
WRAP(ssize_t, sendmsg, -1, (int fd, const struct msghdr *m, int flags), (fd, m, flags))
WRAP(ssize_t, recvmsg, -1, (int fd, struct msghdr *m, int flags), (fd, m, flags))
WRAP(int, socket, -1, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(int, connect, -1, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(int, socketpair, -1, (int domain, int type, int protocol, int fds[2]),
     (domain, type, protocol, fds))
WRAP(int, pipe2, -1, (int fds[2], int flags), (fds, flags))
WRAP(int, memfd_create, -1, (const char *name, unsigned flags), (name, flags))
WRAP(int, epoll_ctl, -1, (int fd, int op, int other, struct epoll_event *e), (fd, op, other, e))
WRAP(int, signalfd, -1, (int fd, const sigset_t *set, int flags), (fd, set, flags))
WRAP(pid_t, fork, -1, (void), ())

/* A tail call (compile with -O2): the child of vfork must return through the caller's frame, not
 * through one of ours. */
pid_t vfork(void);
pid_t vfork(void)
{
    static pid_t (*next)(void);

    if (!next)
        *(void **)&next = real("vfork");
    if (hit("vfork"))
        return -1;
    return next();
}

void *malloc(size_t size)
{
    return hit_ours("malloc", __builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return hit_ours("calloc", __builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
    return hit_ours("realloc", __builtin_return_address(0)) ? NULL : __libc_realloc(p, size);
}

int open(const char *path, int flags, ...)
{
    va_list ap;
    mode_t mode;

    va_start(ap, flags);
    mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return hit("open") ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void shift(struct timespec *ts)
{
    ts->tv_sec += clock_ms / 1000;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ts);

    if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        shift(ts);
    return rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    if (ret)
        *ret = ts.tv_sec;
    return ts.tv_sec;
}
