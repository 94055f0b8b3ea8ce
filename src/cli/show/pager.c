/*
 * pager.c - see pager.h. Invariant: the program outlives its pager, or the shell and the pager
 * would both read from the terminal.
 */
#include "cli/show/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static struct {
    bool allowed, asked;
    volatile pid_t pid; /* 0: none */
    int saved[2];       /* stdout and stderr as they were; -1: not replaced */
} pager = {.saved = {-1, -1}};

void pager_allow(bool yes)
{
    pager.allowed = yes;
}

bool pager_active(void)
{
    return pager.pid != 0;
}

static const char *command(void)
{
    const char *text = getenv("DQ_PAGER");
    if (!text)
        text = getenv("PAGER");
    if (!text)
        text = "less";
    return *text == '\0' || strcmp(text, "cat") == 0 ? NULL : text;
}

/* A single word is executed as it is, so that a missing program is noticed. 0: it cannot be. */
static pid_t spawn(const char *text, int input)
{
    char name[] = "sh", option[] = "-c", *words[] = {(char *)(uintptr_t)text, NULL},
         *shell[] = {name, option, words[0], NULL};
    bool is_word = text[strcspn(text, " \t\n|&;<>()$`\\\"'*?[#~=%")] == '\0';
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t pipe_only;
    pid_t pid = 0;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &pipe_only);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    setenv("LESS", "FRX", false);
    setenv("LV", "-c", false);
    if (posix_spawnp(&pid, is_word ? words[0] : shell[0], &files, &attributes,
                     is_word ? words : shell, environ) != 0)
        pid = 0;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return pid;
}

static void wait_for_pager(void)
{
    while (waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* The pager got the signal, too, and decides what it means. It sees the end of its input. */
static void end_by_signal(int signal_number)
{
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    wait_for_pager();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void replace(int fd, int with)
{
    pager.saved[fd - STDOUT_FILENO] = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    dup2(with, fd);
}

void pager_begin(void)
{
    struct sigaction action = {.sa_handler = end_by_signal, .sa_flags = (int)SA_RESETHAND};
    int fds[2];
    if (pager.asked || !pager.allowed)
        return;
    pager.asked = true;
    const char *text = isatty(STDOUT_FILENO) ? command() : NULL;
    if (!text || pipe2(fds, O_CLOEXEC) != 0)
        return;
    pager.pid = spawn(text, fds[0]);
    close(fds[0]);
    if (pager.pid) {
        replace(STDOUT_FILENO, fds[1]);
        if (isatty(STDERR_FILENO))
            replace(STDERR_FILENO, fds[1]);
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGHUP, &action, NULL);
    }
    close(fds[1]);
}

void pager_end(void)
{
    if (!pager.pid)
        return;
    for (int i = 0; i < 2; i++) {
        if (pager.saved[i] < 0)
            continue;
        dup2(pager.saved[i], STDOUT_FILENO + i);
        close(pager.saved[i]);
        pager.saved[i] = -1;
    }
    wait_for_pager();
    pager.pid = 0;
}
