/* Slots when hosts have different time zones, and when new ones arrive. */
#include "harness.h"
#include "store/ask/schedule_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char zones_dir[] = "/tmp/dq-zones-XXXXXX";

/* A directory of zones with one, Zone/One. */
static void make_zones(const char *name, const char *zone)
{
    char command[512];

    snprintf(
        command, sizeof command,
        "cd %s && mkdir -p %s/Zone && cp /usr/share/zoneinfo/%s %s/Zone/One && echo '# version %s' >%s/tzdata.zi",
        zones_dir, name, zone, name, name, name);
    assert_int_equal(system(command), 0);
}

static void use_zones(const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", zones_dir, name);
    setenv("TZDIR", path, 1);
}

static int zones_end(void **state)
{
    char command[512];

    (void)state;
    unsetenv("TZDIR");
    snprintf(command, sizeof command, "rm -rf %s", zones_dir);
    return system(command);
}

/* Noon is 04:00 by the older zones, 03:00 by the newer ones. */
static void the_newest_time_zones_count(void **state)
{
    struct schedule s = {.name = (char[]){"noon"},
                         .tag = (char[]){"t"},
                         .expression = (char[]){"0 12 * * *"},
                         .zone = (char[]){"Zone/One"},
                         .from_at = TASK_TIME_NONE,
                         .to_at = TASK_TIME_NONE};
    struct schedule_change change = {.set = &s};
    const struct event_act act = {.actor = "a", .verb = "schedule set"};
    bool more;
    size_t bad;
    (void)state;
    assert_non_null(mkdtemp(zones_dir));
    make_zones("2020a", "Asia/Shanghai");
    make_zones("2020b", "Asia/Tokyo");
    use_zones("2020a");
    ok(schedule_store_change(db, &change, 1, NULL, &act, &bad, &err));
    assert_one("dq_schedule WHERE HOUR(next_slot) = 4 AND zone_version = '2020a'");
    ok(slot_store_renew(db, &more, &err));
    assert_one("dq_schedule WHERE version = 1");
    /* only slots that are not reached move */
    use_zones("2020b");
    run(db, "UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(3)");
    ok(slot_store_renew(db, &more, &err));
    assert_one("dq_schedule WHERE version = 1");
    run(db, "UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR");
    ok(slot_store_renew(db, &more, &err));
    assert_one(
        "dq_schedule WHERE HOUR(next_slot) = 3 AND MINUTE(next_slot) = 0 AND zone_version = '2020b' AND version = 2");
    /* a host with older ones leaves the slot to others for a while */
    use_zones("2020a");
    run(db, "UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(3)");
    struct slot_store_done done = decide(db);
    assert_int_equal(done.decided, 0);
    assert_true(done.look_at > 0);
    use_zones("2020b");
    assert_int_equal(decide(db).decided, 1);
    assert_one("dq_schedule WHERE HOUR(next_slot) = 3 AND zone_version = '2020b'");
    run(db, "UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(3) - INTERVAL 6 SECOND, overlap = 2");
    use_zones("2020a");
    assert_int_equal(decide(db).decided, 1);
    assert_one("dq_schedule WHERE HOUR(next_slot) = 4 AND zone_version = '2020a'");
    /* who resumes it computes no next slot that is not reached */
    run(db,
        "UPDATE dq_schedule SET next_slot = next_slot + INTERVAL 1 DAY, zone_version = '2020b'");
    assert_int_equal(schedule_store_pause(db, s.name, true, NULL, &act, &err), 1);
    assert_int_equal(schedule_store_pause(db, s.name, false, NULL, &act, &err), 1);
    assert_one("dq_schedule WHERE paused_time IS NULL AND zone_version = '2020b'");
    schedule_store_change_done(&change, 1);
}

static void make_four_zones(void)
{
    strcpy(zones_dir + strlen(zones_dir) - 6, "XXXXXX");
    assert_non_null(mkdtemp(zones_dir));
    make_zones("2020a", "Asia/Shanghai");
    make_zones("2020b", "Asia/Tokyo");
    make_zones("2020c", "Australia/Darwin"); /* half an hour ahead of Tokyo */
    make_zones("2020d", "Asia/Shanghai");
}

/* A schedule of long ago, by these zones, which are so far ahead of UTC: its slots are in so many
 * minutes, and an hour later, each day; or each hour. */
static void set_schedule(const char *zones, int hours, const char *kind, int minutes)
{
    char expression[40];
    struct schedule s = {.name = (char[]){"s"},
                         .tag = (char[]){"t"},
                         .expression = expression,
                         .zone = (char[]){"Zone/One"},
                         .from_at = TASK_TIME_NONE,
                         .to_at = TASK_TIME_NONE,
                         .catch_up = SLOT_CATCH_UP_LATEST};
    struct schedule_change change = {.set = &s};
    const struct event_act act = {.actor = "a", .verb = "schedule set"};
    const int at = (int)number(db,
                               "SELECT MINUTE(t) * 100 + HOUR(t) FROM"
                               " (SELECT UTC_TIMESTAMP() + INTERVAL %d MINUTE AS t) x",
                               hours * 60 + minutes);
    size_t bad;

    if (!strcmp(kind, "hourly"))
        snprintf(expression, sizeof expression, "%d * * * *", at / 100);
    else if (!strcmp(kind, "daily"))
        snprintf(expression, sizeof expression, "%d %d * * *", at / 100, at % 100);
    else
        snprintf(expression, sizeof expression, "%d %d,%d * * *", at / 100, at % 100,
                 (at % 100 + 1) % 24);
    use_zones(zones);
    run(db, "DELETE FROM dq_schedule");
    run(db, "DELETE FROM dq_slot");
    ok(schedule_store_change(db, &change, 1, NULL, &act, &bad, &err));
    schedule_store_change_done(&change, 1);
    run(db, "UPDATE dq_schedule SET update_time = UTC_TIMESTAMP(3) - INTERVAL 1 DAY");
}

static void renew(const char *zones)
{
    bool more;

    use_zones(zones);
    ok(slot_store_renew(db, &more, &err));
}

/* New time zones arrive half an hour before or after the slot of a day: it has one decision. */
static void the_slot_of_the_day_of_new_time_zones_is_decided_once(void **state)
{
    (void)state;
    make_four_zones();
    set_schedule("2020a", 8, "daily", 30);
    renew("2020b"); /* it is past by the newer ones, and not left to a host with older ones */
    use_zones("2020a");
    assert_int_equal(decide(db).decided, 0);
    assert_one("dq_slot WHERE decision = 1");
    assert_one("dq_schedule WHERE next_slot > UTC_TIMESTAMP(3) + INTERVAL 23 HOUR");
    set_schedule("2020b", 9, "daily", -30);
    renew("2020d"); /* it was decided by the older ones */
    assert_one("dq_schedule WHERE next_slot > UTC_TIMESTAMP(3) + INTERVAL 24 HOUR");
}

/* The first slot of several is not lost, and none that is decided comes again. */
static void new_time_zones_move_to_the_first_slot_that_is_not_decided(void **state)
{
    static const struct {
        const char *older, *newer, *kind;
        int ahead, next, moved; /* minutes from now */
        bool decided;           /* an hour before the next one */
        int late;               /* are past by the newer ones, and run at once */
    } cases[] = {
        {"2020a", "2020b", "two a day", 8, 90, 30, false, 0},
        {"2020a", "2020b", "two a day", 8, 30, 30, false, 1},
        {"2020b", "2020d", "two a day", 9, 30, 90, false, 0},
        {"2020b", "2020c", "hourly", 9, 20, 50, true, 1},
        {"2020a", "2020b", "hourly", 8, 30, 30, true, 0},
    };
    (void)state;
    make_four_zones();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set_schedule(cases[i].older, cases[i].ahead, cases[i].kind, cases[i].next);
        if (cases[i].decided) /* but did not run */
            run(db,
                "INSERT INTO dq_slot (name, slot, slots, decision, decide_time) SELECT name,"
                " next_slot - INTERVAL 5 HOUR, 5, 4, next_slot - INTERVAL 1 HOUR FROM dq_schedule");
        renew(cases[i].newer);
        if (number(db,
                   "SELECT ABS(TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(3) + INTERVAL %d MINUTE,"
                   " next_slot)) < 300 FROM dq_schedule WHERE name = 's'",
                   cases[i].moved) != 1)
            fail_msg("case %zu: not in %d minutes", i, cases[i].moved);
        assert_int_equal(number(db, "SELECT COUNT(*) FROM dq_slot WHERE decision = 1"),
                         cases[i].late);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_newest_time_zones_count, harness_setup, zones_end),
        cmocka_unit_test_setup_teardown(the_slot_of_the_day_of_new_time_zones_is_decided_once,
                                        harness_setup, zones_end),
        cmocka_unit_test_setup_teardown(new_time_zones_move_to_the_first_slot_that_is_not_decided,
                                        harness_setup, zones_end),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
