/*
 * forecast_store.c - see forecast_store.h. Invariant: tags whose tasks are counted and tags whose
 * tasks are estimated do not overlap, so a step is the sum of both.
 */
#include "store/ask/forecast_store.h"
#include "base/mem.h"
#include "base/when.h"
#include "store/ask/tag_count.h"
#include "store/ask/tag_store.h"
#include "store/db/columns.h"
#include "store/fleet/schedule_row.h"
#include "store/row/sql.h"
#include "store/work/peek_store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define TAGS_AT_ONCE 100
/* The tasks of this many are read; of more, those of each step are counted or estimated. */
#define READ_MOST 100000
/* Estimates of a step of a tag. Beyond that number, the tasks of a tag are spread evenly. */
#define PARTS_MOST 2000
#define HERDS_LISTED 1000
#define STEPS_MS 400 /* that counting them may take */
/* The steps of a tag with the most tasks are searched for a herd. */
#define SEARCHES 5

/* When the task of a slot will be due. */
struct slot_due {
    const char *tag;
    int64_t at;
};

struct reading {
    struct db *db;
    struct forecast *to;
    int64_t step_ms;
    struct slot_due *slots;
    size_t slot_count, slot_cap;
};

static struct forecast_step *step_at(const struct reading *w, int64_t at)
{
    int64_t step = (at - w->to->from_at) / w->step_ms;

    return at >= w->to->from_at && (size_t)step < w->to->count ? &w->to->steps[step] : NULL;
}

static int64_t end_of(const struct reading *w)
{
    return w->to->from_at + (int64_t)w->to->count * w->step_ms;
}

static void add_herd(struct forecast_step *s, const char *tag, int64_t at, uint64_t tasks)
{
    if (tasks < FORECAST_HERD || tasks <= s->herd)
        return;
    free(s->herd_tag);
    s->herd_tag = mem_strdup(tag);
    s->herd = tasks;
    s->herd_at = at - at % WHEN_SECOND;
}

/* ---- tags with few tasks, or all tags: all of their tasks are read */

#define STEP_COLUMNS(X) X(STEP_FIRST, "MIN(expected_time)") X(STEP_TASKS, "COUNT(*)")
enum { STEP_COLUMNS(COLUMNS_NAME) STEP_COUNT };
#define HERD_COLUMNS(X)                                                                            \
    X(HERD_TAG, "tag") X(HERD_AT, "MIN(expected_time)") X(HERD_TASKS, "COUNT(*)")
enum { HERD_COLUMNS(COLUMNS_NAME) HERD_COUNT };

static void take_step(const struct db_rows *r, void *arg)
{
    struct forecast_step *s = step_at(arg, sql_due(r, STEP_FIRST));

    if (s)
        s->tasks += db_u64(r, STEP_TASKS);
}

static void take_herd(const struct db_rows *r, void *arg)
{
    int64_t at = sql_due(r, HERD_AT);
    struct forecast_step *s = step_at(arg, at);
    MEM_LOCAL char *tag = sql_dup_tag(r, HERD_TAG);

    if (s)
        add_herd(s, tag, at, db_u64(r, HERD_TASKS));
}

/* Appends the tasks of these parts, which are of one level: a bounded number, even if the server's
 * estimate was wrong. count 0: of all tags. */
static void put_tasks(const struct reading *w, struct buf *sql, struct tag_count *const *parts,
                      size_t count)
{
    buf_str(sql, " FROM (SELECT tag, expected_time FROM dq_task FORCE INDEX (due) WHERE status ");
    if (count)
        sql_put(sql, "= ?", SQL_INT(parts[0]->status));
    else
        buf_str(sql, SQL_PENDING);
    for (size_t i = 0; i < count; i++)
        sql_put(sql, i ? ", ?" : " AND tag IN (?", SQL_TAG(parts[i]->tag));
    sql_put(sql, "? AND expected_time > ? AND expected_time < ?", SQL_PART(count ? ")" : NULL),
            SQL_TIME(w->to->now_at), SQL_TIME(end_of(w)));
    if (count)
        sql_put(sql, " LIMIT ?", SQL_INT(4 * READ_MOST));
    buf_str(sql, ") x");
}

static int read_tasks(struct reading *w, struct tag_count *const *parts, size_t count,
                      struct err *err)
{
    BUF_LOCAL struct buf tasks = BUF_INIT;

    put_tasks(w, &tasks, parts, count);
    int rc = sql_all(w->db, STEP_COUNT, take_step, w, err,
                     "SELECT ?? GROUP BY TIMESTAMPDIFF(MICROSECOND, ?, expected_time) DIV ?",
                     SQL_PART(COLUMNS_SELECT(STEP_COLUMNS)), SQL_PART(tasks.data),
                     SQL_TIME(w->to->from_at), SQL_INT(w->step_ms * 1000));
    if (rc == 0)
        rc = sql_all(w->db, HERD_COUNT, take_herd, w, err,
                     "SELECT ?? GROUP BY tag, TIMESTAMPDIFF(SECOND, ?, expected_time)"
                     " HAVING COUNT(*) >= ? ORDER BY COUNT(*) DESC LIMIT ?",
                     SQL_PART(COLUMNS_SELECT(HERD_COLUMNS)), SQL_PART(tasks.data),
                     SQL_TIME(w->to->from_at), SQL_INT(FORECAST_HERD), SQL_INT(HERDS_LISTED));
    return rc;
}

static int read_few(struct reading *w, struct tag_count *const *parts, size_t count,
                    struct err *err)
{
    struct tag_count *group[TAGS_AT_ONCE];
    int rc = 0;

    for (int level = 0; level < TASK_LEVELS; level++) {
        size_t n = 0;

        for (size_t i = 0; rc == 0 && i < count; i++) {
            if (parts[i]->status == sql_pending(level))
                group[n++] = parts[i];
            if (n == TAGS_AT_ONCE || (n && i == count - 1)) {
                rc = read_tasks(w, group, n, err);
                n = 0;
            }
        }
    }
    return rc;
}

/* ---- tags with many tasks: each step is counted while there is time, else estimated */

/* Halves a range of time until only the second with the most tasks is left, always going on with
 * the half that has more of them: near the end the estimates are exact. */
static int search_herd(struct reading *w, struct tag_count part, struct err *err)
{
    static const struct tag_count_how how = {.exact = false};
    struct forecast_step *s = step_at(w, part.from_at);
    int rc = 0;

    while (rc == 0 && part.until_at - part.from_at > WHEN_SECOND) {
        int64_t middle_at = part.until_at - (part.until_at - part.from_at) / 2;
        struct tag_count halves[2] = {part, part};

        halves[0].until_at = halves[1].from_at = middle_at - middle_at % WHEN_SECOND;
        rc = tag_count_estimate(w->db, halves, 2, err);
        part = halves[halves[1].tasks > halves[0].tasks];
        if (part.tasks < FORECAST_HERD / 2)
            return rc;
    }
    if (rc == 0)
        rc = tag_count_all(w->db, &how, &part, 1, err);
    if (rc == 0 && s)
        add_herd(s, part.tag, part.from_at, part.tasks);
    return rc;
}

/* Each step of these tags. */
static size_t make_parts(const struct reading *w, struct tag_count *const *tags, size_t count,
                         struct tag_count *parts)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < w->to->count; k++) {
            int64_t at = w->to->from_at + (int64_t)k * w->step_ms;

            parts[n++] = (struct tag_count){.tag = tags[i]->tag,
                                            .status = tags[i]->status,
                                            .from_at = MAX(at, w->to->now_at + 1),
                                            .until_at = at + w->step_ms};
        }
    }
    return n;
}

static void spread(const struct reading *w, const struct tag_count *tag)
{
    for (size_t k = 0; k < w->to->count; k++) {
        w->to->steps[k].tasks += tag->tasks / w->to->count;
        w->to->steps[k].sampled = true;
    }
}

static int read_many(struct reading *w, struct tag_count *const *tags, size_t count,
                     struct err *err)
{
    static const struct tag_count_how how = {.most_ms = STEPS_MS};
    size_t apart = MIN(count, MAX(PARTS_MOST / w->to->count, 1)), n;
    MEM_LOCAL struct tag_count *parts = mem_alloc((apart * w->to->count + 1) * sizeof *parts);

    for (size_t i = 0; i < count - apart; i++)
        spread(w, tags[i]);
    n = make_parts(w, tags + (count - apart), apart, parts);
    MEM_LOCAL struct tag_count **order = mem_alloc((n + 1) * sizeof(struct tag_count *));
    int rc = tag_count_all(w->db, &how, parts, n, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct forecast_step *s = step_at(w, parts[i].from_at);

        order[i] = &parts[i];
        if (s) {
            s->tasks += parts[i].tasks;
            s->sampled |= parts[i].sampled;
        }
    }
    if (rc == 0)
        tag_count_sort(order, n);
    for (size_t i = 0; rc == 0 && i < MIN(n, (size_t)SEARCHES); i++)
        if (order[n - 1 - i]->tasks >= FORECAST_HERD)
            rc = search_herd(w, *order[n - 1 - i], err);
    return rc;
}

/* ---- all */

static int read_due(struct reading *w, const char *tag_glob, struct err *err)
{
    static const struct tag_count_how how = {.skip = ~0U};
    struct tag_info *tags;
    size_t count;
    int64_t now_at;
    int rc = tag_store_list(w->db, tag_glob, &how, &tags, &count, &now_at, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++) {
        w->to->due += tags[i].due;
        w->to->due_sampled |= tags[i].due_sampled;
    }
    tag_store_free(tags, count);
    return 0;
}

static int read_steps(struct reading *w, struct tag_count *parts, size_t count, bool whole,
                      struct err *err)
{
    int rc = whole ? tag_store_is_small(w->db, count, err) : 0;

    if (rc)
        return rc < 0 ? rc : read_tasks(w, NULL, 0, err);
    MEM_LOCAL struct tag_count **order = mem_alloc((count + 1) * sizeof(struct tag_count *));
    uint64_t entries = 0;
    size_t few = 0;

    for (size_t i = 0; i < count; i++) {
        order[i] = &parts[i];
        parts[i].from_at = w->to->now_at + 1;
        parts[i].until_at = end_of(w);
    }
    rc = tag_count_estimate(w->db, parts, count, err);
    if (rc == 0)
        tag_count_sort(order, count);
    while (few < count && entries + order[few]->tasks <= READ_MOST / 2)
        entries += order[few++]->tasks;
    if (rc == 0)
        rc = read_few(w, order, few, err);
    if (rc == 0)
        rc = read_many(w, order + few, count - few, err);
    return rc;
}

/* ---- schedules ---- */

/* Slots that are looked at, of all schedules together; the others are estimated. */
#define SLOTS_WALKED 200000
#define SLOTS_LEAST 20 /* of one */

static void add_slots(struct reading *w, const struct schedule *s, size_t most)
{
    struct err none;
    struct timetable *t = schedule_row_timetable(s, &none);
    int64_t at = s->next_at - 1, offset_ms = slot_offset_ms(s->name, s->spread_ms);
    struct forecast_step *step;
    size_t n = 0;

    while (t && n < most && timetable_next(t, at, &at, NULL) && at < end_of(w)) {
        step = step_at(w, at + offset_ms);
        n++;
        if (!step)
            continue;
        step->tasks++;
        MEM_ROOM(w->slots, w->slot_count, w->slot_cap);
        w->slots[w->slot_count++] = (struct slot_due){s->tag, at + offset_ms};
    }
    if (n == most) {
        const int64_t period_ms = MAX(timetable_period_ms(t, at), 1);

        while ((step = step_at(w, at += MAX(period_ms, w->step_ms)))) {
            step->tasks += (uint64_t)MAX(w->step_ms / period_ms, 1);
            step->sampled = true;
        }
    }
    timetable_free(t);
}

static int by_second(const void *a, const void *b)
{
    const struct slot_due *x = a, *y = b;
    const int64_t apart = x->at / WHEN_SECOND - y->at / WHEN_SECOND;

    return apart ? (apart > 0) - (apart < 0) : strcmp(x->tag, y->tag);
}

static void find_herds(struct reading *w)
{
    if (w->slot_count)
        qsort(w->slots, w->slot_count, sizeof *w->slots, by_second);
    for (size_t i = 0, n; i < w->slot_count; i += n) {
        const struct slot_due *x = &w->slots[i];
        struct forecast_step *step = step_at(w, x->at);

        for (n = 1; i + n < w->slot_count && by_second(x, x + n) == 0;)
            n++;
        if (step)
            add_herd(step, x->tag, x->at, n);
    }
}

/* One task of each slot to come. */
static int read_slots(struct reading *w, const char *tag_glob, struct err *err)
{
    struct schedule *all = NULL;
    size_t count = 0;
    int rc = schedule_row_list(w->db, " WHERE c.next_slot > 0 AND c.paused_time IS NULL", false,
                               false, &all, &count, err);

    for (size_t i = 0; i < count; i++)
        if (all[i].kind != TIMETABLE_GAP && (!tag_glob || task_tag_glob(tag_glob, all[i].tag)))
            add_slots(w, &all[i], MAX(SLOTS_WALKED / count, SLOTS_LEAST));
    find_herds(w);
    free(w->slots);
    schedule_row_free(all, count);
    return rc;
}

int forecast_store_read(struct db *db, const struct forecast_ask *ask, struct forecast *ret,
                        struct err *err)
{
    LOCAL_BY(peek_store_done) struct peek peek = {0};
    struct forecast f = {.count = ask->steps};
    struct reading w = {.db = db, .to = &f, .step_ms = ask->step_ms};
    MEM_LOCAL struct tag_count *parts = NULL;
    size_t count = 0;
    int rc = peek_store_all(db, 0, &peek, err);

    if (rc == 0)
        rc = db_now(db, &f.now_at, err);
    if (rc == 0 && f.now_at <= 0)
        rc = db_odd_row(db, err);
    if (rc < 0)
        return rc;
    f.from_at = f.now_at / w.step_ms * w.step_ms;
    f.steps = mem_zero(f.count + 1, sizeof *f.steps);
    parts = mem_zero(peek.count + 1, sizeof *parts);
    for (size_t i = 0; i < peek.count; i++)
        if (!ask->tag_glob || task_tag_glob(ask->tag_glob, peek.tags[i].tag))
            parts[count++] = (struct tag_count){.tag = peek.tags[i].tag,
                                                .status = sql_pending(peek.tags[i].level)};
    rc = read_due(&w, ask->tag_glob, err);
    if (rc == 0)
        rc = read_steps(&w, parts, count, !ask->tag_glob, err);
    if (rc == 0)
        rc = read_slots(&w, ask->tag_glob, err);
    if (rc < 0)
        forecast_store_free(&f);
    else
        *ret = f;
    return rc;
}

void forecast_store_free(struct forecast *f)
{
    for (size_t i = 0; f->steps && i < f->count; i++)
        free(f->steps[i].herd_tag);
    free(f->steps);
    *f = (struct forecast){0};
}
