/*
 * results.c - any results from a server, read by the store, give a value or an error, and touch no
 * foreign memory.
 *
 * results_client.c replaces the client library and answers as the input says.
 */
#include "results.h"

#include "base/mem.h"
#include "store/ask/complete_store.h"
#include "store/ask/failure_list.h"
#include "store/ask/forecast_store.h"
#include "store/ask/health_store.h"
#include "store/ask/import_store.h"
#include "store/ask/lock_store.h"
#include "store/ask/tag_store.h"
#include "store/ask/targets.h"
#include "store/ask/task_add.h"
#include "store/ask/task_change.h"
#include "store/ask/task_get.h"
#include "store/ask/task_list.h"
#include "store/ask/why_store.h"
#include "store/db/db_session.h"
#include "store/fleet/attempt_store.h"
#include "store/fleet/event_store.h"
#include "store/fleet/handler_store.h"
#include "store/fleet/minute_store.h"
#include "store/fleet/output_store.h"
#include "store/fleet/poller_store.h"
#include "store/row/claim_ref.h"
#include "store/row/rows.h"
#include "store/row/task_array.h"
#include "store/schema/rights_store.h"
#include "store/schema/routines.h"
#include "store/schema/schema.h"
#include "store/schema/schema_verify.h"
#include "store/work/body_store.h"
#include "store/work/claim_store.h"
#include "store/work/lease_store.h"
#include "store/work/peek_store.h"
#include "store/work/retention_store.h"
#include "store/work/settle_store.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static const struct claim_owner owner = {.token = "0123456789abcde", .host = "here", .pid = 1};

static void check_text(const char *text)
{
    if (text && strlen(text) > 1 << 20)
        abort();
}

static int check_task(const struct task *t, void *arg)
{
    (void)arg;
    if (!t->tag || t->status < 0 || t->status > TASK_STATUS_UNKNOWN ||
        t->expected_at == TASK_TIME_NONE)
        abort();
    check_text(t->tag);
    check_text(t->key);
    check_text(t->error);
    check_text(task_status_name(t->status));
    return 0;
}

static void list(struct db *db)
{
    uint64_t ids[] = {1, 5, 7};
    unsigned how = results_next();
    struct task_filter f = {0};
    struct err err;

    f.sort = (enum task_sort)(how % 4);
    f.limit = how & 4 ? 20 : 0;
    f.tag_glob = how & 8 ? "m*" : how & 16 ? "mail" : NULL;
    if (how & 32)
        f.ids = ids, f.id_count = 3;
    else if (how & 64)
        f.since[TASK_FILTER_CREATED] = (struct task_filter_bound){true, 1};
    f.statuses = how & 128 ? TASK_ANY : 0;
    (void)!task_list(db, &f, how & 1, check_task, NULL, &err);
}

static void change(struct db *db)
{
    unsigned how = results_next();
    struct task_filter f = {0};
    struct task_change change = {.event = how % 2 ? TASK_CANCEL : TASK_RETRY,
                                 .expected_at = TASK_TIME_NONE};
    struct event_act act = {.token = "1", .actor = "a@h", .verb = "cancel"};
    const struct targets_steps steps = {&act, NULL, NULL};
    struct targets targets = {0};
    struct task_changed changed;
    struct rows_faults faults = {0};
    struct err err;

    if (targets_list(db, &f, TASK_ANY, NULL, NULL, &targets, &err) < 0)
        ;
    else if (how & 4)
        (void)!task_change(db, &targets, NULL, &steps, &changed, &faults, &err);
    else
        (void)!task_change(db, &targets, &change, &steps, &changed, &faults, &err);
    targets_done(&targets);
    rows_faults_done(&faults);
}

static void show(struct db *db)
{
    struct task t;
    struct task_attempt *attempts;
    size_t count;
    struct err err;

    if (task_get(db, 7, &t, &err) == 0) {
        check_task(&t, NULL);
        task_done(&t);
    }
    if (attempt_store_list(db, 7, &attempts, &count, &err) == 0)
        attempt_store_free(attempts, count);
}

static void check_chunk(const struct output_chunk *c, void *arg)
{
    (void)arg;
    if (c->size && ((const char *)c->data)[c->size])
        abort();
}

static void follow(struct db *db)
{
    const struct claim_ref attempt = {7, 3};
    const struct output_chunk chunk = {.seq = 1, .data = "x", .size = 1};
    struct err err;

    (void)!output_store_mark(db, &attempt, 1000, &err);
    (void)!output_store_add(db, &attempt, &chunk, &err);
    (void)!output_store_read(db, &attempt, 0, check_chunk, NULL, &err);
    (void)!output_store_trim(db, &attempt, 1, &err);
    (void)!output_store_drop_left(db, &err);
}

static void add(struct db *db)
{
    struct task_new t[3] = {{.tag = "mail", .expected_at = TASK_TIME_NONE},
                            {.tag = "mail", .key = "k", .expected_at = 1},
                            {.tag = "x", .expected_at = 1}};
    struct task_added added;
    size_t kept, bad;
    struct err err;
    unsigned how = results_next();

    if (how & 1)
        (void)!task_add_many(db, t, 3, (enum key_conflict)(how / 2 % 3), &kept, &bad, &err);
    else
        (void)!task_add(db, &t[how & 1], (enum key_conflict)(how / 2 % 3), &added, &err);
}

static bool is_under(void *arg, const char *tag)
{
    (void)arg;
    return *tag;
}

static void claim(struct db *db)
{
    struct peek peek = {0};
    struct peek_floor floors[TASK_LEVELS] = {{1, 1}};
    struct claim_ask ask = {.tag = "mail",
                            .limit = 5,
                            .shares = 1 + results_next() % 3,
                            .max_attempts = 3,
                            .lease_ms = 1000,
                            .under = is_under,
                            .tag_limit = {.running = results_next() % 3}};
    struct task_array won = {0};
    struct rows_faults faults = {0};
    unsigned how = results_next();
    struct claim_seen saw;
    size_t loaded;
    int64_t now_us, next_at[TASK_LEVELS];
    struct err err;

    if (how & 2)
        db_session_beware(db);
    ask.skip_locked = how & 4;
    ask.without_bodies = how & 8;
    ask.next = how & 16;
    if (peek_store_all(db, 1000, &peek, &err) == 0)
        for (size_t i = 0; i < peek.count; i++)
            check_text(peek.tags[i].tag);
    uint64_t newest = results_next();
    (void)!peek_store_news(db, &newest, &peek, &err);
    (void)!peek_store_next(db, "mail", floors, &now_us, next_at, &err);
    (void)!claim_store_claim(db, &owner, &ask, &won, &saw, how & 1 ? &faults : NULL, &err);
    (void)!claim_store_recover(db, &owner, NULL, 0, &won, &err);
    struct task **tasks = mem_alloc((won.count + 1) * sizeof *tasks);
    for (size_t i = 0; i < won.count; i++) {
        tasks[i] = &won.items[i];
        check_task(tasks[i], NULL);
    }
    if (won.count)
        (void)!body_store_measure(db, tasks, won.count, &err);
    if (won.count)
        (void)!body_store_load(db, tasks, won.count, 1000, &loaded, &err);
    free(tasks);
    rows_faults_done(&faults);
    task_array_done(&won);
    peek_store_done(&peek);
}

static void keep(struct db *db)
{
    struct claim_ref refs[3] = {{1, 1}, {2, 2}, {5, 3}};
    struct settlement s[3] = {
        {.id = 1, .version = 1, .event = TASK_SUCCEED, .exit_code = 0},
        {.id = 2, .version = 2, .event = TASK_TRY_LATER, .exit_code = 1, .error = "x"},
        {.id = 5, .version = 3, .event = TASK_GIVE_UP, .exit_code = 2}};
    bool lost[3], followed[3], applied[3], taken[600], careful = results_next() % 2;
    struct rows_faults faults = {0};
    enum lease_end ends[600] = {LEASE_TAKE_BACK};
    struct task_array expired = {0};
    size_t n;
    struct err err;

    (void)!lease_store_check(db, &owner, refs, 3, lost, results_next() % 2 ? followed : NULL, NULL,
                             &err);
    (void)!lease_store_renew(db, &owner, refs, 3, 1000, careful, lost, &faults, &err);
    (void)!settle_store_settle(db, &owner, s, 3, false, careful, applied, &faults, &err);
    if (lease_store_expired(db, NULL, NULL, 0, 30000, false, 500, &expired, &err) == 0 &&
        expired.count <= 500)
        (void)!lease_store_take_back(db, &expired, ends, NULL, careful, taken, &faults, &err);
    task_array_done(&expired);
    (void)!retention_store_expire(db, TASK_DONE, 1000, 100, NULL, &n, &faults, &err);
    rows_faults_done(&faults);
}

static void see_handlers(struct db *db)
{
    const uint64_t numbers[] = {1, 2};
    struct handler_seen seen;
    struct handler_row *rows;
    struct handler_rest *rests;
    size_t count;
    struct err err;

    (void)!handler_store_look(db, 1, &seen, &err);
    (void)!handler_store_clean(db, &err);
    if (handler_store_list(db, numbers, 2, &rows, &count, &err) == 0)
        handler_store_free(rows, count);
    if (handler_store_list_rests(db, &rests, &count, &err) == 0)
        handler_store_free_rests(rests, count);
}

static void look(struct db *db)
{
    struct tag_info *tags;
    struct poller_info *pollers;
    struct poller_share share;
    struct minute_answer minutes;
    size_t count;
    int64_t now_at;
    bool more;
    struct err err;

    if (tag_store_list(db, results_next() % 2 ? "m*" : NULL,
                       &(struct tag_count_how){.exact = results_next() % 2}, &tags, &count, &now_at,
                       &err) == 0)
        tag_store_free(tags, count);
    if (poller_store_list(db, &pollers, &count, &err) == 0)
        poller_store_free(pollers, count);
    if (minute_store_read(db, &(struct minute_ask){"m*", 3600000, 60000, 0}, &minutes, &err) == 0)
        minute_store_free(minutes.rows, minutes.count);
    (void)!minute_store_expire(db, 1000, 100, &more, &err);
    (void)!poller_store_beat(
        db, &owner,
        &(struct poller_say){.mode = "once", .clock_ahead_ms = 1, .careful = results_next() % 2},
        &share, &err);
    see_handlers(db);
}

static void forecast(struct db *db)
{
    const struct forecast_ask ask = {.tag_glob = results_next() % 2 ? "m*" : NULL,
                                     .step_ms = results_next() % 2 ? 60000 : 3600000,
                                     .steps = results_next() % 30 + 1};
    struct forecast f;
    struct err err;

    if (forecast_store_read(db, &ask, &f, &err) < 0)
        return;
    if (f.count != ask.steps || f.from_at > f.now_at)
        abort();
    for (size_t i = 0; i < f.count; i++)
        if (!f.steps[i].herd != !f.steps[i].herd_tag)
            abort();
    forecast_store_free(&f);
}

static void explain(struct db *db)
{
    const struct task task = {.id = 7, .tag = mem_strdup("mail"), .expected_at = 1};
    struct why_tag why;
    uint64_t id;
    struct err err;

    (void)!why_store_read(db, &task, &why, &err);
    why_store_done(&why);
    (void)!why_store_first(db, "mail", &id, &err);
    free(task.tag);
}

static void examine(struct db *db)
{
    static const char *const names[] = {"log_bin", "read_only"};
    const struct buf sql = {.data = mem_strdup("SELECT 1"), .len = 8};
    char *values[2];
    struct health_clock clock;
    struct lock_holder holder;
    struct health_plan plan;
    struct health_rows rows;
    struct err err;

    (void)!health_store_settings(db, names, 2, values, &err);
    free(values[0]);
    free(values[1]);
    (void)!health_store_clock(db, &clock, &err);
    (void)!lock_store_oldest(db, &holder, &err);
    (void)!lock_store_holder(db, 1, &holder, &err);
    (void)!health_store_plan(db, &sql, &plan, &err);
    (void)!health_store_rows(db, &rows, &err);
    free(sql.data);
}

static void see_failure(const struct failure *x, void *arg)
{
    (void)arg;
    check_text(x->tag);
    check_text(x->error);
    check_text(task_status_name(x->status));
}

static void see_word(const char *word, const char *help, void *arg)
{
    (void)arg;
    check_text(word);
    check_text(help);
}

/* What operators read of the past, and words for the shell. */
static void review(struct db *db)
{
    const unsigned how = results_next();
    struct failure_filter failures = {1000, 2000, how % 4, how % 3};
    enum complete_store_kind kind = (enum complete_store_kind)(how % (COMPLETE_STORE_KEYS + 1));
    struct event_row *rows;
    size_t n;
    uint64_t count;
    int64_t left_at;
    struct err err;

    (void)!failure_list(db, &failures, see_failure, NULL, &left_at, &err);
    if (event_store_list(db, how % 2, 1000, 2000, 1 + how % 4, &rows, &n, &left_at, &err) == 0) {
        for (size_t i = 0; i < n; i++) {
            check_text(rows[i].who);
            check_text(rows[i].event);
            check_text(rows[i].detail);
            check_text(rows[i].tag);
        }
        event_store_free(rows, n);
    }
    (void)!event_store_add_own(db, &owner, "dqd-start", 0, NULL, &err);
    (void)!event_store_add_lost(db, &owner, &count, &err);
    (void)!complete_store_list(db, kind, "m", see_word, NULL, &err);
    (void)!task_list_count(db, TASK_ANY, how % 3, &count, &err);
}

static void import(struct db *db)
{
    const unsigned how = results_next();
    struct event_act act = {.token = "1", .actor = "a@h", .verb = "import"};
    struct import_item items[3] = {{.line = 1}, {.line = 2}, {.line = 3}};
    size_t bad;
    struct err err;

    for (size_t i = 0; i < 3; i++) {
        task_init(&items[i].task);
        items[i].task.id = 7 * i + 1;
        items[i].task.tag = mem_strdup("mail");
        items[i].task.key = i ? mem_strdup(i == 1 ? "k" : "1") : NULL;
        items[i].task.expected_at = 1;
    }
    items[1].attempts = mem_zero(1, sizeof *items[1].attempts);
    items[1].attempt_count = how & 2 ? 1 : 0;
    if (import_store_check(db, items, 3, how & 1, &bad, &err) == 0)
        (void)!import_store_add(db, items, 3, how & 1, &act, &err);
    items[1].attempt_count = 1;
    import_store_free(items, 3);
}

static void see_routine(const char *name, enum routines_action action, void *arg)
{
    (void)action;
    (void)arg;
    check_text(name);
}

static void see_rights(struct db *db)
{
    struct buf missing[RIGHTS_ROLE_COUNT] = {BUF_INIT};
    struct routines_state state;
    struct buf lost = BUF_INIT;
    unsigned made;
    struct err err;

    (void)!rights_store_missing(db, missing, &err);
    for (size_t i = 0; i < RIGHTS_ROLE_COUNT; i++)
        buf_done(&missing[i]);
    (void)!routines_check(db, &state, &err);
    (void)!routines_plan(db, see_routine, NULL, &err);
    (void)!routines_install(db, &made, &lost, &err);
    buf_done(&lost);
}

static void verify(struct db *db)
{
    struct err err;
    struct schema_range range;

    (void)!schema_check(db, &err);
    (void)!schema_read(db, &range, &err);
    (void)!schema_verify(db, schema_latest - (results_next() % 2), NULL, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static void (*const parts[])(struct db * db) = {list,    change,  show,   add,    claim,
                                                    keep,    look,    verify, follow, forecast,
                                                    explain, examine, review, import, see_rights};
    const struct conf_mysql conf = {.database = NULL};

    results_begin(bytes, len);
    struct db *db = db_new(&conf);
    parts[results_next() % (sizeof parts / sizeof *parts)](db);
    db_free(db);
    if (!results_ended())
        abort();
    return 0;
}
