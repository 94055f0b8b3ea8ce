/*
 * judge.c - see judge.h.
 */
#include "bench/judge.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/when.h"
#include "bench/rig.h"
#include "bench/statement.h"
#include "conf/handlers.h"
#include "store/ask/task_add.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/param.h>

#define DAY_S 86400
#define LATE_MS 5 /* below this, the server is not blamed for late starts of planned tasks */

static struct judge_row *rows_add(struct judge_rows *r, const char *kind, const char *name)
{
    r->items = mem_resize(r->items, r->count + 1, sizeof *r->items);
    struct judge_row *row = &r->items[r->count++];
    *row = (struct judge_row){.kind = kind, .name = name};
    return row;
}

/* ---- measures */

static const struct {
    const char *name, *unit, *about;
} measures[FIGURE_COUNT] = {
    [FIGURE_ROUND_TRIP] = {"round-trip", "ms", "a statement that does nothing"},
    [FIGURE_COMMIT] = {"commit", "ms", "one row changed and committed: the cost of durability"},
    [FIGURE_CONNECT] = {"connect", "ms", "a new connection, ready for use"},
    [FIGURE_ADD_COMMAND] = {"add-command", "ms", "dq add in a shell, from start to exit"},
    [FIGURE_ADD] = {"add", "tasks/s", "added one by one over one connection"},
    [FIGURE_ADD_BULK] = {"add-bulk", "tasks/s",
                         "added in chunks of " TEXT_OF(TASK_CHUNK_ROWS) ", as by dq add --from"},
    [FIGURE_PEEK] = {"peek", "ms", "asking what is due: an idle dqd does this every poll_interval"},
    [FIGURE_CLAIM] = {"claim", "tasks/s", "claimed, " TEXT_OF(STATEMENT_CLAIM_ROWS) " at a time"},
    [FIGURE_SETTLE] = {"settle", "tasks/s",
                       "settled as done, " TEXT_OF(STATEMENT_CLAIM_ROWS) " at a time"},
    [FIGURE_SPAWN] = {"spawn", "starts/s", "sh -c : on this host, one after the other"},
    [FIGURE_SPAWN_PARALLEL] = {"spawn-parallel", "starts/s", "the same, several at a time"},
    [FIGURE_RUN] = {"run", "tasks/s", "dqd --once, with a shell that does nothing for each task"},
    [FIGURE_RUN_BATCH] = {"run-batch", "tasks/s",
                          "dqd --once, with a batch handler for " TEXT_OF(RIG_BATCH) " tasks"},
    [FIGURE_LATENESS] =
        {"lateness", "ms",
         "start after the due time, for planned tasks with a process each, in whole ms"},
};

static void add_measures(const struct judge_facts *f, struct judge_rows *rows)
{
    for (int i = 0; i < FIGURE_COUNT; i++) {
        const struct figure *figure = &f->figures[i];
        struct judge_row *row = rows_add(rows, "measure", measures[i].name);
        row->unit = measures[i].unit;
        row->known = figure->known;
        row->value = figure->value;
        row->has_p99 = figure->known && figure->has_p99;
        row->p99 = figure->p99;
        row->warn = !figure->known;
        snprintf(row->about, sizeof row->about, "%s",
                 figure->why[0] ? figure->why : measures[i].about);
    }
}

/* ---- capacity */

static double value(const struct judge_facts *f, enum figure_id id)
{
    return f->figures[id].known ? f->figures[id].value : 0;
}

/* Tasks per second that go through both, one after the other; 0: not known. */
static double through(double x, double y)
{
    return x > 0 && y > 0 ? 1 / (1 / x + 1 / y) : 0;
}

struct capacity {
    double process, process_1s, batch, server; /* tasks per second */
    bool guessed, batch_guessed;               /* dqd was not measured */
};

static struct capacity estimate(const struct judge_facts *f)
{
    struct capacity k = {.guessed = !f->figures[FIGURE_RUN].known,
                         .batch_guessed = !f->figures[FIGURE_RUN_BATCH].known};
    double bulk = value(f, FIGURE_ADD_BULK),
           store = through(value(f, FIGURE_CLAIM), value(f, FIGURE_SETTLE));

    k.process = k.guessed ? MIN(value(f, FIGURE_SPAWN_PARALLEL), store) : value(f, FIGURE_RUN);
    k.process_1s = MIN(k.process, f->conf->dqd.slots);
    k.batch = through(k.batch_guessed ? store : value(f, FIGURE_RUN_BATCH), bulk);
    k.server = through(store, bulk);
    if (k.server < k.batch) /* dqd's handlers work while it claims */
        k.server = k.batch;
    return k;
}

static void add_capacity(struct judge_rows *rows, const char *name, double per_second,
                         const char *about, bool guessed)
{
    struct judge_row *row = rows_add(rows, "capacity", name);

    row->unit = "tasks/day";
    row->known = per_second > 0;
    row->value = per_second * DAY_S;
    snprintf(row->about, sizeof row->about, "%s%s", about,
             guessed ? "; a guess, because dqd was not measured" : "");
}

/* One connection for each dqd, some for dq. */
static double room_for_hosts(const struct judge_facts *f)
{
    const struct scratch_server *s = &f->server;
    return s->max_connections > s->connections && s->connections >= 0
               ? (double)(s->max_connections - s->connections)
               : 0;
}

static void add_capacities(const struct judge_facts *f, const struct capacity *k,
                           struct judge_rows *rows)
{
    double command_ms = value(f, FIGURE_ADD_COMMAND),
           hosts = k->process > 0 ? k->server / k->process : 0;

    add_capacity(rows, "process", k->process,
                 "this host, one process per task, which exits at once", k->guessed);
    add_capacity(
        rows, "process-1s", k->process_1s,
        "the same with handlers that take a second; one tag alone: 86,400 times its max_running (default " TEXT_OF(
            HANDLERS_MAX_RUNNING) ")",
        k->guessed);
    add_capacity(rows, "batch", k->batch,
                 "this host, batch handlers that do nothing, tasks added in bulk",
                 k->batch_guessed);
    add_capacity(rows, "server", k->server,
                 "all hosts together, at least: added in bulk, claimed, settled", false);
    add_capacity(rows, "add", value(f, FIGURE_ADD),
                 "added one by one by a program that keeps its connection", false);
    add_capacity(rows, "add-command", command_ms > 0 ? 1000 / command_ms : 0,
                 "added by dq add, one after the other", false);
    struct judge_row *row = rows_add(rows, "capacity", "hosts");
    row->unit = "hosts";
    row->known = hosts > 0;
    row->value = hosts < 1 ? 1 : (double)(int64_t)hosts;
    if (room_for_hosts(f) > 0 && room_for_hosts(f) < row->value)
        row->value = room_for_hosts(f);
    snprintf(row->about, sizeof row->about,
             "hosts like this one, one process per task, that keep the server busy%s",
             k->guessed ? "; a guess" : "");
}

/* ---- bottlenecks ---- */

#define SAY(field, ...) snprintf((field), sizeof(field), __VA_ARGS__)

/* The rest is the value of the setting now. */
__attribute__((format(printf, 4, 5))) static void blame(struct judge_row *row, const char *setting,
                                                        const char *about, const char *now, ...)
{
    va_list ap;

    SAY(row->setting, "%s", setting);
    SAY(row->about, "%s", about);
    va_start(ap, now);
    vsnprintf(row->now, sizeof row->now, now, ap);
    va_end(ap);
}

static void size_text(char *ret, size_t size, int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double n = (double)bytes;
    int i = 0;

    for (; n >= 1024 && i < 4; i++)
        n /= 1024;
    snprintf(ret, size, "%.*f %s", n < 10 && i ? 1 : 0, n, units[i]);
}

static void blame_network(const struct judge_facts *f, struct judge_row *row, const char *about)
{
    blame(row, "round trip", about, "%.2f ms", value(f, FIGURE_ROUND_TRIP));
}

static void limit_process(const struct judge_facts *f, struct judge_row *row)
{
    int slots = f->conf->dqd.slots;

    if (estimate(f).process >= value(f, FIGURE_SPAWN_PARALLEL) * 0.6)
        blame(
            row, "cores",
            "most of the time goes into starting processes: use batch handlers, more cores or more hosts",
            "%d", f->cores);
    else if (slots < 2 * f->cores)
        blame(row, "slots in [dqd]", "fewer than two per core: raise it", "%d", slots);
    else if (value(f, FIGURE_ROUND_TRIP) > 2)
        blame_network(f, row,
                      "far fewer starts than this host manages: run dqd closer to the server");
    else
        blame(
            row, "cores",
            "far fewer starts than bare shells: the server, dqd and the handlers share these cores, or the server is slow",
            "%d", f->cores);
}

static void limit_slots(const struct judge_facts *f, struct judge_row *row)
{
    if (estimate(f).process_1s < f->conf->dqd.slots)
        blame(row, "cores", "more slots than this host can start processes in a second", "%d",
              f->cores);
    else
        blame(row, "slots in [dqd]",
              "if handlers mostly wait, raise it, and max_running of the tag (default " TEXT_OF(
                  HANDLERS_MAX_RUNNING) ")",
              "%d", f->conf->dqd.slots);
}

/* What a commit takes beyond the round trip. */
static double flush_ms(const struct judge_facts *f)
{
    double ms = value(f, FIGURE_COMMIT) - value(f, FIGURE_ROUND_TRIP);
    return ms > 0 ? ms : 0;
}

static void blame_flush(const struct judge_facts *f, struct judge_row *row)
{
    const struct scratch_server *s = &f->server;
    bool durable = s->flush_log == 1 || (s->binlog && s->sync_binlog == 1);

    SAY(row->setting, "innodb_flush_log_at_trx_commit%s", s->binlog ? ", sync_binlog" : "");
    if (s->binlog)
        SAY(row->now, "%" PRId64 ", %" PRId64, s->flush_log, s->sync_binlog);
    else
        SAY(row->now, "%" PRId64, s->flush_log);
    SAY(row->about, "takes %.2f of the %.2f ms of a commit; %s", flush_ms(f),
        value(f, FIGURE_COMMIT),
        durable ? "1 keeps what was acknowledged: use a disk that flushes faster, or dq add --from"
                : "a power failure may lose what was acknowledged");
}

/* A claim is two round trips and a commit for a batch. */
static void limit_batch(const struct judge_facts *f, struct judge_row *row)
{
    double claim_ms =
        value(f, FIGURE_CLAIM) > 0 ? STATEMENT_CLAIM_ROWS * 1000 / value(f, FIGURE_CLAIM) : 0;
    double store = through(value(f, FIGURE_CLAIM), value(f, FIGURE_SETTLE));

    if (f->conf->dqd.claim_batch < STATEMENT_CLAIM_ROWS)
        blame(row, "claim_batch in [dqd]",
              "smaller than what was measured here: raise it to " TEXT_OF(STATEMENT_CLAIM_ROWS),
              "%d", f->conf->dqd.claim_batch);
    else if (2 * value(f, FIGURE_ROUND_TRIP) > 0.3 * claim_ms)
        blame_network(f, row,
                      "takes a third or more of each claim of " TEXT_OF(
                          STATEMENT_CLAIM_ROWS) ": run dqd closer to the server");
    else if (flush_ms(f) > 0.3 * claim_ms)
        blame_flush(f, row);
    else
        blame(
            row, "the server's processor",
            "claiming and settling rows: use a faster server, or several databases with some of the tags each",
            "%.3f ms a task", store > 0 ? 1000 / store : 0);
}

static void limit_add(const struct judge_facts *f, struct judge_row *row)
{
    if (flush_ms(f) < value(f, FIGURE_ROUND_TRIP))
        blame_network(
            f, row,
            "a commit waits for the network, not for the disk: add many at once (dq add --from)");
    else
        blame_flush(f, row);
}

static void limit_add_command(const struct judge_facts *f, struct judge_row *row)
{
    const struct conf_mysql *m = &f->conf->mysql;
    double connect = value(f, FIGURE_CONNECT);

    if (connect < value(f, FIGURE_ADD_COMMAND) / 3)
        blame(row, "start of a program",
              "each dq add loads dq and its libraries: add many at once (dq add --from)", "%.1f ms",
              value(f, FIGURE_ADD_COMMAND) - connect);
    else
        blame(
            row, "new connection",
            m->tls == CONF_TLS_PREFERRED && !m->host[0]
                ? "each dq add makes one: add many at once (dq add --from); a local socket needs no TLS"
                : "each dq add makes one: add many at once (dq add --from)",
            "%.1f ms", connect);
}

/* Between the starts of tasks that become due one by one, dqd claims, settles, and peeks. */
static void limit_lateness(const struct judge_facts *f, struct judge_row *row)
{
    char text[WHEN_TEXT_SIZE];
    double late_ms = value(f, FIGURE_LATENESS);

    SAY(row->setting, "poll_interval in [dqd]");
    SAY(row->now, "%s", when_format_duration(text, f->conf->dqd.poll_interval_ms));
    SAY(row->about, "%swork that %s adds as due at once may wait this long; asking costs %.2f ms",
        f->figures[FIGURE_LATENESS].known ? "planned tasks start as measured; "
                                          : "planned tasks: not measured; ",
        f->conf->dqd.wake_dir[0] ? "another host" : "anyone", value(f, FIGURE_PEEK));
    if (late_ms < LATE_MS)
        return;
    if (3 * value(f, FIGURE_ROUND_TRIP) > late_ms / 2)
        blame_network(f, row, "a start takes several in a row: run dqd closer to the server");
    else if (3 * flush_ms(f) > late_ms / 2)
        blame_flush(f, row);
}

static void limit_memory(const struct judge_facts *f, struct judge_row *row)
{
    const struct scratch_server *s = &f->server;
    char size[32] = "not known";

    SAY(row->setting, "innodb_buffer_pool_size");
    if (s->buffer_pool >= 0)
        size_text(row->now, sizeof row->now, s->buffer_pool);
    if (s->table_size >= 0)
        size_text(size, sizeof size, s->table_size);
    row->warn = s->table_size > 0 && s->buffer_pool > 0 && s->table_size > s->buffer_pool;
    if (row->warn)
        SAY(row->about,
            "the tasks in %s take %s: raise it above that, or keep finished tasks for less time ([retention])",
            f->conf->mysql.database, size);
    else if (s->table_size >= 0)
        SAY(row->about, "the tasks in %s take %s, which fits", f->conf->mysql.database, size);
    else
        SAY(row->about,
            "there are no tables in %s yet: expect 0.3 kB per task, plus its body and output",
            f->conf->mysql.database);
}

static void limit_connections(const struct judge_facts *f, struct judge_row *row)
{
    const struct scratch_server *s = &f->server;

    SAY(row->setting, "max_connections");
    SAY(row->now, "%" PRId64 ", %" PRId64 " in use", s->max_connections, s->connections);
    SAY(row->about, "each dqd needs one, and so does each dq while it runs: there is room for %.0f",
        room_for_hosts(f));
    row->warn = room_for_hosts(f) < 10;
}

static const struct {
    const char *name;
    void (*limit)(const struct judge_facts *f, struct judge_row *row);
} bottlenecks[] = {
    {"process", limit_process},   {"process-1s", limit_slots},  {"batch", limit_batch},
    {"server", limit_memory},     {"add", limit_add},           {"add-command", limit_add_command},
    {"lateness", limit_lateness}, {"hosts", limit_connections},
};

struct judge_rows judge(const struct judge_facts *f)
{
    struct capacity k = estimate(f);
    struct judge_rows rows = {NULL, 0};

    add_measures(f, &rows);
    add_capacities(f, &k, &rows);
    for (size_t i = 0; i < sizeof bottlenecks / sizeof bottlenecks[0]; i++)
        bottlenecks[i].limit(f, rows_add(&rows, "bottleneck", bottlenecks[i].name));
    return rows;
}
