#!/usr/bin/env bats
# Schedules that are set and deleted in SQL: dq_schedule_set, dq_schedule_delete; procedures within a transaction.

load ../lib/sandbox
setup()
{
    sandbox_clear
    cd "$BATS_TEST_TMPDIR"
    sql 'DELETE FROM dq_schedule; DELETE FROM dq_slot'
}

refused() { sql_refuses "$@"; }

@test 'dq_schedule_set and dq_schedule_delete make schedules as dq does, and dqd computes their slots' {
    echo "handlers: {t: {run: 'true'}}" | write_handlers
    sql "CALL dq_schedule_set('night', 't', x'00ff', '{\"cron\": \"30 2 * * 1-5\", \"zone\": \"Europe/Berlin\"}', @n);
         CALL dq_schedule_set('often', 't', 'b', '{\"every\": \"10m\", \"overlap\": \"replace\", \"catch_up\": \"all\",
             \"spread_ms\": 1000, \"within_ms\": 2000, \"expires_ms\": 3000, \"alarm_after_ms\": 4000}', @n);
         CALL dq_schedule_set('gap', 't', '', '{\"gap\": \"1h\"}', @n)"
    dqd --once
    [ "$(sql 'SELECT COUNT(*) FROM dq_slot')" = 1 ] # of the gap
    dq schedule export | sed 's/ --from.*//' >was
    rows() { sql 'SELECT name, next_slot, HEX(message_body), zone_version <> "" FROM dq_schedule WHERE kind < 2'; }
    rows >by_sql
    sql 'DELETE FROM dq_schedule'
    dq -q schedule set night t --body-json '{"body_base64": "AP8="}' --cron '30 2 * * 1-5' --zone Europe/Berlin
    dq -q schedule set often t b --every 10m --overlap replace --catch-up all --spread 1s --within 2s --expires 3s \
        --alarm-after 4s
    dq -q schedule set gap t --gap 1h
    dq schedule export | diff - was
    rows | diff - by_sql
    # what does not change when it runs does not change its next slot
    next() { sql "SELECT next_slot FROM dq_schedule WHERE name = 'often'"; }
    before=$(next)
    sql "CALL dq_schedule_set('often', 'u', 'b', '{\"every\": \"10m\"}', @n)"
    [ "$(next)" = "$before" ]
    [ "$(sql "SELECT tag, overlap, spread, actor LIKE 'root@%' FROM dq_schedule WHERE name = 'often'")" = \
        $'u\t0\t0\t1' ]
    sql "CALL dq_schedule_set('often', 'u', 'b', '{\"every\": \"7m\"}', @n)"
    dqd --once
    [ "$(sql "SELECT TIMESTAMPDIFF(SECOND, '1970-01-01', next_slot) % 420 FROM dq_schedule WHERE name = 'often'")" = 0 ]
    [ "$(sql "CALL dq_schedule_delete('often', @n); SELECT @n; CALL dq_schedule_delete('often', @n); SELECT @n")" = \
        $'1\n0' ]
    [ "$(dq events -o json --event 'schedule delete' | jq -r '.[-1].tag')" = u ]
    [ "$(dq events -o json --event 'schedule set' | jq -r '[.[] | select(.who == "root@localhost")] | length')" -ge 1 ]
}

@test 'dq_schedule_set refuses what is no schedule' {
    sql 'DELETE FROM dq_schedule'
    set_() { printf "CALL dq_schedule_set('%s', '%s', %s, '%s', @n)" "$@"; }
    refused 'name: ' "$(set_ a@b t '""' '{"every": "1h"}')"
    refused 'name: ' "$(set_ -a t '""' '{"every": "1h"}')"
    refused 'tag: ' "$(set_ a 'a b' '""' '{"every": "1h"}')"
    refused 'body: ' "$(set_ a t NULL '{"every": "1h"}')"
    refused 'body: ' "$(set_ a t 'REPEAT("b", 65536)' '{"every": "1h"}')"
    refused 'options: a JSON object' "$(set_ a t '""' 'every')"
    refused 'options: the members' "$(set_ a t '""' '{"every": "1h", "odd": 1}')"
    refused 'options: the members' "$(set_ a t '""' '[1]')"
    [ -z "$(sql "SHOW VARIABLES LIKE 'default_regex_flags'")" ] || # MySQL reads the escape
        refused 'options: the members' "$(set_ a t '""' '{"every": "1h", "sprea\\u0064_ms": 1}')"
    refused 'options: one of cron' "$(set_ a t '""' '{}')"
    refused 'options: one of cron' "$(set_ a t '""' '{"every": "1h", "gap": "1h"}')"
    refused 'options: cron: ' "$(set_ a t '""' '{"cron": "1 2 3"}')"
    refused 'options: every, gap: ' "$(set_ a t '""' '{"every": "100ms"}')"
    refused 'options: every, gap: ' "$(set_ a t '""' '{"gap": null}')"
    refused 'options: zone: ' "$(set_ a t '""' '{"every": "1h", "zone": "Europe/Berlin"}')"
    refused 'options: zone: ' "$(set_ a t '""' '{"cron": "@daily", "zone": "a b"}')"
    # in MariaDB $ also stands before a final newline
    refused 'options: cron: ' "$(set_ a t '""' '{"cron": "0 0 * * *\\n"}')"
    refused 'options: every, gap: ' "$(set_ a t '""' '{"every": "1h\\n"}')"
    refused 'options: zone: ' "$(set_ a t '""' '{"cron": "@daily", "zone": "Europe/Berlin\\n"}')"
    refused 'options: spread_ms' "$(set_ a t '""' '{"every": "1h", "alarm_after_ms": "1\\n"}')"
    refused 'options: catch_up: ' "$(set_ a t '""' '{"every": "1h", "catch_up": "some"}')"
    refused 'options: overlap: ' "$(set_ a t '""' '{"every": "1h", "overlap": "some"}')"
    refused 'options: spread_ms' "$(set_ a t '""' '{"every": "1h", "spread_ms": "some"}')"
    for character in e2808b e280ae c2ad; do
        name="CONCAT('a', CONVERT(X'$character' USING utf8mb4))"
        refused 'tag: ' "CALL dq_schedule_set('a', $name, '', '{\"every\": \"1h\"}', @n)"
        refused 'name: ' "CALL dq_schedule_set($name, 't', '', '{\"every\": \"1h\"}', @n)"
    done
    for member in spread within expires alarm_after; do
        refused 'options: spread_ms' "$(set_ a t '""' "{\"every\": \"1h\", \"${member}_ms\": 316224000001}")"
    done
    refused 'options: spread_ms (at' "$(set_ a t '""' '{"every": "2s", "spread_ms": 1001}')"
    for every in 316224001s 5270401m 87841h 3661d 523w 999999999w; do
        refused 'options: every, gap: ' "$(set_ a t '""' "{\"every\": \"$every\"}")"
        refused 'options: every, gap: ' "$(set_ a t '""' "{\"gap\": \"$every\"}")"
    done
    refused 'options: within_ms: ' "$(set_ a t '""' '{"every": "1h", "within_ms": 31622400001}')"
    refused 'options: within_ms: ' "$(set_ a t '""' '{"every": "1h", "within_ms": 1, "catch_up": "skip"}')"
    [ "$(sql 'SELECT COUNT(*) FROM dq_schedule')" = 0 ]
    sql "$(set_ a t '""' '{"cron": "@daily", "zone": null, "within_ms": 31622400000}')"
    [ "$(sql 'SELECT zone FROM dq_schedule')" = UTC ]
    sql "$(set_ a t '""' '{"cron": "@daily", "within_ms": 0, "catch_up": "skip"}')"
    # only dqd knows zones: it says so, and the others are not affected
    sql "$(set_ a t '""' '{"cron": "@daily", "zone": "No/Where"}')"
    dqd --once 2>&1 | grep -F 'No/Where'
    dq why a | grep -F 'zone "No/Where": unknown' || { dq why a; return 1; }
}

@test 'within a transaction, what a call does and its record are all or nothing' {
    dq -q add t body --key k --in 1h
    sql "CREATE TRIGGER no BEFORE INSERT ON dq_event FOR EACH ROW
         SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'dq: no room'"
    for call in "dq_cancel_key('t', 'k', @n)" "dq_add_again('t', 'k', 'new', 0, @id)" \
        "dq_limit_set('t', '{\"running\": 4}')" \
        "dq_schedule_set('s', 't', '', '{\"every\": \"1h\"}', @n)"; do
        refused 'no room' "START TRANSACTION; CALL $call; COMMIT"
    done
    sql 'DROP TRIGGER no'
    [ "$(sql 'SELECT status, version, message_body, (SELECT COUNT(*) FROM dq_limit), (SELECT COUNT(*) FROM dq_schedule)
              FROM dq_task')" = $'0\t0\tbody\t0\t0' ]
}
