/*
 * keep.c - what starts that fail, hang or take long leave of the figures of processes that stay,
 * and what their reports say and cost.
 */
#include "runner/crew.c"

#include "runner/session.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int looks; /* at all processes */

/* Stands before the C library's. */
DIR *opendir(const char *path)
{
    looks += strcmp(path, "/proc") == 0;
    return fdopendir((int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static char name[] = "t";
static struct handler handler;
static struct handlers handlers = {.items = &handler, .count = 1};
static const struct contract contract = {.lines = true, .verdicts = true, .stays = true};
static struct plan plan;
static struct table table = {.handlers = &handlers, .plans = &plan};
static struct proto_out out;
static struct crew crew;
static volatile pid_t note;

static int begin(void **state)
{
    (void)state;
    handler = (struct handler){.name = name,
                               .keep = 3,
                               .max_running = 8,
                               .weight = HANDLERS_WEIGHT,
                               .start_timeout_ms = 60000,
                               .recycle = {1000, 3600000, 0, 1000}};
    plan = (struct plan){.handler = &handler, .contract = &contract};
    crew = (struct crew){.c = {.epoll = -1, .out = &out, .json = json_reader_new()}};
    crew_init(&crew, 8, NULL);
    return 0;
}

static int end_all(void **state)
{
    (void)state;
    while (crew.jobs.running_count) {
        struct process *p = crew.jobs.running[0];
        jobs_remove_process(&crew.jobs, p);
        stream_close(p, &crew.c);
        process_free(p);
    }
    free(crew.jobs.running);
    json_reader_free(crew.c.json);
    proto_out_done(&out);
    setup_free(plan.setup);
    return 0;
}

/* One that is being started. */
static struct process *starting(void)
{
    struct process *p = process_new(&table, &plan, &note);

    p->streams[PROCESS_IN].fd = dup(0);
    keep_begin(p);
    jobs_add_process(&crew.jobs, p);
    p->launching = true;
    crew.launching++;
    return p;
}

static struct process *idle(pid_t pid)
{
    struct process *p = starting();

    p->launching = false;
    jobs_set_pid(&crew.jobs, p, pid);
    keep_line(p, &crew.c, "{\"ready\":true}", 14, true);
    assert_true(p->kept.idle);
    return p;
}

static void a_failed_start_leaves_no_trace(void **state)
{
    struct process *p = starting();

    (void)state;
    assert_int_equal(note, NOTES_STARTS);
    p->launch.failure.code = ERR_SYSTEM;
    launched(&crew, p);
    assert_int_equal(plan.kept.live, 0);
    assert_int_equal(plan.kept.starting, 0);
    assert_int_equal(plan.kept.retired, 0);
    assert_int_equal(note, NOTES_CLEARED);
}

static void one_that_is_ready_before_its_start_is_over_is_idle_then(void **state)
{
    const struct process *p = starting();

    (void)state;
    keep_line(crew.jobs.running[0], &crew.c, "{\"ready\":true}", 14, true);
    assert_false(p->kept.idle);
    crew.jobs.running[0]->launch.pid = getsid(0);
    crew.jobs.running[0]->launch.begun_us = when_steady_us();
    handler.timeout_ms = 60000;
    launched(&crew, crew.jobs.running[0]);
    assert_true(p->kept.idle);
    assert_int_equal(p->until_why, PROCESS_RETIRED);
    assert_true(p->until_at <= when_steady() + handler.recycle.idle_ms);
}

static void what_the_first_start_has_prepared_is_used_by_others(void **state)
{
    (void)state;
    plan.setup = mem_zero(1, sizeof *plan.setup);
    assert_ptr_equal(starting()->launch.setup, plan.setup);
}

static void a_note_is_used_again(void **state)
{
    static volatile pid_t notes[NOTES_MAX + NOTES_KEPT];

    (void)state;
    assert_ptr_equal(keep_note(notes), &notes[NOTES_MAX]);
    for (size_t i = NOTES_MAX; i < NOTES_MAX + NOTES_KEPT; i++)
        notes[i] = 4711;
    assert_null(keep_note(notes));
    notes[NOTES_MAX + 1] = NOTES_CLEARED;
    assert_ptr_equal(keep_note(notes), &notes[NOTES_MAX + 1]);
}

static void a_start_that_hangs_keeps_no_other_process_from_a_job(void **state)
{
    struct process *p = starting(), *other = idle(getsid(0));
    struct job job = {.plan = &plan, .table = &table};

    (void)state;
    queue_add(&crew.queue, &job, name);
    plan.kept.waiting = 2;
    plan.hanging = 1;
    p->launch.slow = true;
    assert_ptr_equal(queue_pick(&crew.queue, 8, 8, 0), &job);
    queue_take(&crew.queue, &job);
    queue_leave(&crew.queue, &job);
    keep_leave(other); /* it is busy: nobody tries the same in vain */
    other->kept.left = false;
    plan.kept.live++;
    assert_false(keep_wants(&plan));
    plan.hanging = 0;
    plan.given_up = 1;
    assert_false(keep_wants(&plan));
    assert_true(keep_can_wait(p));
    plan.kept.live = 0;
    assert_false(keep_can_wait(p));
    assert_true(keep_wants(&plan)); /* and is told why not */
    p->launch.slow = false;
    plan.given_up = 0;
    plan.kept.live = 2;
    assert_false(keep_can_wait(p)); /* a start that fails at once would be tried at once */
}

static void a_report_costs_one_look_and_ends_with_zeros(void **state)
{
    const pid_t own = setsid(); /* in a namespace, the session that it was started in may be 0 */
    struct process *p = idle(own > 0 ? own : getsid(0));

    (void)state;
    (void)idle((pid_t)1 << 22);
    looks = 0;
    assert_true(keep_tell(&table, &crew.jobs, &out));
    assert_int_equal(looks, 1);
    assert_true(p->kept.memory > 0);
    assert_int_equal(crew.jobs.running[1]->kept.memory, 0);
    keep_leave(p);
    keep_leave(crew.jobs.running[1]);
    proto_out_done(&out);
    assert_false(keep_tell(&table, &crew.jobs, &out));
    assert_true(proto_pending(&out)); /* that there are none */
    proto_out_done(&out);
    assert_false(keep_tell(&table, &crew.jobs, &out));
    assert_false(proto_pending(&out));
}

static void reports_that_take_long_are_rare(void **state)
{
    (void)state;
    crew.tell_at = JOB_NEVER;
    crew.tell_from = when_steady() + 60000;
    tell_soon(&crew);
    assert_true(crew.tell_at == crew.tell_from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_failed_start_leaves_no_trace, begin, end_all),
        cmocka_unit_test_setup_teardown(one_that_is_ready_before_its_start_is_over_is_idle_then,
                                        begin, end_all),
        cmocka_unit_test_setup_teardown(what_the_first_start_has_prepared_is_used_by_others, begin,
                                        end_all),
        cmocka_unit_test(a_note_is_used_again),
        cmocka_unit_test_setup_teardown(a_start_that_hangs_keeps_no_other_process_from_a_job, begin,
                                        end_all),
        cmocka_unit_test_setup_teardown(a_report_costs_one_look_and_ends_with_zeros, begin,
                                        end_all),
        cmocka_unit_test_setup_teardown(reports_that_take_long_are_rare, begin, end_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
