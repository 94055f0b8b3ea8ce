/*
 * bench_verdict.c - from figures to words: what this server and this host carry in a day, and what limits each of it.
 */
#include "cli/bench.h"

#include "base/mem.h"
#include "base/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_S 86400
#define STEP 500
#define LATE_MS 5 /* what planned starts may be late before it is the server's fault */

static struct bench_row *rows_add(struct bench_rows *r, const char *kind, const char *name)
{
    r->items = mem_resize(r->items, r->count + 1, sizeof *r->items);
    struct bench_row *row = &r->items[r->count++];
    *row = (struct bench_row){.kind = kind, .name = name};
    return row;
}

/* ---- measures */

static const struct {
    const char *name, *unit, *about;
} measures[BENCH_MEASURE_COUNT] = {
    [BENCH_ROUND_TRIP] = {"round-trip", "ms", "a statement that does nothing, there and back"},
    [BENCH_COMMIT] = {"commit", "ms", "one row changed and committed: what durability costs"},
    [BENCH_CONNECT] = {"connect", "ms", "a new connection, until it can be used"},
    [BENCH_ADD_COMMAND] = {"add-command", "ms", "dq add in a shell, from its start to its end"},
    [BENCH_ADD] = {"add", "tasks/s", "added one by one over one connection"},
    [BENCH_ADD_BULK] = {"add-bulk", "tasks/s", "added in statements of 1,000, as dq add --from does"},
    [BENCH_PEEK] = {"peek", "ms", "asking what is due: an idle dqd does that once a poll_interval"},
    [BENCH_CLAIM] = {"claim", "tasks/s", "claimed, 500 at a time"},
    [BENCH_SETTLE] = {"settle", "tasks/s", "settled as done, 500 at a time"},
    [BENCH_SPAWN] = {"spawn", "starts/s", "sh -c : on this host, one after the other"},
    [BENCH_SPAWN_PARALLEL] = {"spawn-parallel", "starts/s", "the same, several at a time"},
    [BENCH_RUN] = {"run", "tasks/s", "dqd --once, a shell that does nothing for each task"},
    [BENCH_RUN_BATCH] = {"run-batch", "tasks/s", "dqd --once, a batch handler for 500 tasks"},
    [BENCH_LATENESS] = {"lateness", "ms", "planned tasks, 50 a second, a process each: started so late, in whole ms"},
};

static void add_measures(const struct bench *b, struct bench_rows *rows)
{
    for (int i = 0; i < BENCH_MEASURE_COUNT; i++) {
        const struct bench_figure *f = &b->figures[i];
        struct bench_row *row = rows_add(rows, "measure", measures[i].name);
        row->unit = measures[i].unit;
        row->known = f->known;
        row->value = f->value;
        row->has_p99 = f->known && f->has_p99;
        row->p99 = f->p99;
        row->warn = !f->known;
        snprintf(row->about, sizeof row->about, "%s", f->why[0] ? f->why : measures[i].about);
    }
}

/* ---- what is carried */

static double value(const struct bench *b, enum bench_measure m)
{
    return b->figures[m].known ? b->figures[m].value : 0;
}

/* Tasks per second that go through both, one after the other; 0: not known. */
static double through(double x, double y)
{
    return x > 0 && y > 0 ? 1 / (1 / x + 1 / y) : 0;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

struct carried {
    double process, process_1s, batch, server; /* tasks per second */
    bool guessed, batch_guessed;               /* dqd was not measured */
};

static struct carried carried(const struct bench *b)
{
    struct carried k = {.guessed = !b->figures[BENCH_RUN].known, .batch_guessed = !b->figures[BENCH_RUN_BATCH].known};
    double bulk = value(b, BENCH_ADD_BULK), store = through(value(b, BENCH_CLAIM), value(b, BENCH_SETTLE));

    k.process = k.guessed ? least(value(b, BENCH_SPAWN_PARALLEL), store) : value(b, BENCH_RUN);
    k.process_1s = least(k.process, b->c->conf->dqd.slots);
    k.batch = through(k.batch_guessed ? store : value(b, BENCH_RUN_BATCH), bulk);
    k.server = through(store, bulk);
    if (k.server < k.batch) /* dqd's handlers work while it claims */
        k.server = k.batch;
    return k;
}

static void add_carry(struct bench_rows *rows, const char *name, double per_second, const char *about, bool guessed)
{
    struct bench_row *row = rows_add(rows, "carry", name);

    row->unit = "tasks/day";
    row->known = per_second > 0;
    row->value = per_second * DAY_S;
    snprintf(row->about, sizeof row->about, "%s%s", about, guessed ? "; guessed, as dqd was not measured" : "");
}

/* One connection for each dqd, some for dq. */
static double room_for_hosts(const struct bench *b)
{
    const struct scratch_server *s = &b->server;
    return s->max_connections > s->connections && s->connections >= 0 ? (double)(s->max_connections - s->connections) : 0;
}

static void add_carries(const struct bench *b, const struct carried *k, struct bench_rows *rows)
{
    double command_ms = value(b, BENCH_ADD_COMMAND), hosts = k->process > 0 ? k->server / k->process : 0;

    add_carry(rows, "process", k->process, "this host, a process a task that ends at once", k->guessed);
    add_carry(rows, "process-1s", k->process_1s,
              "the same, where each handler takes a second; one tag alone only max_running times 86,400 (8 unless set)",
              k->guessed);
    add_carry(rows, "batch", k->batch, "this host, batch handlers that do nothing, tasks added in bulk", k->batch_guessed);
    add_carry(rows, "server", k->server, "all hosts together, at least: added in bulk, claimed, settled", false);
    add_carry(rows, "add", value(b, BENCH_ADD), "added one by one by one program that keeps its connection", false);
    add_carry(rows, "add-command", command_ms > 0 ? 1000 / command_ms : 0, "added by dq add, one after the other", false);
    struct bench_row *row = rows_add(rows, "carry", "hosts");
    row->unit = "hosts";
    row->known = hosts > 0;
    row->value = hosts < 1 ? 1 : (double)(int64_t)hosts;
    if (room_for_hosts(b) > 0 && room_for_hosts(b) < row->value)
        row->value = room_for_hosts(b);
    snprintf(row->about, sizeof row->about, "like this one, a process a task, until the server is the brake%s",
             k->guessed ? "; guessed" : "");
}

/* ---- what limits it */

static struct bench_row *add_brake(struct bench_rows *rows, const char *name, const char *setting)
{
    struct bench_row *row = rows_add(rows, "brake", name);
    snprintf(row->setting, sizeof row->setting, "%s", setting);
    return row;
}

#define SAY(field, ...) snprintf((field), sizeof(field), __VA_ARGS__)

static void size_text(char *ret, size_t size, int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double n = (double)bytes;
    int i = 0;

    for (; n >= 1024 && i < 4; i++)
        n /= 1024;
    snprintf(ret, size, "%.*f %s", n < 10 && i ? 1 : 0, n, units[i]);
}

static void brake_network(const struct bench *b, struct bench_row *row, const char *about)
{
    SAY(row->setting, "round trip");
    SAY(row->now, "%.2f ms", value(b, BENCH_ROUND_TRIP));
    SAY(row->about, "%s", about);
}

static void brake_process(const struct bench *b, const struct carried *k, struct bench_rows *rows)
{
    struct bench_row *row = add_brake(rows, "process", "cores");
    int slots = b->c->conf->dqd.slots;

    SAY(row->now, "%d", b->cores);
    SAY(row->about, "starting processes takes the time: batch handlers, more cores, more hosts");
    if (k->process >= value(b, BENCH_SPAWN_PARALLEL) * 0.6)
        return;
    if (slots < 2 * b->cores) {
        SAY(row->setting, "slots in [dqd]");
        SAY(row->now, "%d", slots);
        SAY(row->about, "fewer than two for each core: raise it");
    } else if (value(b, BENCH_ROUND_TRIP) > 2) {
        brake_network(b, row, "far below what this host can start: run dqd nearer to the server");
    } else {
        SAY(row->about, "far below the bare starts: the server, dqd and the handlers share these cores, or the server is slow");
    }
}

static void brake_slots(const struct bench *b, const struct carried *k, struct bench_rows *rows)
{
    struct bench_row *row = add_brake(rows, "process-1s", "slots in [dqd]");

    SAY(row->now, "%d", b->c->conf->dqd.slots);
    SAY(row->about, "for handlers that wait: raise it, and max_running of the tag (8 unless set)");
    if (k->process_1s < b->c->conf->dqd.slots) {
        SAY(row->setting, "cores");
        SAY(row->now, "%d", b->cores);
        SAY(row->about, "there are more slots than this host can start processes in a second");
    }
}

static bool pool_too_small(const struct scratch_server *s)
{
    return s->table_size > 0 && s->buffer_pool > 0 && s->table_size > s->buffer_pool;
}

/* What a commit takes beyond the way there and back. */
static double flush_ms(const struct bench *b)
{
    double ms = value(b, BENCH_COMMIT) - value(b, BENCH_ROUND_TRIP);
    return ms > 0 ? ms : 0;
}

static void brake_flush(const struct bench *b, struct bench_row *row)
{
    const struct scratch_server *s = &b->server;
    bool durable = s->flush_log == 1 || (s->binlog && s->sync_binlog == 1);

    SAY(row->setting, "innodb_flush_log_at_trx_commit%s", s->binlog ? ", sync_binlog" : "");
    if (s->binlog)
        SAY(row->now, "%" PRId64 ", %" PRId64, s->flush_log, s->sync_binlog);
    else
        SAY(row->now, "%" PRId64, s->flush_log);
    SAY(row->about, "%.2f of a commit's %.2f ms; %s", flush_ms(b), value(b, BENCH_COMMIT),
        durable ? "1 keeps what was acknowledged: a disk that flushes faster, or dq add --from"
                : "a power failure may lose what was acknowledged");
}

/* A claim is two round trips and a commit for a batch. */
static void brake_batch(const struct bench *b, struct bench_rows *rows)
{
    double claim_ms = value(b, BENCH_CLAIM) > 0 ? STEP * 1000 / value(b, BENCH_CLAIM) : 0;
    double store = through(value(b, BENCH_CLAIM), value(b, BENCH_SETTLE));
    int claim_batch = b->c->conf->dqd.claim_batch;
    struct bench_row *row = add_brake(rows, "batch", "the server's processor");

    SAY(row->now, "%.3f ms a task", store > 0 ? 1000 / store : 0);
    SAY(row->about, "claiming and settling rows: a faster server, or several databases, each with some tags");
    if (claim_batch < STEP) {
        SAY(row->setting, "claim_batch in [dqd]");
        SAY(row->now, "%d", claim_batch);
        SAY(row->about, "fewer at a time than measured here: raise it to %d", STEP);
    } else if (2 * value(b, BENCH_ROUND_TRIP) > 0.3 * claim_ms) {
        brake_network(b, row, "a third of each claim of 500, or more: run dqd nearer to the server");
    } else if (flush_ms(b) > 0.3 * claim_ms) {
        brake_flush(b, row);
    }
}

static void brake_add(const struct bench *b, struct bench_rows *rows)
{
    struct bench_row *row = add_brake(rows, "add", "");

    if (flush_ms(b) < value(b, BENCH_ROUND_TRIP))
        brake_network(b, row, "a commit waits for the way, not for the disk: add many at once (dq add --from)");
    else
        brake_flush(b, row);
}

static void brake_add_command(const struct bench *b, struct bench_rows *rows)
{
    const struct conf_mysql *m = &b->c->conf->mysql;
    double connect = value(b, BENCH_CONNECT);
    struct bench_row *row = add_brake(rows, "add-command", "start of a program");

    SAY(row->now, "%.1f ms", value(b, BENCH_ADD_COMMAND) - connect);
    SAY(row->about, "dq and its libraries are loaded for each: add many at once (dq add --from)");
    if (connect < value(b, BENCH_ADD_COMMAND) / 3)
        return;
    SAY(row->setting, "new connection");
    SAY(row->now, "%.1f ms", connect);
    SAY(row->about, "each dq add makes one: add many at once (dq add --from)%s",
        m->tls == CONF_TLS_PREFERRED && !m->host[0] ? "; a local socket needs no tls" : "");
}

/* A claim, an end and a look at what is next come between the starts of tasks that are due one by one. */
static void brake_lateness(const struct bench *b, struct bench_rows *rows)
{
    char text[WHEN_TEXT_SIZE];
    double late_ms = value(b, BENCH_LATENESS);
    struct bench_row *row = add_brake(rows, "lateness", "poll_interval in [dqd]");

    SAY(row->now, "%s", when_format_duration(text, b->c->conf->dqd.poll_interval_ms));
    SAY(row->about, "%swhat %s adds due at once may wait this long; a look costs %.2f ms",
        b->figures[BENCH_LATENESS].known ? "planned tasks start as measured; " : "planned tasks: not measured; ",
        b->c->conf->dqd.wake_dir[0] ? "another host" : "anybody", value(b, BENCH_PEEK));
    if (late_ms < LATE_MS)
        return;
    if (3 * value(b, BENCH_ROUND_TRIP) > late_ms / 2)
        brake_network(b, row, "a start takes several, and one after the other: run dqd nearer to the server");
    else if (3 * flush_ms(b) > late_ms / 2)
        brake_flush(b, row);
}

static void brake_memory(const struct bench *b, struct bench_rows *rows)
{
    const struct scratch_server *s = &b->server;
    char size[32] = "not known";
    struct bench_row *row = add_brake(rows, "server", "innodb_buffer_pool_size");

    if (s->buffer_pool >= 0)
        size_text(row->now, sizeof row->now, s->buffer_pool);
    if (s->table_size >= 0)
        size_text(size, sizeof size, s->table_size);
    row->warn = pool_too_small(s);
    if (row->warn)
        SAY(row->about, "the tasks of %s take %s: raise it beyond that, or keep finished ones for a shorter time ([retention])",
            b->c->conf->mysql.database, size);
    else if (s->table_size >= 0)
        SAY(row->about, "the tasks of %s take %s, which fits", b->c->conf->mysql.database, size);
    else
        SAY(row->about, "there are no tables in %s yet: count 0.3 kB a task, and its body and output", b->c->conf->mysql.database);
}

static void brake_connections(const struct bench *b, struct bench_rows *rows)
{
    const struct scratch_server *s = &b->server;
    struct bench_row *row = add_brake(rows, "hosts", "max_connections");

    SAY(row->now, "%" PRId64 ", %" PRId64 " in use", s->max_connections, s->connections);
    SAY(row->about, "each dqd needs one, and each dq while it runs: there is room for %.0f", room_for_hosts(b));
    row->warn = room_for_hosts(b) < 10;
}

struct bench_rows bench_judge(const struct bench *b)
{
    struct carried k = carried(b);
    struct bench_rows rows = {NULL, 0};

    add_measures(b, &rows);
    add_carries(b, &k, &rows);
    brake_process(b, &k, &rows);
    brake_slots(b, &k, &rows);
    brake_batch(b, &rows);
    brake_memory(b, &rows);
    brake_add(b, &rows);
    brake_add_command(b, &rows);
    brake_lateness(b, &rows);
    brake_connections(b, &rows);
    return rows;
}
