/*
 * child.c - starts, signals and reaps handler processes.
 *
 * Invariants: between vfork and exec the child uses this process's memory, so it only makes system
 * calls and writes only to `failure`, `note` and the errno of the thread that waits for it; a group
 * is signalled only while its leader has not been reaped, so that its number cannot belong to
 * another one.
 */
#include "runner/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum step {
    STEP_NONE,
    STEP_STREAMS,
    STEP_SESSION,
    STEP_LIMIT,
    STEP_NICE,
    STEP_ACCOUNT,
    STEP_CWD,
    STEP_ORPHAN,
    STEP_EXEC
};

struct failure {
    enum step step;
    int error;
};

/* glibc's wrappers would signal the threads of the process whose memory this is. */
static bool switch_account(const struct child_account *a)
{
    return syscall(SYS_setgroups, a->group_count, a->groups) == 0 &&
           syscall(SYS_setresgid, a->gid, a->gid, a->gid) == 0 &&
           syscall(SYS_setresuid, a->uid, a->uid, a->uid) == 0;
}

/* As execvp: executes the first that it can; EACCES is reported rather than ENOENT. What a shell
 * says and returns if there is none, or does with a script without #!, it does itself. */
static void exec_first(const struct child_spec *s)
{
    int worst = ENOENT;

    for (const char *const *p = s->programs; *p; p++) {
        execve(*p, s->argv, s->envp);
        if (errno == EACCES)
            worst = EACCES;
        else if (errno != ENOENT && errno != ENOTDIR) {
            worst = errno;
            break;
        }
    }
    if (s->shell)
        execve(s->shell[0], s->shell, s->envp);
    errno = worst;
}

static enum step prepare(const struct child_spec *s, pid_t parent)
{
    sigset_t none;

    *s->note = (pid_t)syscall(SYS_getpid);
    if (setsid() < 0)
        return STEP_SESSION;
    if (dup2(s->in, 0) < 0 || dup2(s->out, 1) < 0 || dup2(s->err, 2) < 0 ||
        dup2(s->reply, CHILD_REPLY) < 0)
        return STEP_STREAMS;
    if (s->files && setrlimit(RLIMIT_NOFILE, s->files) != 0)
        return STEP_LIMIT;
    if (s->set_nice && setpriority(PRIO_PROCESS, 0, s->nice) != 0)
        return STEP_NICE;
    if (s->account && !switch_account(s->account))
        return STEP_ACCOUNT;
    /* After the change of account, which would clear it, and before the calls that may hang. The
     * parent may have died before it took effect. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        return STEP_ORPHAN;
    if (chdir(s->cwd) != 0)
        return STEP_CWD;
    umask(s->umask);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    return STEP_NONE;
}

static _Noreturn __attribute__((noinline)) void child_main(const struct child_spec *s, pid_t parent,
                                                           volatile struct failure *f)
{
    enum step step = prepare(s, parent);

    if (step == STEP_NONE) {
        exec_first(s);
        step = STEP_EXEC;
    }
    f->error = errno;
    f->step = step;
    _exit(127);
}

static int explain(const struct child_spec *s, struct failure f, struct err *err)
{
    const char *why = strerror(f.error), *name = s->account ? s->account->name : "";
    const int code = err_system(f.error);

    switch (f.step) {
    case STEP_SESSION:
        return err_set(err, code, "setsid: %s", why);
    case STEP_STREAMS:
        return err_set(err, code, "stdin, stdout, stderr, DQ_REPLY_FD: %s", why);
    case STEP_LIMIT:
        return err_set(err, code, "limit of open files: %s", why);
    case STEP_NICE:
        return err_set(err, code, "nice %d: %s", s->nice, why);
    case STEP_ACCOUNT:
        return err_set(err, code, "user %s: %s (only root may switch users)", name, why);
    case STEP_CWD:
        return err_set(err, code, "cwd %s: %s", s->cwd, why);
    case STEP_ORPHAN:
        return err_set(err, ERR_SYSTEM, "the runner died during the start");
    default:
        return err_set(err, code, "exec %s: %s", s->programs[1] ? s->argv[0] : s->programs[0], why);
    }
}

int child_start(const struct child_spec *s, pid_t *ret, struct err *err)
{
    /* the child changes it during vfork, which the compiler does not know */
    volatile struct failure f = {STEP_NONE, 0};
    const pid_t parent = getpid();
    /* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): a fork would copy page tables */
    const pid_t pid = vfork();

    if (pid == 0)
        /* NOLINTNEXTLINE(clang-analyzer-unix.Vfork): as the invariant above says */
        child_main(s, parent, &f);
    if (pid < 0)
        return err_set(err, err_system(errno), "fork: %s", strerror(errno));
    if (f.step != STEP_NONE) {
        child_reap(pid);
        return explain(s, f, err);
    }
    *ret = pid;
    return 0;
}

void child_signal(pid_t leader, int sig)
{
    kill(-leader, sig);
    if (sig == SIGTERM)
        kill(-leader, SIGCONT);
}

pid_t child_ended(void)
{
    siginfo_t si = {0};

    return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0 ? si.si_pid : 0;
}

bool child_has_ended(pid_t pid)
{
    siginfo_t si = {0};

    return waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 && si.si_pid == pid;
}

int child_reap(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

const char *child_stat(pid_t pid, char text[CHILD_STAT_SIZE])
{
    char path[32], *rest;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (!f)
        return NULL;
    text[fread(text, 1, CHILD_STAT_SIZE - 1, f)] = '\0';
    fclose(f);
    rest = strrchr(text, ')');
    return rest ? rest + 1 : "";
}

#define FORKNOEXEC 0x40 /* PF_FORKNOEXEC of the kernel */

bool child_never_executed(pid_t pid)
{
    char text[CHILD_STAT_SIZE];
    const char *stat = child_stat(pid, text);
    unsigned flags = 0;

    return stat && sscanf(stat, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & FORKNOEXEC;
}
