/* Slots when hosts have different time zones, and when new ones arrive. */
#include "harness.h"
#include "store/ask/schedule_store.h"
#include "store/work/slot_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct slot_store_done decide(struct db *d)
{
    struct slot_store_done done;

    ok(slot_store_decide(d, &done, &err));
    return done;
}

/* Fails unless there is 1, as the SELECT counts. */
static void one(const char *what)
{
    if (number(db, "SELECT COUNT(*) FROM %s", what) != 1)
        fail_msg("not one: %s", what);
}

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
    one("dq_schedule WHERE HOUR(next_slot) = 4 AND zone_version = '2020a'");
    ok(slot_store_renew(db, &more, &err));
    one("dq_schedule WHERE version = 1");
    /* only slots that are not reached move */
    use_zones("2020b");
    run(db, "UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(3)");
    ok(slot_store_renew(db, &more, &err));
    one("dq_schedule WHERE version = 1");
    run(db, "UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR");
    ok(slot_store_renew(db, &more, &err));
    one("dq_schedule WHERE HOUR(next_slot) = 3 AND MINUTE(next_slot) = 0 AND zone_version = '2020b' AND version = 2");
    /* a host with older ones leaves the slot to others for a while */
    use_zones("2020a");
    run(db, "UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(3)");
    struct slot_store_done done = decide(db);
    assert_int_equal(done.decided, 0);
    assert_true(done.look_at > 0);
    use_zones("2020b");
    assert_int_equal(decide(db).decided, 1);
    one("dq_schedule WHERE HOUR(next_slot) = 3 AND zone_version = '2020b'");
    run(db, "UPDATE dq_schedule SET next_slot = UTC_TIMESTAMP(3) - INTERVAL 6 SECOND, overlap = 2");
    use_zones("2020a");
    assert_int_equal(decide(db).decided, 1);
    one("dq_schedule WHERE HOUR(next_slot) = 4 AND zone_version = '2020a'");
    schedule_store_change_done(&change, 1);
}

/* New time zones arrive half an hour before or after the slot of a day: it has one decision. */
static void the_slot_of_the_day_of_new_time_zones_is_decided_once(void **state)
{
    static const struct {
        const char *older, *newer, *ahead; /* of UTC, by the older ones */
    } cases[] = {{"2020a", "2020b", "8"}, {"2020c", "2020d", "9"}};
    const struct event_act act = {.actor = "a", .verb = "schedule set"};
    bool more;
    size_t bad;

    (void)state;
    strcpy(zones_dir + strlen(zones_dir) - 6, "XXXXXX");
    assert_non_null(mkdtemp(zones_dir));
    make_zones("2020a", "Asia/Shanghai");
    make_zones("2020b", "Asia/Tokyo");
    make_zones("2020c", "Asia/Tokyo");
    make_zones("2020d", "Asia/Shanghai");
    for (size_t i = 0; i < 2; i++) {
        char expression[40];
        int64_t later = number(db,
                               "SELECT MINUTE(UTC_TIMESTAMP() + INTERVAL 30 MINUTE) * 100 +"
                               " HOUR(UTC_TIMESTAMP() + INTERVAL %s*60 %s 30 MINUTE)",
                               cases[i].ahead, i ? "-" : "+");
        struct schedule s = {.name = (char[]){"daily"},
                             .tag = (char[]){"t"},
                             .expression = expression,
                             .zone = (char[]){"Zone/One"},
                             .from_at = TASK_TIME_NONE,
                             .to_at = TASK_TIME_NONE,
                             .catch_up = SLOT_CATCH_UP_LATEST};
        struct schedule_change change = {.set = &s};

        snprintf(expression, sizeof expression, "%d %d * * *", (int)later / 100, (int)later % 100);
        use_zones(cases[i].older);
        run(db, "DELETE FROM dq_schedule");
        ok(schedule_store_change(db, &change, 1, NULL, &act, &bad, &err));
        schedule_store_change_done(&change, 1);
        run(db, "UPDATE dq_schedule SET update_time = UTC_TIMESTAMP(3) - INTERVAL 1 DAY");
        use_zones(cases[i].newer);
        ok(slot_store_renew(db, &more, &err));
        if (i == 0) { /* it is past by the newer ones */
            assert_int_equal(decide(db).decided, 1);
            one("dq_slot WHERE decision = 1");
            one("dq_schedule WHERE next_slot > UTC_TIMESTAMP(3) + INTERVAL 23 HOUR");
        } else { /* it was decided by the older ones */
            one("dq_schedule WHERE next_slot > UTC_TIMESTAMP(3) + INTERVAL 24 HOUR");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_newest_time_zones_count, harness_setup, zones_end),
        cmocka_unit_test_setup_teardown(the_slot_of_the_day_of_new_time_zones_is_decided_once,
                                        harness_setup, zones_end),
    };
    return cmocka_run_group_tests(tests, harness_group, harness_group_end);
}
