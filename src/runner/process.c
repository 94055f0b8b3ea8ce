/*
 * process.c - makes a forked copy of the poller the runner process.
 *
 * Invariant: afterwards handlers inherit nothing of the poller's: no descriptor, no ignored signal,
 * no name.
 */
#include "runner/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* All are blocked, so that none interrupts or ends this process, and one call in a child undoes it.
 */
static void set_signals(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    /* the kernel's struct sigaction for SIG_DFL: glibc's call refuses signals 32 and 33 */
    const unsigned long none[4] = {0};
    sigset_t blocked, kept;

    sigfillset(&blocked);
    sigemptyset(&kept);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        sigdelset(&blocked, faults[i]);
        sigaddset(&kept, faults[i]);
    }
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    for (int sig = 1; sig < _NSIG; sig++)
        if (sigismember(&kept, sig) != 1)
            syscall(SYS_rt_sigaction, sig, none, NULL, sizeof(uint64_t));
}

/* Keeps the standard streams and the link open, which gets the lowest number. */
static int keep_only(int sock)
{
    if (sock != 3)
        dup3(sock, 3, O_CLOEXEC);
    if (syscall(__NR_close_range, 4, ~0u, 0) != 0)
        for (int fd = 4; fd < (int)sysconf(_SC_OPEN_MAX); fd++)
            close(fd);
    return 3;
}

int process_take_over(int sock)
{
    prctl(PR_SET_NAME, "dqd-runner");
    set_signals();
    return keep_only(sock);
}
