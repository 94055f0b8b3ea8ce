/* Schedules: set, read, paused, deleted. */
#include "harness.h"
#include "store/ask/schedule_run.h"
#include "store/ask/schedule_store.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct event_act act = {.token = {1}, .actor = "alice@db1", .verb = "schedule-set"};
static struct schedule found;

static struct schedule every(char *name, char *expression)
{
    static char tag[] = "t", zone[] = "UTC", body[] = "b\0b";

    return (struct schedule){.name = name,
                             .tag = tag,
                             .body = body,
                             .body_size = 3,
                             .kind = TIMETABLE_EVERY,
                             .expression = expression,
                             .zone = zone,
                             .from_at = TASK_TIME_NONE,
                             .to_at = TASK_TIME_NONE,
                             .catch_up = SLOT_CATCH_UP_LATEST};
}

/* Makes one change, forgets what was there before, and finds what is there now. */
static struct schedule_change change(const struct schedule *set, const char *name)
{
    struct schedule_change c = {.set = set, .name = name};
    size_t bad;

    run(db, "DELETE FROM dq_event");
    ok(schedule_store_change(db, &c, 1, NULL, &act, &bad, &err));
    assert_true(bad == SIZE_MAX);
    schedule_store_change_done(&c, 1);
    schedule_row_done(&found);
    found = (struct schedule){0};
    if (set)
        ok(schedule_store_find(db, set->name, true, &found, &err));
    return c;
}

static int64_t now(void)
{
    int64_t at;

    ok(db_now(db, &at, &err));
    return at;
}

static void a_schedule_is_set_and_says_what_has_changed(void **state)
{
    char name[] = "backup", hourly[] = "1h", daily[] = "1d", tag[] = "other", owner[] = "me";
    struct schedule s = every(name, hourly);
    (void)state;

    struct schedule_change c = change(&s, NULL);
    assert_false(c.existed);
    assert_true(c.changed == UINT_MAX);
    assert_in_range(c.next_at - now(), 0, WHEN_HOUR);
    assert_int_equal(c.next_at % WHEN_HOUR, 0);
    assert_true(found.next_at == c.next_at && found.last_at == TASK_TIME_NONE);
    assert_int_equal(found.version, 1);
    assert_int_equal(found.body_size, 3);
    assert_memory_equal(found.body, "b\0b", 3);
    assert_string_equal(found.actor, "alice@db1");
    assert_null(found.owner);
    assert_int_equal(found.status, -1);
    assert_int_equal(schedule_row_differs(&found, &s), 0);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_event WHERE verb = 'schedule-set'"), 1);

    c = change(&s, NULL);
    assert_true(c.existed && c.changed == 0);
    assert_int_equal(found.version, 1);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_event"), 0);

    /* what does not change when its slots are leaves the next one alone */
    run(db, "UPDATE dq_schedule SET next_slot = '2020-01-01'");
    s.tag = tag;
    s.owner = owner;
    c = change(&s, NULL);
    assert_int_equal(c.changed, 1u << SCHEDULE_ROW_tag | 1u << SCHEDULE_ROW_owner);
    assert_int_equal(found.version, 2);
    assert_true(found.next_at < now());
    s.expression = daily;
    c = change(&s, NULL);
    assert_int_equal(c.changed, 1u << SCHEDULE_ROW_expression);
    assert_int_equal(found.next_at % WHEN_DAY, 0);
    assert_in_range(found.next_at - now(), 0, WHEN_DAY);
}

/* The server's clock was set back: a slot that has been decided is still ahead. */
static void a_slot_that_was_decided_does_not_come_again(void **state)
{
    char name[] = "backup", hourly[] = "1h", half[] = "30m";
    struct schedule s = every(name, hourly);
    (void)state;

    int64_t first_at = change(&s, NULL).next_at;
    run(db, "INSERT INTO dq_slot (name, slot, decision, decide_time)"
            " SELECT name, next_slot, 0, UTC_TIMESTAMP(3) FROM dq_schedule");
    s.expression = half;
    assert_int_equal(change(&s, NULL).next_at - first_at, WHEN_HOUR / 2);
    change(NULL, name);
    assert_int_equal(change(&s, NULL).next_at - first_at, WHEN_HOUR / 2);
}

/* The clock was ahead: a slot of then keeps none waiting, and neither counts as one that ran nor as
 * one that was missed. */
static void a_slot_far_ahead_says_nothing_of_this_week(void **state)
{
    char name[] = "backup", hourly[] = "1h", half[] = "30m";
    struct schedule s = every(name, hourly);
    (void)state;

    change(&s, NULL);
    run(db,
        "INSERT INTO dq_slot (name, slot, decision, decide_time, result)"
        " SELECT name, next_slot + INTERVAL n HOUR, d, UTC_TIMESTAMP(3), r FROM dq_schedule JOIN"
        " (SELECT -1 AS n, 0 AS d, 1 AS r UNION SELECT 7000, 0, 1 UNION SELECT 7001, 2, NULL) x");
    s.expression = half;
    assert_in_range(change(&s, NULL).next_at - now(), 0, WHEN_HOUR / 2);
    assert_true(found.done_at < now());
    assert_int_equal(found.missed_week, 0);
}

static void several_changes_are_made_together_or_not_at_all(void **state)
{
    char name[] = "a", more[] = "b", third[] = "c", hourly[] = "1h", wrong[] = "1 parsec";
    struct schedule a = every(name, hourly), b = every(more, hourly), c = every(third, wrong);
    struct schedule_change all[] = {{.name = name}, {.set = &b}, {.set = &c}};
    struct schedule *list;
    size_t bad, count;
    int64_t now_at;
    (void)state;

    change(&a, NULL);
    assert_int_equal(schedule_store_change(db, all, 3, NULL, &act, &bad, &err), ERR_DATA);
    assert_int_equal(bad, 2);
    assert_non_null(strstr(err.text, "schedule c: "));
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_schedule WHERE name = 'a'"), 1);
    c.expression = hourly;
    run(db, "DELETE FROM dq_event");
    ok(schedule_store_change(db, all, 3, NULL, &act, &bad, &err));
    assert_true(all[0].existed && !all[1].existed);
    assert_string_equal(all[0].old.name, "a");
    schedule_store_change_done(all, 3);
    ok(schedule_store_list(db, &(struct schedule_filter){.glob = "*"}, &list, &count, &now_at,
                           &err));
    assert_int_equal(count, 2);
    assert_string_equal(list[0].name, "b");
    assert_null(list[0].body);
    assert_in_range(list[0].next_at - now_at, 0, WHEN_HOUR);
    schedule_row_free(list, count);
    ok(schedule_store_list(db, &(struct schedule_filter){.glob = "c", .most = 1, .bodies = true},
                           &list, &count, &now_at, &err));
    assert_int_equal(count, 1);
    assert_string_equal(list[0].name, "c");
    assert_non_null(list[0].body);
    schedule_row_free(list, count);
    all[1].only_new = true;
    assert_int_equal(schedule_store_change(db, all + 1, 2, NULL, &act, &bad, &err), ERR_DUPLICATE);
    assert_int_equal(bad, 0);
    schedule_store_change_done(all, 3);
}

struct setter {
    struct db *d;
    struct schedule set[4];
    int rc;
    pthread_barrier_t *start;
};

static void *set_all(void *arg)
{
    struct setter *s = arg;
    struct schedule_change all[4] = {
        {.set = &s->set[0]}, {.set = &s->set[1]}, {.set = &s->set[2]}, {.set = &s->set[3]}};
    struct err why;
    size_t bad;

    pthread_barrier_wait(s->start);
    s->rc = ERR_TRANSIENT; /* a verb repeats it, too */
    for (int tries = 0; s->rc == ERR_TRANSIENT && tries < 50; tries++)
        s->rc = schedule_store_change(s->d, all, 4, NULL, &act, &bad, &why);
    if (s->rc < 0)
        fprintf(stderr, "# %s\n", why.text);
    schedule_store_change_done(all, 4);
    return NULL;
}

/* In two orders, so that they deadlock. */
static void two_that_set_the_same_schedules_at_once_both_do_it_wholly(void **state)
{
    char names[][2] = {"a", "b", "c", "d"}, hourly[] = "1h", one[] = "one", two[] = "two";
    struct setter setters[2] = {{.d = db}, {.d = harness_db()}};
    pthread_t threads[2];
    pthread_barrier_t start;
    (void)state;

    pthread_barrier_init(&start, NULL, 2);
    for (int i = 0; i < 8; i++) {
        struct schedule *set = &setters[i / 4].set[i % 4];

        *set = every(names[i < 4 ? i : 7 - i], hourly);
        set->tag = i < 4 ? one : two;
        setters[i / 4].start = &start;
    }
    for (int round = 0; round < 20; round++) {
        run(db, "DELETE FROM dq_schedule WHERE %d", round % 2);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, set_all, &setters[i]), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        assert_true(setters[0].rc == 0 && setters[1].rc == 0);
        assert_int_equal(number(db, "SELECT COUNT(DISTINCT tag) * 10 + COUNT(*) FROM dq_schedule"),
                         14);
    }
    pthread_barrier_destroy(&start);
    db_free(setters[1].d);
}

static void the_slots_of_a_pause_are_not_caught_up(void **state)
{
    char name[] = "backup", hourly[] = "1h";
    struct schedule s = every(name, hourly);
    (void)state;

    assert_int_equal(schedule_store_pause(db, name, true, NULL, &act, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "schedule backup does not exist"));
    change(&s, NULL);
    run(db, "DELETE FROM dq_event");
    assert_int_equal(ok(schedule_store_pause(db, name, true, "holiday", &act, &err)), 1);
    assert_int_equal(ok(schedule_store_pause(db, name, true, NULL, &act, &err)), 0);
    schedule_row_done(&found);
    ok(schedule_store_find(db, name, true, &found, &err));
    assert_string_equal(found.pause_reason, "holiday");
    assert_in_range(now() - found.paused_at, 0, WHEN_MINUTE);
    run(db, "UPDATE dq_schedule SET next_slot = next_slot - INTERVAL 5 HOUR");
    run(db, "DELETE FROM dq_event");
    assert_int_equal(ok(schedule_store_pause(db, name, false, NULL, &act, &err)), 1);
    assert_int_equal(ok(schedule_store_pause(db, name, false, NULL, &act, &err)), 0);
    schedule_row_done(&found);
    ok(schedule_store_find(db, name, true, &found, &err));
    assert_true(found.paused_at == TASK_TIME_NONE && !found.paused_by && !found.pause_reason);
    assert_in_range(found.next_at - now(), 0, WHEN_HOUR);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_event"), 1);
    assert_int_equal(
        number(db, "SELECT SUM(slots) FROM dq_slot WHERE decision = 4 AND is_open IS NULL"), 5);
    assert_int_equal(found.missed, 0);
    schedule_row_done(&found);
    found = (struct schedule){0};
}

static void a_schedule_is_run_by_hand(void **state)
{
    char name[] = "backup", hourly[] = "1h";
    struct schedule s = every(name, hourly);
    struct schedule_slot *slots;
    size_t count;
    uint64_t id;
    int64_t at;
    (void)state;

    assert_int_equal(schedule_run_now(db, name, &act, &id, &at, &err), ERR_NOT_FOUND);
    change(&s, NULL);
    run(db, "UPDATE dq_schedule SET missed = 3");
    run(db, "DELETE FROM dq_event");
    int64_t next_at = found.next_at;
    assert_int_equal(ok(schedule_run_now(db, name, &act, &id, &at, &err)), 1);
    assert_int_equal(number(db,
                            "SELECT missed_slots FROM dq_task WHERE id = %" PRIu64
                            " AND expected_time <= UTC_TIMESTAMP(3) AND message_body = 'b\\0b'",
                            id),
                     3);
    assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_event"), 1);
    schedule_row_done(&found);
    ok(schedule_store_find(db, name, true, &found, &err));
    assert_true(found.next_at == next_at && found.last_at == at && found.missed == 0);
    assert_true(found.task_id == id && found.status == TASK_PENDING);
    /* its run lives */
    assert_int_equal(schedule_run_now(db, name, &act, &id, &at, &err), ERR_STATE);
    assert_non_null(strstr(err.text, "is pending"));
    run(db, "UPDATE dq_schedule SET overlap = 2");
    usleep(2000); /* another millisecond */
    assert_int_equal(ok(schedule_run_now(db, name, &act, &id, &at, &err)), 1);
    ok(schedule_store_slots(db, name, 9, &slots, &count, &err));
    assert_int_equal(count, 2);
    assert_true(slots[0].at == at && slots[0].task_id == id && slots[0].decision == SLOT_BY_HAND);
    assert_true(slots[1].at < at && slots[1].missed == 3 && slots[1].status == TASK_PENDING);
    schedule_store_slots_free(slots, count);
}

static void slots_are_run_again(void **state)
{
    char name[] = "backup", hourly[] = "1h";
    struct schedule s = every(name, hourly);
    const int64_t at[] = {INT64_C(1790000000000), INT64_C(1790003600000)};
    struct schedule_slot *slots;
    size_t count;
    (void)state;

    change(&s, NULL);
    run(db, "INSERT INTO dq_slot (name, slot, slots, decision, decide_time, result) VALUES"
            " ('backup', '2026-09-21 14:13:20', 5, 3, '2026-09-21 15:00:00', 2)");
    run(db, "DELETE FROM dq_event");
    ok(schedule_run_backfill(db, name, at, 2, WHEN_HOUR, &act, &err));
    ok(schedule_store_slots(db, name, 9, &slots, &count, &err));
    assert_int_equal(count, 2);
    assert_true(slots[1].at == at[0] && slots[1].slots == 1 && slots[1].decision == SLOT_BY_HAND);
    assert_true(slots[1].status == TASK_PENDING);
    assert_int_equal(
        number(
            db,
            "SELECT TIMESTAMPDIFF(MINUTE, a.expected_time, b.expected_time) FROM dq_task a, dq_task b"
            " WHERE a.task_key = 'backup@2026-09-21T14:13:20Z' AND b.task_key = 'backup@2026-09-21T15:13:20Z'"),
        30);
    schedule_store_slots_free(slots, count);
    assert_int_equal(schedule_run_backfill(db, name, at, 1, 0, &act, &err), ERR_DUPLICATE);
    run(db, "UPDATE dq_task SET status = 1, live = NULL");
    run(db, "DELETE FROM dq_event");
    ok(schedule_run_backfill(db, name, at, 1, 0, &act, &err));
    ok(schedule_store_slots(db, name, 9, &slots, &count, &err));
    assert_int_equal(count, 2); /* the newest task of a slot counts */
    assert_int_equal(slots[1].status, TASK_PENDING);
    assert_int_equal(slots[0].status, TASK_DONE);
    schedule_store_slots_free(slots, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_schedule_is_set_and_says_what_has_changed, harness_setup),
        cmocka_unit_test_setup(a_slot_that_was_decided_does_not_come_again, harness_setup),
        cmocka_unit_test_setup(a_slot_far_ahead_says_nothing_of_this_week, harness_setup),
        cmocka_unit_test_setup(several_changes_are_made_together_or_not_at_all, harness_setup),
        cmocka_unit_test_setup(two_that_set_the_same_schedules_at_once_both_do_it_wholly,
                               harness_setup),
        cmocka_unit_test_setup(the_slots_of_a_pause_are_not_caught_up, harness_setup),
        cmocka_unit_test_setup(a_schedule_is_run_by_hand, harness_setup),
        cmocka_unit_test_setup(slots_are_run_again, harness_setup),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
