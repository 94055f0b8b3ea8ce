/*
 * survey.c - see survey.h.
 */
#include "cli/judge/survey.h"

#include "base/mem.h"
#include "base/text.h"
#include "cli/show/task_columns.h"
#include "store/ask/task_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define TAGS_NAMED 2    /* in a sentence */
#define TAG_WIDTH 40    /* there */
#define TAGS_PRINTED 20 /* in a table */
#define SAMPLE_COLUMNS "id,tag,key,status,attempt,due_in,late,expected,error"

void survey_add(struct survey *s, const struct task *t)
{
    size_t len = strlen(t->tag), at = index_find(&s->index, t->tag, len);
    if (at == INDEX_NONE) {
        MEM_ROOM(s->tags, s->count, s->cap);
        at = s->count++;
        s->tags[at] = (struct survey_tag){mem_strdup(t->tag), 0};
        index_add(&s->index, s->tags[at].tag, len);
    }
    s->tags[at].tasks++;
    s->tasks++;
    s->running += t->status == TASK_RUNNING;
    s->again += t->again_at != TASK_TIME_NONE;
    s->expiring += t->expires_at != TASK_TIME_NONE;
    if (s->sample_count < SURVEY_SAMPLES)
        s->samples[s->sample_count++] = t->id;
}

void survey_done(struct survey *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->tags[i].tag);
    free(s->tags);
    index_done(&s->index);
}

const char *survey_only_tag(const struct survey *s)
{
    return s->count == 1 ? s->tags[0].tag : NULL;
}

static int by_tasks(const void *a, const void *b)
{
    const struct survey_tag *x = a, *y = b;
    return x->tasks != y->tasks ? (x->tasks < y->tasks) - (x->tasks > y->tasks)
                                : strcmp(x->tag, y->tag);
}

/* Nothing is added afterwards: the index keeps the old order. */
static void sort(struct survey *s)
{
    if (s->count)
        qsort(s->tags, s->count, sizeof *s->tags, by_tasks);
}

void survey_put_tags(struct buf *b, struct survey *s)
{
    size_t named = s->count <= TAGS_NAMED + 1 ? s->count : TAGS_NAMED;

    sort(s);
    for (size_t i = 0; i < named; i++) {
        buf_str(b, i ? ", " : "");
        text_escape(b, s->tags[i].tag, strlen(s->tags[i].tag), TAG_WIDTH);
    }
    if (named < s->count)
        buf_printf(b, " and %zu more tags", s->count - named);
}

/* ---- tables ---- */

static const struct column columns[] = {
    OUT_FIELD(survey_tag, "tag", TEXT, tag, COLUMN_NARROW),
    OUT_FIELD(survey_tag, "tasks", U64, tasks, 0),
};

static int list_samples(struct cmd_context *c, const struct survey *s,
                        int (*each)(const struct task *t, void *arg), void *arg, struct err *err)
{
    struct task_filter f = {.ids = s->samples, .id_count = s->sample_count};
    return task_list(c->db, &f, false, each, arg, err);
}

static int print_sample(const struct task *t, void *arg)
{
    out_row(arg, t);
    return 0;
}

static void print_rest(uint64_t count, const char *what)
{
    if (count > 0)
        out_printf("... and %" PRIu64 " more %s\n", count, what);
}

int survey_print(struct cmd_context *c, struct survey *s, struct err *err)
{
    size_t shown = MIN(s->count, TAGS_PRINTED);
    const struct out_table samples = {task_columns, task_column_count, NULL, NULL, SAMPLE_COLUMNS};
    if (s->tasks == 0)
        return 0;
    sort(s);
    out_printf("\n");
    out_all(&c->style, OUT_OF(columns), NULL, s->tags, sizeof *s->tags, shown);
    print_rest(s->count - shown, "tags");
    out_printf("\n");
    int rc = cmd_now(c, &c->style.cell.now_at, err);
    if (rc < 0)
        return rc;
    struct out *out = out_new(&c->style, &samples, NULL);
    rc = out_end(out, list_samples(c, s, print_sample, out, err));
    print_rest(s->tasks - s->sample_count, "tasks");
    return rc;
}

struct members {
    struct buf *b;
    struct cmd_context *c;
    const char *separator;
};

static int put_sample(const struct task *t, void *arg)
{
    struct members *m = arg;
    buf_printf(m->b, "%s{", m->separator);
    out_put_members(m->b, &m->c->style.cell, task_columns, task_column_count - 1, t, NULL);
    buf_chr(m->b, '}');
    m->separator = ",";
    return 0;
}

int survey_put_members(struct buf *b, struct cmd_context *c, struct survey *s, struct err *err)
{
    struct members m = {b, c, ""};
    sort(s);
    out_put_array(b, &c->style.cell, "tags", OUT_OF(columns), s->tags, sizeof *s->tags, s->count);
    buf_str(b, ",\"sample\":[");
    int rc = cmd_now(c, &c->style.cell.now_at, err);
    if (rc == 0 && s->sample_count)
        rc = list_samples(c, s, put_sample, &m, err);
    buf_chr(b, ']');
    return rc;
}
