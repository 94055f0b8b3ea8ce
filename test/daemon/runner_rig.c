/*
 * runner_rig.c - a runner to be driven by tests.
 */
#include "conf/handlers_load.h"
#include "runner_rig.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/when.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TURN_MS 10  /* between two looks at a file or a process */
#define LIMIT_S 600 /* reached by a hang only */

char *rig_path(const struct rig *r, const char *name)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s", r->dir, name);
    return path;
}

void rig_write_handlers(const struct rig *r, const char *yaml)
{
    static const char mark[] = "@DIR@";
    FILE *f = fopen(rig_path(r, "handlers.yaml"), "w");

    assert_non_null(f);
    for (const char *at; (at = strstr(yaml, mark)); yaml = at + sizeof mark - 1)
        fprintf(f, "%.*s%s", (int)(at - yaml), yaml, r->dir);
    fputs(yaml, f);
    assert_int_equal(fclose(f), 0);
}

void rig_open(struct rig *r, const char *yaml, int slots)
{
    struct err err = {0};

    memset(r, 0, sizeof *r);
    alarm(LIMIT_S);
    snprintf(r->dir, sizeof r->dir, "/tmp/dq-rig.XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    assert_int_equal(chmod(r->dir, 0755), 0);
    rig_write_handlers(r, yaml);
    if (handlers_load(rig_path(r, "handlers.yaml"), &r->handlers, &err) != 0)
        fail_msg("%s", err.text);
    const struct runner_options o = {.handlers_path = r->handlers->path,
                                     .handlers = r->handlers,
                                     .slots = slots,
                                     .log_level = 3};
    if (link_start(&o, &r->link, &err) != 0)
        fail_msg("%s", err.text);
}

void rig_close(struct rig *r)
{
    char command[128];

    link_stop(r->link, 30000);
    handlers_free(r->handlers);
    for (size_t i = 0; i < r->count; i++) {
        free(r->reports[i].error);
        free(r->reports[i].output);
    }
    free(r->reports);
    snprintf(command, sizeof command, "rm -rf '%s'", r->dir);
    assert_int_equal(system(command), 0);
    alarm(0);
}

int rig_memfd(const void *body, size_t len)
{
    int fd = memfd_create("body", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    for (size_t at = 0; at < len;) {
        ssize_t n = pwrite(fd, (const char *)body + at, len - at, (off_t)at);
        assert_true(n > 0);
        at += (size_t)n;
    }
    assert_int_equal(
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL), 0);
    return fd;
}

void rig_fill(struct rig *r, struct message_job *j, const char *tag)
{
    static uint64_t id;
    int handler = handlers_match(r->handlers, tag);

    assert_true(handler >= 0);
    id++;
    *j = (struct message_job){.digest = r->handlers->digest,
                              .handler = (uint32_t)handler,
                              .tag = tag,
                              .vouched_us = INT64_MAX,
                              .deadline_at = when_steady() + 3600000,
                              .stdin_fd = -1,
                              .ids = &id,
                              .count = 1,
                              .attempt = 1,
                              .max_attempts = 10,
                              .expected_at = INT64_C(1790000000123),
                              .token = 77};
}

void rig_input(struct message_job *j, const void *p, size_t len)
{
    j->input = p;
    j->input_size = len <= MESSAGE_INPUT_MAX ? len : 0;
    j->stdin_fd = j->input_size == len ? -1 : rig_memfd(p, len);
}

uint32_t rig_put(struct rig *r, const struct message_job *j)
{
    link_send_job(r->link, ++r->jobs, j);
    return r->jobs;
}

void rig_flush(struct rig *r)
{
    struct err err = {0};

    if (link_flush(r->link, &err) < 0)
        fail_msg("%s", err.text);
}

uint32_t rig_send(struct rig *r, const char *tag)
{
    struct message_job j;

    rig_fill(r, &j, tag);
    uint32_t number = rig_put(r, &j);
    rig_flush(r);
    return number;
}

uint32_t rig_send_body(struct rig *r, const char *tag, const void *body, size_t len)
{
    struct message_job j;

    rig_fill(r, &j, tag);
    rig_input(&j, body, len);
    uint32_t number = rig_put(r, &j);
    rig_flush(r);
    return number;
}

static const char *error_of(const struct message *m)
{
    return m->type == MESSAGE_RESULT     ? m->result.error
           : m->type == MESSAGE_RETURNED ? m->returned.error
           : m->type == MESSAGE_RELOADED ? m->reloaded.error
                                         : NULL;
}

static void keep(struct rig *r, const struct message *m)
{
    const bool chunk = m->type == MESSAGE_CHUNK, result = m->type == MESSAGE_RESULT;
    const void *output = chunk ? m->chunk.data : result ? m->result.output : NULL;
    size_t size = chunk ? m->chunk.size : result ? m->result.output_size : 0;

    r->reports = mem_resize(r->reports, r->count + 1, sizeof *r->reports);
    r->reports[r->count++] =
        (struct rig_report){*m, mem_strdup(error_of(m)), output ? mem_dup(output, size) : NULL};
}

/* Takes what is there, or waits for it that long (-1: for ever). */
static void take(struct rig *r, int wait_ms)
{
    struct message m;
    struct pollfd p = {.fd = link_fd(r->link), .events = POLLIN};

    if (link_flush(r->link, NULL) > 0)
        p.events |= POLLOUT;
    poll(&p, 1, wait_ms);
    while (link_next(r->link, &m))
        keep(r, &m);
}

const struct rig_report *rig_find(const struct rig *r, enum message_type type, uint32_t job)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->reports[i].m.type == type && r->reports[i].m.number == job)
            return &r->reports[i];
    return NULL;
}

const struct rig_report *rig_wait(struct rig *r, enum message_type type, uint32_t job)
{
    const struct rig_report *found;

    while (!(found = rig_find(r, type, job))) {
        const struct rig_report *back = rig_find(r, MESSAGE_RETURNED, job);
        if (rig_find(r, MESSAGE_GONE, 0))
            fail_msg("the runner is gone");
        if (back)
            fail_msg("job %u came back: %s", job, back->error ? back->error : "");
        take(r, -1);
    }
    return found;
}

const struct rig_report *rig_end(struct rig *r, uint32_t job)
{
    const struct rig_report *last = NULL;

    rig_wait(r, MESSAGE_ENDED, job);
    for (size_t i = 0; i < r->count; i++)
        if (r->reports[i].m.type == MESSAGE_RESULT && r->reports[i].m.number == job)
            last = &r->reports[i];
    assert_non_null(last);
    return last;
}

size_t rig_count(const struct rig *r, enum message_type type)
{
    size_t n = 0;

    for (size_t i = 0; i < r->count; i++)
        n += r->reports[i].m.type == type;
    return n;
}

void rig_ping(struct rig *r)
{
    static uint64_t n;
    bool answered = false;

    link_send_ping(r->link, ++n);
    while (!answered) {
        take(r, -1);
        for (size_t i = 0; i < r->count; i++)
            answered |= r->reports[i].m.type == MESSAGE_PONG && r->reports[i].m.pong.n == n;
    }
}

static char *slurp(const char *path)
{
    struct buf b = BUF_INIT;
    char piece[4096];
    size_t n;
    FILE *f = fopen(path, "r");

    if (!f)
        return NULL;
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        buf_add(&b, piece, n);
    fclose(f);
    return buf_take(&b);
}

char *rig_read_file(struct rig *r, const char *name)
{
    for (;;) {
        char *text = slurp(rig_path(r, name));
        if (text && *text && text[strlen(text) - 1] == '\n')
            return text;
        free(text);
        take(r, TURN_MS);
    }
}

size_t rig_count_proc(const struct rig *r, const char *name)
{
    char path[64];
    size_t n = 0;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)link_pid(r->link), name);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

bool rig_alive(pid_t pid)
{
    char path[64], *text, *state;
    bool alive;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    text = slurp(path);
    state = text ? strrchr(text, ')') : NULL;
    alive = state && state[2] != 'Z' && state[2] != 'X';
    free(text);
    return alive;
}

void rig_until_gone(struct rig *r, pid_t pid)
{
    while (rig_alive(pid))
        take(r, TURN_MS);
}

static size_t count_session(pid_t session)
{
    DIR *d = opendir("/proc");
    struct dirent *e;
    size_t n = 0;

    assert_non_null(d);
    while ((e = readdir(d))) {
        pid_t pid = (pid_t)atol(e->d_name);
        n += pid > 0 && getsid(pid) == session && rig_alive(pid);
    }
    closedir(d);
    return n;
}

bool rig_session_ends(struct rig *r, pid_t session)
{
    const int64_t until = when_steady() + 60000;
    bool over;

    while (!(over = count_session(session) == 0) && when_steady() < until)
        take(r, TURN_MS);
    return over;
}
