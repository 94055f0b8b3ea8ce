/*
 * link.c - the poller's side of the link to the runner.
 *
 * Invariants: nothing here blocks except link_stop, and for at most 2 s the burial of a dead
 * runner; what the runner sends is not trusted.
 */
#include "runner/link.h"

#include "base/mem.h"
#include "base/when.h"
#include "runner/child.h"
#include "runner/contract.h"
#include "runner/input.h"
#include "runner/notes.h"
#include "runner/rights.h"
#include "runner/session.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX (2 * 1024 * 1024)
#define BURY_MS 2000 /* to wait until a killed runner has ended */

struct link {
    int fd; /* -1: closed */
    pid_t pid;
    bool gone;             /* GONE was reported */
    bool cleared;          /* nothing of any handler is left */
    volatile pid_t *notes; /* shared with the runner: see notes.h */
    struct proto_in in;
    struct proto_out out;
    struct buf output; /* of the job whose results will follow */
    int text;          /* of the last RELOADED; -1: none */
    size_t input_most; /* in a message: the runner may have to make a file of it */
    pid_t *leaders;    /* that a dead runner left behind */
    size_t leader_count;
};

int link_start(const struct runner_options *o, struct link **ret, struct err *err)
{
    int fds[2];
    struct rlimit files;
    volatile pid_t *notes = notes_new();

    if (!notes)
        return err_set(err, ERR_SYSTEM, "cannot start the runner: mmap: %s", strerror(errno));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
        err_set(err, ERR_SYSTEM, "cannot start the runner: socketpair: %s", strerror(errno));
        notes_free(notes);
        return ERR_SYSTEM;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* adopts what a dead runner leaves behind */
    pid_t pid = fork();
    if (pid < 0) {
        err_set(err, ERR_SYSTEM, "cannot start the runner: fork: %s", strerror(errno));
        close(fds[0]);
        close(fds[1]);
        notes_free(notes);
        return ERR_SYSTEM;
    }
    if (pid == 0)
        runner_main(fds[1], o, notes);
    close(fds[1]);
    struct link *l = mem_zero(1, sizeof *l);
    l->fd = fds[0];
    l->pid = pid;
    l->notes = notes;
    l->text = -1;
    getrlimit(RLIMIT_FSIZE, &files);
    l->input_most = MIN(files.rlim_cur, MESSAGE_INPUT_MAX);
    proto_in_init(&l->in);
    *ret = l;
    return 0;
}

int link_fd(const struct link *l)
{
    return l->fd;
}

pid_t link_pid(const struct link *l)
{
    return l->pid;
}

bool link_wants_write(const struct link *l)
{
    return l->fd >= 0 && proto_pending(&l->out);
}

/* ---- sending */

int link_flush(struct link *l, struct err *err)
{
    int rc = l->fd < 0 ? -1 : proto_flush(&l->out, l->fd);

    return rc < 0 ? err_set(err, ERR_SYSTEM, "the runner is gone") : rc;
}

void link_push(struct link *l)
{
    if (link_flush(l, NULL) < 0)
        return;
}

/* Sends full packets at once if possible, so that their descriptors are closed soon. */
static void put(struct link *l, const struct message *m)
{
    message_put(&l->out, m);
    if (proto_full(&l->out) && link_flush(l, NULL) < 0)
        proto_out_done(&l->out); /* link_next will report GONE */
}

void link_send_job(struct link *l, uint32_t number, const struct message_job *j)
{
    assert(j->count > 0 && j->count <= MESSAGE_TASKS_MAX);
    if (number < NOTES_MAX)
        l->notes[number] = 0;
    put(l, &(struct message){.type = MESSAGE_JOB, .number = number, .job = *j});
}

int link_send_tasks(struct link *l, uint32_t number, const struct handlers *h, uint32_t handler,
                    const struct task *tasks, uint32_t count, const struct message_job *times,
                    struct err *err)
{
    struct message_job j = *times;
    const bool lines = contract_of(&h->items[handler])->lines;
    MEM_LOCAL uint64_t *ids = mem_alloc(count * sizeof *ids);
    BUF_LOCAL struct buf text = BUF_INIT;

    for (uint32_t i = 0; i < count; i++)
        ids[i] = tasks[i].id;
    j.digest = h->digest;
    j.handler = handler;
    j.tag = tasks->tag;
    j.ids = ids;
    j.count = count;
    j.input = tasks->body;
    j.input_size = tasks->body_size;
    j.stdin_fd = -1;
    if (lines) {
        input_put_lines(&text, tasks, count);
        j.input = text.data;
        j.input_size = text.len;
    } else {
        j.key = tasks->key;
        j.run = tasks->run;
        j.attempt = tasks->attempt;
        j.max_attempts = tasks->max_attempts;
        j.expected_at = tasks->expected_at;
        j.slots = (uint32_t)tasks->missed_slots + 1;
        j.token = tasks->version;
    }
    if (j.input_size > l->input_most) {
        if ((j.stdin_fd = input_long(j.input, j.input_size, err)) < 0)
            return err->code;
        j.input_size = 0;
    }
    link_send_job(l, number, &j);
    return 0;
}

void link_send_deadline(struct link *l, const uint32_t *numbers, size_t count, int64_t deadline_at)
{
    while (count) {
        size_t n = MIN(count, (size_t)MESSAGE_NUMBERS_MAX);
        put(l, &(struct message){.type = MESSAGE_DEADLINE,
                                 .deadline = {deadline_at, numbers, (uint32_t)n}});
        numbers += n;
        count -= n;
    }
}

void link_send_vouch(struct link *l, int64_t until_us)
{
    put(l, &(struct message){.type = MESSAGE_VOUCH, .vouch = {until_us}});
}

void link_send_kill(struct link *l, uint32_t number, enum message_kill_reason reason)
{
    put(l, &(struct message){.type = MESSAGE_KILL, .number = number, .kill = {reason}});
}

void link_send_follow(struct link *l, uint32_t number, enum message_follow_what what)
{
    put(l, &(struct message){.type = MESSAGE_FOLLOW, .number = number, .follow = {what}});
}

void link_send_return(struct link *l)
{
    put(l, &(struct message){.type = MESSAGE_RETURN});
}

void link_send_reload(struct link *l, uint64_t digest)
{
    put(l, &(struct message){.type = MESSAGE_RELOAD, .reload = {digest}});
}

void link_send_elsewhere(struct link *l, const char *tag, uint32_t running, uint32_t all)
{
    put(l, &(struct message){.type = MESSAGE_ELSEWHERE, .elsewhere = {tag, running, all}});
}

void link_send_ping(struct link *l, uint64_t n)
{
    put(l, &(struct message){.type = MESSAGE_PING, .ping = {n}});
}

/* ---- receiving */

bool link_kill(struct link *l)
{
    rights_raise();
    bool can = kill(l->pid, SIGKILL) == 0;
    rights_lower();
    return can;
}

static bool is_leader(void *ctx, pid_t session)
{
    const struct link *l = ctx;

    for (size_t i = 0; i < l->leader_count; i++)
        if (l->leaders[i] == session)
            return true;
    return false;
}

/* Finds the leaders that the runner did not reap. False: one of them is not our child, so that its
 * pid may belong to another process by now. */
static bool find_leaders(struct link *l)
{
    bool ours = true;

    for (size_t i = 0; i < NOTES_MAX + NOTES_KEPT; i++) {
        siginfo_t si;
        if (l->notes[i] <= 0)
            continue;
        if (waitid(P_PID, (id_t)l->notes[i], &si, WEXITED | WNOHANG | WNOWAIT) != 0) {
            ours = false;
            continue;
        }
        l->leaders = mem_resize(l->leaders, l->leader_count + 1, sizeof *l->leaders);
        l->leaders[l->leader_count++] = l->notes[i];
    }
    return ours;
}

/* With its group. True: it is dead, or will be before it can execute anything. */
static bool kill_leader(pid_t leader)
{
    child_signal(leader, SIGKILL);
    return kill(leader, SIGKILL) == 0 || child_has_ended(leader);
}

/* The runner is dead: kills what it left behind. True: nothing of that is left. A leader may have
 * survived the runner, and us: to execute a setuid program clears PR_SET_PDEATHSIG. */
static bool clear(struct link *l)
{
    bool ours = find_leaders(l), killed = true;

    rights_raise();
    for (size_t i = 0; i < l->leader_count; i++)
        killed &= kill_leader(l->leaders[i]);
    enum session_left left = l->leader_count ? session_kill(is_leader, l, NULL) : SESSION_EMPTY;
    rights_lower();
    for (size_t i = 0; i < l->leader_count; i++)
        waitpid(l->leaders[i], NULL, WNOHANG);
    return ours && killed && left == SESSION_EMPTY;
}

/* True: it has ended, within BURY_MS. */
static bool wait_for_end(pid_t pid)
{
    const int64_t until = when_steady() + BURY_MS;
    pid_t rc;

    while ((rc = waitpid(pid, NULL, WNOHANG)) == 0 && when_steady() < until)
        poll(NULL, 0, 1);
    return rc == pid;
}

/* The runner has died or cannot be trusted any more. If we may not kill it, it ends by itself once
 * the link is closed. */
static void bury(struct link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    if (l->pid > 0)
        l->cleared = link_kill(l) && wait_for_end(l->pid) && clear(l);
    l->pid = -1;
    proto_out_done(&l->out);
}

/* Adds a piece to the output of the job whose results will follow. */
static void keep_output(struct link *l, const struct message_output *m)
{
    if (l->output.len + m->size > OUTPUT_MAX)
        l->in.bad = true;
    else
        buf_add(&l->output, m->data, m->size);
}

static void drop_text(struct link *l)
{
    if (l->text >= 0)
        close(l->text);
    l->text = -1;
}

static void take_text(struct link *l, struct message_reloaded *m)
{
    if (m->text_fd < 0 && !m->error)
        m->error = "the new handlers file did not arrive (too many open files): send SIGHUP again";
    m->text_fd = l->text = MAX(m->text_fd, -1);
}

/* False: it is not for the caller. */
static bool take_report(struct link *l, struct message *m)
{
    if (m->type == MESSAGE_OUTPUT) {
        keep_output(l, &m->output);
    } else if (m->type == MESSAGE_RESULT && m->result.with_output && l->output.len) {
        m->result.output = l->output.data;
        m->result.output_size = l->output.len;
    } else if (m->type == MESSAGE_ENDED) {
        buf_reset(&l->output);
    } else if (m->type == MESSAGE_RELOADED) {
        take_text(l, &m->reloaded);
    }
    return m->type != MESSAGE_OUTPUT;
}

bool link_job_begun(const struct link *l, uint32_t number)
{
    return number >= NOTES_MAX || l->notes[number];
}

int link_next(struct link *l, struct message *ret)
{
    int rc = l->fd < 0 ? -1 : 1;

    if (l->gone)
        return 0;
    drop_text(l);
    while (rc > 0) {
        struct message m;
        rc = message_get_report(&l->in, &m);
        if (rc > 0 && take_report(l, &m)) {
            *ret = m;
            return 1;
        }
        if (rc == 0 && (rc = proto_recv(&l->in, l->fd)) == 0)
            return 0;
    }
    bury(l);
    l->gone = true;
    *ret = (struct message){.type = MESSAGE_GONE};
    return 1;
}

void link_reap_adopted(const struct link *l)
{
    siginfo_t si = {0};

    while (l->pid > 0 && waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0 && si.si_pid &&
           si.si_pid != l->pid)
        waitpid(si.si_pid, NULL, WNOHANG);
}

bool link_cleared(const struct link *l)
{
    return l->cleared;
}

void link_give_up(struct link *l)
{
    bury(l);
}

void link_stop(struct link *l, int64_t timeout_ms)
{
    const int64_t until = when_steady() + timeout_ms;

    if (!l)
        return;
    if (l->fd >= 0 && link_flush(l, NULL) >= 0)
        shutdown(l->fd, SHUT_WR);
    while (l->fd >= 0) {
        struct pollfd p = {.fd = l->fd, .events = POLLIN};
        int64_t left = until - when_steady();
        if (left <= 0)
            break;
        if (poll(&p, 1, left < INT32_MAX ? (int)left : INT32_MAX) > 0 &&
            proto_recv(&l->in, l->fd) < 0)
            break; /* it has ended every handler and closed its side */
    }
    bury(l);
    drop_text(l);
    proto_in_done(&l->in);
    buf_done(&l->output);
    free(l->leaders);
    notes_free(l->notes);
    free(l);
}
