#!/usr/bin/env bats
# Rows that applications wrote: what dq itself would not store costs itself at most, and is shown.

load ../lib/sandbox
setup() { sandbox_clear; }

# insert TAG EXPECTED [COLUMN VALUE]: SQL expressions; prints the id.
insert()
{
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time${3:+, $3})
         VALUES ($1, 'x', $2, UTC_TIMESTAMP(3)${4:+, $4});
         SELECT LAST_INSERT_ID()"
}
now='UTC_TIMESTAMP(3)'

# The tags' names and counts: fields as cut -f takes them.
counts() { dq tags -o tsv --tag '*' | grep -a ^mail | cut -f"$1"; }

handle_mail()
{
    write_handlers <<END
handlers:
  mail:
    run: 'true'
END
}

@test "a tag with a trailing blank counts as the same tag and does not block it" {
    handle_mail
    insert "'mail '" "$now - INTERVAL 1 HOUR"
    insert "'mail'" "$now - INTERVAL 1 MINUTE"
    insert "'mail   '" "$now"
    dqd
    [ "$(sql 'SELECT GROUP_CONCAT(status ORDER BY id) FROM dq_task')" = 1,1,1 ]
    [ "$(counts 1-7)" = $'mail\t0\t0\t3\t0\t0\t0' ]
    [ "$(dq list --status done --tag mail -o id | wc -l)" = 3 ]
    [ "$(dq list --since 1h --status done --tag mail -o id | wc -l)" = 3 ]
    dq stats -o json | grep -q '"tag":"mail","pending":0,"running":0,"done":3'
}

@test "pause and limits of a tag include its rows with trailing blanks" {
    handle_mail
    insert "'mail '" "$now"
    dq pause mail
    dqd
    [ "$(sql 'SELECT status FROM dq_task')" = 0 ]
    dq resume mail
    dqd
    [ "$(sql 'SELECT status FROM dq_task')" = 1 ]
}

@test "a tag that contains a NUL is shown and does not delay other tags" {
    handle_mail
    insert "CONCAT('mail', CHAR(0), 'x')" "$now - INTERVAL 1 HOUR"
    insert "'mail'" "$now"
    dqd 2>"$BATS_TEST_TMPDIR/log"
    [ "$(sql 'SELECT GROUP_CONCAT(status ORDER BY id) FROM dq_task')" = 0,1 ]
    grep -q 'no handler here.*tag="mail\\xFFx"' "$BATS_TEST_TMPDIR/log"
    [ "$(dq list -o id | wc -l)" = 1 ]
    dq list | grep -qF 'mail\xFFx'
    dq stats -o tsv | grep -qF 'mail\xffx'
}

# Each of these was due for ever, blocked its tag, and was counted as not due.
zeros=('0001-01-01 00:00:00' '0000-00-00 00:00:00' '1000-01-01 00:00:00' '1969-12-31 23:59:59.999'
    '0000-01-01 00:00:00' '2026-00-15 00:00:00' '2026-02-00 10:00:00')

insert_zeros() # the sandbox's server takes them as servers with an older sql_mode do
{
    for time in "${zeros[@]}"; do
        sql "SET sql_mode = ''; INSERT INTO dq_task (tag, message_body, expected_time, create_time)
             VALUES ('mail', 'x', '$time', '$time')"
    done
}

@test "a task with a zero date is due at once: counted, listed first, shown and run" {
    handle_mail
    insert_zeros
    insert "'mail'" "$now - INTERVAL 1 MINUTE"
    [ "$(counts 1,2,7)" = $'mail\t8\t8' ]
    dq stats -o json | grep -q '"due":8'
    [ "$(dq list -o id | head -n 1)" = "$(sql 'SELECT MIN(id) + 1 FROM dq_task')" ]
    [ "$(dq list -o id | wc -l)" = 8 ]
    [ "$(dq list -o id -n 3 | wc -l)" = 3 ]
    dq list -c due_in,late --no-header | grep -qE '^ *- +[0-9]'
    for id in $(sql 'SELECT id FROM dq_task'); do
        dq show "$id" | grep -q 'late'
    done
    dqd
    [ "$(sql 'SELECT status, COUNT(*) FROM dq_task GROUP BY status')" = $'1\t8' ]
}

@test "a resident dqd runs a task with a zero date, and the tasks after it on time" {
    handle_mail
    dqd_start --resident
    id=$(dq add mail)
    wait_until eval '[ "$(sql "SELECT status FROM dq_task WHERE id = $id")" = 1 ]'
    insert_zeros
    dq add mail >/dev/null
    wait_until eval '[ "$(sql "SELECT COUNT(*) FROM dq_task WHERE status = 1")" = 9 ]'
    dqd_stop
}

finish_zeros()
{
    sql "SET sql_mode = ''; UPDATE dq_task SET expected_time = '0000-00-00', status = 1,
         finish_time = ELT(1 + id % 2, '0000-00-00', NULL)"
}

@test "a task with a zero date can be rescheduled, cancelled, retried and purged" {
    insert_zeros
    dq reschedule --tag mail --in 1h -y
    [ "$(counts 1,2,7)" = $'mail\t7\t0' ]
    sql "SET sql_mode = ''; UPDATE dq_task SET expected_time = '0000-00-00'"
    dq cancel --tag mail -y
    dq retry --tag mail --status cancelled -y
    finish_zeros
    dq list --status done | grep -q mail
    dq purge --older-than 1d
    [ "$(sql 'SELECT COUNT(*) FROM dq_task')" = 0 ]
    insert_zeros
    finish_zeros
    own_ini '$a [retention]\ndone = 1d'
    dqd --config "$BATS_TEST_TMPDIR/own.ini"
    [ "$(sql 'SELECT COUNT(*) FROM dq_task')" = 0 ]
}

@test "list continues after a page that ends among invalid dates" {
    sql "SET sql_mode = ''; INSERT INTO dq_task (tag, message_body, expected_time, create_time) VALUES $(
        for n in $(seq 1000); do
            printf "%s('mail', '', '2026-%02d-%02d', UTC_TIMESTAMP(3))" "${sep-}" $((n % 3)) $((n % 29))
            sep=,
        done)"
    for _ in 1 2; do
        sql "SET sql_mode = ''; INSERT INTO dq_task (tag, message_body, expected_time, create_time)
             SELECT tag, '', expected_time, create_time FROM dq_task ORDER BY id LIMIT 1000"
    done
    [ "$(timeout 300 "$DQ_BIN/dq" list -n 0 -o id | sort -u | wc -l)" = 3000 ]
    [ "$(dq list -n 0 -o id | wc -l)" = 3000 ]
}

@test "a task in the far future is not due and blocks nothing" {
    handle_mail
    insert "'mail'" "'9999-12-31 23:59:59.999'"
    insert "'mail'" "$now"
    dqd
    [ "$(sql 'SELECT GROUP_CONCAT(status ORDER BY id) FROM dq_task')" = 0,1 ]
    dq list -o tsv --columns expected | grep -q '^9999-12-31T23:59:59.999Z$'
}

@test "a running row without a lease, or with a zero date as its lease, is taken back" {
    handle_mail
    insert "'mail'" "$now - INTERVAL 1 HOUR" 'status, lease_until' '3, NULL'
    sql "SET sql_mode = ''; INSERT INTO dq_task (tag, message_body, expected_time, create_time, status, lease_until)
         VALUES ('mail', 'x', '2026-01-01', '2026-01-01', 3, '0000-00-00')"
    dqd_start --resident
    wait_until eval '[ "$(sql "SELECT COUNT(*) FROM dq_task WHERE status = 1")" = 2 ]'
    dqd_stop
}

@test "a task whose priority is none returns to the normal one, and is no success because of it" {
    write_handlers <<'END'
handlers: {"t*": {run: 'exit 1', retry: [10ms]}}
END
    sql "INSERT INTO dq_task (tag, message_body, status, priority, expected_time, create_time)
         SELECT CONCAT('t', seq), '', IF(seq < 3, 0, 5), seq, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM $(numbers 5)"
    dqd_start --resident
    wait_until is 'status = 2 AND attempt = 2' 5
    dqd_stop
}

@test "an invalid state is shown as unknown and not counted" {
    handle_mail
    id=$(insert "'mail'" "$now" status 9)
    insert "'mail'" "$now" status 255
    insert "'mail'" "$now"
    dqd
    [ "$(sql 'SELECT GROUP_CONCAT(status ORDER BY id) FROM dq_task')" = 9,255,1 ]
    dq show "$id" | grep -q 'unknown'
    dq list --status unknown -o tsv --columns id,status | grep -q "^$id"$'\tunknown$'
    [ "$(counts 1-6)" = $'mail\t0\t0\t1\t0\t0' ]
    run dq cancel "$id"
    [ "$status" = 1 ]
}

causes_of() # ID: the names of the causes
{
    dq why "$1" -o json | python3 -c 'import json, sys
print(*[c["cause"] for c in json.load(sys.stdin)["causes"]])'
}

@test "dq why names the cause of a row that no dqd takes, and its remedy helps" {
    handle_mail
    dqd_start --resident
    ids="$(insert "'mail'" "$now" version 18446744073709551615)
$(insert "'mail'" "$now" attempt 4294967295)
$(insert "'mail'" "$now" 'status, version' '3, 18446744073709551615')
$(insert "'mail'" "$now" status 77)"
    causes=$(for id in $ids; do causes_of "$id" | cut -d" " -f1; done)
    [ "$causes" = $'refused\nrefused\nrefused\nunknown' ] || { echo "$causes"; return 1; }
    for id in $ids; do
        sql "$(dq why "$id" | grep -o 'UPDATE .*')"
        wait_until eval '[ "$(sql "SELECT status FROM dq_task WHERE id = $id")" = 1 ]'
    done
    dqd_stop
}
