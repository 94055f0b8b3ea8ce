/*
 * message.c - puts messages into packets, and gets them out again.
 *
 * Invariants: the same code puts a message and gets it, so that the two cannot differ; a message
 * with a value out of its range is refused, and a descriptor that came with it is closed.
 */
#include "runner/message.h"

#include <limits.h>
#include <unistd.h>

#define ERROR_MAX (32 * 1024)

/* One message that is put into `out` or, if `in` is set, got from there. */
struct codec {
    bool gets; /* from `in`; else it puts to `out` */
    struct proto_out *out;
    struct proto_in *in;
    int fd; /* got; -1: none */
};

static void code_u32(struct codec *c, uint32_t *v)
{
    if (c->gets)
        *v = proto_get_u32(c->in);
    else
        proto_put_u32(c->out, *v);
}

static void code_u64(struct codec *c, uint64_t *v)
{
    if (c->gets)
        *v = proto_get_u64(c->in);
    else
        proto_put_u64(c->out, *v);
}

static void code_i64(struct codec *c, int64_t *v)
{
    if (c->gets)
        *v = proto_get_i64(c->in);
    else
        proto_put_i64(c->out, *v);
}

/* A number from min to max. */
static void code_int(struct codec *c, int *v, int min, int max)
{
    if (!c->gets) {
        proto_put_u32(c->out, (uint32_t)*v);
        return;
    }
    *v = (int)proto_get_u32(c->in);
    if (*v < min || *v > max)
        c->in->bad = true;
}

static void code_flag(struct codec *c, bool *v)
{
    int n = *v;

    code_int(c, &n, 0, 1);
    *v = n == 1;
}

/* At most max bytes, or NULL. */
static void code_text(struct codec *c, const char **v, size_t max)
{
    if (c->gets)
        *v = proto_get_text(c->in, max);
    else
        proto_put_text(c->out, *v);
}

/* At most max bytes. */
static void code_bytes(struct codec *c, const void **p, size_t *len, size_t max)
{
    if (!c->gets) {
        proto_put_bytes(c->out, *p, *len);
        return;
    }
    *p = proto_get_bytes(c->in, len);
    if (*len > max)
        c->in->bad = true;
}

/* 1 to max items of this size. */
static void code_list(struct codec *c, const void **items, uint32_t *count, size_t size, size_t max)
{
    size_t len = *count * size;

    code_bytes(c, items, &len, max * size);
    if (c->gets && (len == 0 || len % size))
        c->in->bad = true;
    *count = (uint32_t)(len / size);
}

static void code_fd(struct codec *c, int *fd)
{
    if (c->gets)
        *fd = c->fd = proto_get_fd(c->in);
    else
        proto_put_fd(c->out, *fd);
}

/* ---- orders */

static void code_job(struct codec *c, struct message_job *m)
{
    code_u64(c, &m->digest);
    code_u32(c, &m->handler);
    code_text(c, &m->tag, TASK_TAG_MAX * 4);
    code_i64(c, &m->start_us);
    code_i64(c, &m->vouched_us);
    code_i64(c, &m->late_us);
    code_i64(c, &m->expires_us);
    code_i64(c, &m->deadline_at);
    code_bytes(c, &m->input, &m->input_size, MESSAGE_INPUT_MAX);
    code_fd(c, &m->stdin_fd);
    code_list(c, &m->ids, &m->count, sizeof(uint64_t), MESSAGE_TASKS_MAX);
    code_text(c, &m->key, TASK_KEY_MAX * 4);
    code_u32(c, &m->run);
    code_u32(c, &m->attempt);
    code_u32(c, &m->max_attempts);
    code_i64(c, &m->expected_at);
    code_u32(c, &m->slots);
    code_u64(c, &m->token);
    if (c->gets && !m->tag)
        c->in->bad = true;
}

static void code_deadline(struct codec *c, struct message_deadline *m)
{
    code_i64(c, &m->deadline_at);
    code_list(c, &m->numbers, &m->count, sizeof(uint32_t), MESSAGE_NUMBERS_MAX);
}

static void code_kill(struct codec *c, struct message_kill *m)
{
    int reason = (int)m->reason;

    code_int(c, &reason, 0, MESSAGE_KILL_COUNT - 1);
    m->reason = (enum message_kill_reason)reason;
}

static void code_follow(struct codec *c, struct message_follow *m)
{
    int what = (int)m->what;

    code_int(c, &what, 0, MESSAGE_FOLLOW_COUNT - 1);
    m->what = (enum message_follow_what)what;
}

static void code_elsewhere(struct codec *c, struct message_elsewhere *m)
{
    code_text(c, &m->tag, TASK_TAG_MAX * 4);
    code_u32(c, &m->running);
    code_u32(c, &m->all);
    if (c->gets && !m->tag)
        c->in->bad = true;
}

/* ---- reports */

static void code_started(struct codec *c, struct message_started *m)
{
    code_int(c, &m->pid, 2, INT_MAX);
    code_i64(c, &m->at_us);
}

static void code_chunk(struct codec *c, struct message_chunk *m)
{
    code_u64(c, &m->start);
    code_bytes(c, &m->data, &m->size, MESSAGE_PIECE_MAX);
    code_flag(c, &m->more);
}

static void code_output(struct codec *c, struct message_output *m)
{
    code_bytes(c, &m->data, &m->size, MESSAGE_PIECE_MAX);
}

static void code_result(struct codec *c, struct message_result *m)
{
    int outcome = (int)m->outcome;

    code_u64(c, &m->id);
    code_int(c, &outcome, 0, OUTCOME_COUNT - 1);
    code_flag(c, &m->permanent);
    code_flag(c, &m->with_output);
    code_i64(c, &m->retry_after_ms);
    code_i64(c, &m->hold_ms);
    code_int(c, &m->exit_code, -1, 255);
    code_int(c, &m->signal, 0, 127);
    code_i64(c, &m->finish_us);
    code_text(c, &m->error, ERROR_MAX);
    m->outcome = (enum task_outcome)outcome;
    if (c->gets && m->retry_after_ms < -1)
        c->in->bad = true;
}

static void code_returned(struct codec *c, struct message_returned *m)
{
    code_int(c, &m->cannot_start, INT_MIN, 0);
    code_text(c, &m->error, ERROR_MAX);
}

static void code_reloaded(struct codec *c, struct message_reloaded *m)
{
    code_u64(c, &m->digest);
    code_fd(c, &m->text_fd);
    code_text(c, &m->error, ERROR_MAX);
}

const char *const message_kept_whys[MESSAGE_KEPT_WHYS] = {"tasks", "age", "memory", "restart_on",
                                                          "ended"};

static void code_kept(struct codec *c, struct message_kept *m)
{
    code_u32(c, &m->handler);
    code_u32(c, &m->busy);
    code_u32(c, &m->idle);
    code_u64(c, &m->memory);
    for (int why = 0; why < MESSAGE_KEPT_WHYS; why++)
        code_u32(c, &m->replaced[why]);
    code_text(c, &m->last, ERROR_MAX);
}

/* ---- all of them */

/* clang-format off */
#define CODES(X)                                \
    X(JOB, code_job(c, &m->job))                \
    X(DEADLINE, code_deadline(c, &m->deadline)) \
    X(VOUCH, code_i64(c, &m->vouch.until_us))   \
    X(KILL, code_kill(c, &m->kill))             \
    X(FOLLOW, code_follow(c, &m->follow))       \
    X(RELOAD, code_u64(c, &m->reload.digest))   \
    X(ELSEWHERE, code_elsewhere(c, &m->elsewhere)) \
    X(PING, code_u64(c, &m->ping.n))            \
    X(STARTED, code_started(c, &m->started))    \
    X(CHUNK, code_chunk(c, &m->chunk))          \
    X(OUTPUT, code_output(c, &m->output))       \
    X(RESULT, code_result(c, &m->result))       \
    X(ENDED, code_i64(c, &m->ended.at_us))      \
    X(RETURNED, code_returned(c, &m->returned)) \
    X(RELOADED, code_reloaded(c, &m->reloaded)) \
    X(PONG, code_u64(c, &m->pong.n))            \
    X(KEPT, code_kept(c, &m->kept))
/* clang-format on */
#define CODE_CASE(NAME, statement)                                                                 \
    case MESSAGE_##NAME:                                                                           \
        (statement);                                                                               \
        break;

static void code(struct codec *c, struct message *m)
{
    code_u32(c, &m->number);
    switch (m->type) {
        CODES(CODE_CASE)
    case MESSAGE_RETURN: /* these have no fields */
    case MESSAGE_GONE:
        break;
    }
}

void message_put(struct proto_out *o, const struct message *m)
{
    struct message copy = *m;
    struct codec c = {.out = o, .fd = -1};

    proto_begin(o, (uint32_t)m->type);
    code(&c, &copy);
    proto_end(o);
}

static int get(struct proto_in *in, enum message_type first, enum message_type last,
               struct message *ret)
{
    struct message m = {0};
    struct codec c = {.gets = true, .in = in, .fd = -1};
    uint32_t type;
    int rc = proto_next(in, &type);

    if (rc <= 0)
        return rc;
    if (type < (uint32_t)first || type > (uint32_t)last) {
        in->bad = true;
        return -1;
    }
    m.type = (enum message_type)type;
    code(&c, &m);
    if (in->pos != in->end)
        in->bad = true;
    if (in->bad) {
        if (c.fd >= 0)
            close(c.fd);
        return -1;
    }
    *ret = m;
    return 1;
}

int message_get_order(struct proto_in *in, struct message *ret)
{
    return get(in, MESSAGE_JOB, MESSAGE_PING, ret);
}

int message_get_report(struct proto_in *in, struct message *ret)
{
    return get(in, MESSAGE_STARTED, MESSAGE_KEPT, ret);
}
