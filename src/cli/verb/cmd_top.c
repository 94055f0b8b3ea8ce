/*
 * cmd_top.c - dq top: the tags that wait, run and fail, on a full screen.
 *
 * Invariant: it only looks. An act is the command of that name, run on the same terminal, which
 * asks and records as it always does; the terminal is left as it was, however dq top ends.
 */
#include "cli/judge/top_load.h"
#include "cli/line/confirm.h"
#include "cli/line/live.h"
#include "cli/line/verbs.h"
#include "cli/show/redraw.h"

#include "base/interrupt.h"
#include "base/mem.h"
#include "base/task.h"
#include "base/text.h"
#include "base/when.h"
#include "store/db/db_connect.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVERY_MS 1000 /* at most so often */
#define HEAD_LINES 3  /* title, summary, heading */

struct top_values {
    const char *tag;
    int64_t every_ms;
};

struct top {
    struct cmd_context *c;
    struct top_data data;
    char *filter; /* NULL: all tags */
    enum top_sort sort;
    size_t chosen, first; /* tag; the first one that is on the screen */
    struct err trouble;   /* why there is nothing new; "": there is */
    bool quit;
};

/* ---- the screen */

#define BOLD "\033[1m"
#define CHOSEN "\033[7m"

struct page {
    struct buf text;
    unsigned room; /* lines */
};

/* Appends a line, if there is room; look: "" or how it is shown. */
static void put(struct page *p, const char *look, struct buf *line)
{
    if (p->room) {
        buf_printf(&p->text, "%s%s%s\n", look, line->data ? line->data : "", *look ? "\033[m" : "");
        p->room--;
    }
    buf_reset(line);
}

static void put_title(const struct top *t, struct buf *b, unsigned width)
{
    BUF_LOCAL struct buf left = BUF_INIT;
    buf_printf(&left, "dq top  by %s%s%s%s%s", top_view_sorts[t->sort], t->filter ? "  tag " : "",
               t->filter ? t->filter : "", t->trouble.code ? "  " : "", t->trouble.text);
    for (char *c = left.data; (c = strchr(c, '\n'));)
        *c = ' '; /* between globs */
    live_title(b, t->c, left.data, width);
}

/* question: what stands at the bottom in place of the keys; NULL: nothing. */
static void draw(struct top *t, const char *question)
{
    unsigned width, height;
    struct page page = {.text = BUF_INIT};
    BUF_LOCAL struct buf b = BUF_INIT;
    redraw_size(&width, &height);
    unsigned room = height > HEAD_LINES + 1 ? height - HEAD_LINES - 1 : 0;
    t->chosen = MIN(t->chosen, t->data.count ? t->data.count - 1 : 0);
    if (t->chosen < t->first)
        t->first = t->chosen;
    if (room && t->chosen >= t->first + room)
        t->first = t->chosen - room + 1;
    page.room = height - 1;
    put_title(t, &b, width);
    put(&page, t->trouble.code ? CHOSEN : "", &b);
    top_view_summary(&b, &t->data);
    put(&page, "", &b);
    top_view_heading(&b, &t->data, width);
    put(&page, BOLD, &b);
    for (size_t i = t->first; i < t->data.count && page.room; i++) {
        top_view_tag(&b, &t->data, &t->data.tags[i], width);
        put(&page, i == t->chosen ? CHOSEN : "", &b);
    }
    while (page.room)
        put(&page, "", &b);
    if (question)
        buf_printf(&page.text, BOLD "%s\033[m", question);
    else
        top_view_keys(&page.text, width);
    redraw_page(page.text.data);
    buf_done(&page.text);
}

/* ---- what is shown */

static void load(struct top *t)
{
    struct top_data fresh;
    struct err err = {0};
    MEM_LOCAL char *chosen = t->data.count ? mem_strdup(t->data.tags[t->chosen].name) : NULL;

    db_connect_seek_writable(t->c->db);
    if (top_load(t->c, t->filter, &fresh, &err) < 0) {
        bool away = err.code == ERR_LOST || err.code == ERR_UNAVAILABLE;
        t->trouble = err;
        if (away)
            err_set(&t->trouble, err.code, "database away, retrying");
    } else {
        t->trouble = (struct err){.code = 0};
        top_view_free(&t->data);
        t->data = fresh;
        top_view_sort(&t->data, t->sort);
    }
    for (size_t i = 0; chosen && i < t->data.count; i++)
        if (strcmp(t->data.tags[i].name, chosen) == 0)
            t->chosen = i;
}

/* ---- questions and acts */

/* A line that is typed at the bottom, behind a question that is inert. False: given up. */
static bool ask(struct top *t, const char *question, char *answer, size_t size)
{
    BUF_LOCAL struct buf b = BUF_INIT;
    size_t len = 0;
    int key = REDRAW_NONE;
    for (*answer = '\0'; key != '\n' && key != 27 && key != REDRAW_GONE;) {
        buf_reset(&b);
        buf_str(&b, question);
        text_escape(&b, answer, len, 0);
        draw(t, b.data);
        key = redraw_key();
        if ((key == '\b' || key == 127) && len)
            answer[--len] = '\0';
        else if (key >= ' ' && key != 127 && len + 1 < size)
            answer[len++] = (char)key, answer[len] = '\0';
    }
    return key == '\n';
}

/* Runs `dq WORDS...` on this terminal. An interrupt is meant for that alone, as in a shell. */
static void run_verb(const struct top *t, const char *const *words)
{
    const char *argv[12] = {"dq"};
    int n = 1, status;

    if (t->c->config_path) {
        argv[n++] = "--config";
        argv[n++] = t->c->config_path;
    }
    while (*words)
        argv[n++] = *words++;
    signal(SIGINT, SIG_IGN);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGINT, SIG_DFL);
        execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    signal(SIGINT, SIG_DFL);
    (void)confirm_key("-- any key: back to dq top ");
    fputs("\n", stderr);
}

static void come_back(struct top *t)
{
    struct err err;

    if (redraw_begin(&err) < 0)
        t->quit = true;
}

static void act(struct top *t, int key)
{
    const char *tag = t->data.count ? t->data.tags[t->chosen].name : NULL;

    if (!tag)
        return;
    MEM_LOCAL char *glob = task_tag_as_glob(tag);
    redraw_end();
    if (key == 'c')
        run_verb(t, (const char *const[]){"cancel", "--ask", "--tag", glob, NULL});
    else if (key == 't')
        run_verb(t, (const char *const[]){"retry", "--ask", "--tag", glob, NULL});
    else if (key == 'e')
        run_verb(t, (const char *const[]){"errors", "--tag", glob, NULL});
    else if (key == 'w')
        run_verb(t, (const char *const[]){"why", "--tag", tag, NULL});
    else if (key != 'p' && key != 'r')
        run_verb(t, (const char *const[]){"list", "--tag", glob, NULL});
    else if (confirm_tag(t->c, key == 'p' ? "pause" : "resume", tag)) /* these do not ask */
        run_verb(t, (const char *const[]){key == 'p' ? "pause" : "resume", "--", tag, NULL});
    come_back(t);
}

static void filter(struct top *t)
{
    char answer[TASK_TAG_MAX * 4 + 1];
    struct err err;

    if (!ask(t, "tags (a glob; empty: all): ", answer, sizeof answer))
        return;
    if (task_check_tag_wanted(answer, &err) < 0) { /* the command line says why */
        redraw_end();
        run_verb(t, (const char *const[]){"top", "--tag", answer, NULL});
        come_back(t);
        return;
    }
    free(t->filter);
    t->filter = *answer ? mem_strdup(answer) : NULL;
    t->chosen = t->first = 0;
}

/* True: what is shown has to be loaded again. */
static bool handle(struct top *t, int key)
{
    switch (key) {
    case 'q':
    case REDRAW_GONE:
        t->quit = true;
        return false;
    case 's':
        t->sort = (enum top_sort)((t->sort + 1) % TOP_SORT_COUNT);
        top_view_sort(&t->data, t->sort);
        return false;
    case REDRAW_UP:
    case 'k':
        t->chosen -= t->chosen > 0;
        return false;
    case REDRAW_DOWN:
    case 'j':
        t->chosen++;
        return false;
    case '/':
        filter(t);
        return true;
    case 'p':
    case 'r':
    case 'c':
    case 't':
    case 'e':
    case 'w':
    case '\n':
        act(t, key);
        return true;
    default:
        return false;
    }
}

static int run(struct cmd_context *c, struct err *err)
{
    const struct top_values *v = c->values;
    struct top t = {.c = c, .filter = mem_strdup(v->tag)};
    int64_t every_ms = MAX(v->every_ms, EVERY_MS), next_at = when_steady() + every_ms;
    int rc = top_load(c, t.filter, &t.data, err);
    if (rc == 0 && !isatty(STDIN_FILENO))
        rc = err_set(err, ERR_USAGE, "standard input must be a terminal");
    else if (rc == 0)
        rc = redraw_begin(err);
    if (rc == ERR_USAGE)
        err_set(err, rc, "%s; dq tags and dq stats show the same numbers", err->text);
    top_view_sort(&t.data, t.sort);
    while (rc == 0 && !t.quit && !interrupt_asked()) {
        if (when_steady() >= next_at) {
            load(&t);
            next_at = when_steady() + every_ms;
        }
        draw(&t, NULL);
        if (handle(&t, redraw_key()))
            next_at = 0;
    }
    if (rc == 0)
        redraw_end();
    top_view_free(&t.data);
    free(t.filter);
    return rc;
}

#define FIELD(name) offsetof(struct top_values, name)
static const struct cmd_option options[] = {
    {"tag", 't', CMD_TAGS, FIELD(tag), "GLOB", NULL, 0},
    {"every", 0, CMD_DURATION, FIELD(every_ms), "D", NULL, 0},
};

const struct cmd cmd_top = {
    .name = "top",
    CMD_OPTIONS(options, top_values),
    .reads_only = true,
    .formats = OUT_BIT(OUT_TABLE),
    .run = run,
};
