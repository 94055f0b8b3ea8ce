# What data contains reaches no terminal as a character on which it would act.

load ../lib/sandbox

# Every text of every table is $text, whose hexadecimal form is $hex.
fill()
{
    local status
    for status in 0 1 2 3 4; do
        sql "INSERT INTO dq_task (tag, task_key, message_body, status, host, pid, error_stack, output, attempt,
                 expected_time, create_time, execution_time, finish_time, lease_until)
             VALUES ($text, CONCAT($text, $status), X'$hex', $status, $text, 7, $text, X'$hex', 1,
                 $now - INTERVAL 1 MINUTE, $now - INTERVAL 1 MINUTE, $now, $now, $now + INTERVAL 1 HOUR)"
    done
    sql "INSERT INTO dq_attempt (task_id, version, attempt, host, start_time, finish_time, outcome, error_stack, output)
         SELECT id, 1, 1, $text, $now, $now, 'exit', $text, X'$hex' FROM dq_task"
    sql "INSERT INTO dq_limit (name, paused_until, paused_by, pause_reason, update_time)
         VALUES ($text, '9999-12-31 23:59:59.999', $text, $text, $now)"
    fake_dqd x
    sql "UPDATE dq_poller SET host = $text, handlers_file = $text, tags = $text; UPDATE dq_handler SET pattern = $text;
         INSERT INTO dq_rest SELECT token, $text, $now + INTERVAL 1 HOUR, 0, $text FROM dq_poller;
         INSERT INTO dq_event (token, event_time, actor, verb, arguments, tag)
         VALUES (REPEAT('a', 16), $now, $text, 'cancel', $text, $text)"
}

@test 'no verb prints what a terminal would act on, in any format, and neither does dqd' {
    local hex=611B5D303B6F776E07C29B33316DE280AEE2808BC285097F5C0A7A now='UTC_TIMESTAMP(3)'
    local text raw format args id failed
    text="CONVERT(X'$hex' USING utf8mb4)"
    raw=$(printf "$(sed 's/../\\x&/g' <<<"$hex")")
    fill
    id=$(sql 'SELECT id FROM dq_task WHERE status = 0')
    failed=$(sql 'SELECT id FROM dq_task WHERE status = 2')
    shows() { "$@" </dev/null >>shown 2>&1 || true; }
    cd "$BATS_TEST_TMPDIR"
    for format in table json ndjson tsv id prometheus; do
        for args in list "list -n 0 -c $(dq list --columns help | cut -d ' ' -f 1 | paste -sd ,)" "show $id" tags \
            pollers stats 'stats --by hour' errors events forecast check doctor \
            why "why $id" 'delete --tag * --dry-run'; do
            set -f
            # shellcheck disable=SC2086  # words
            shows dq -o "$format" $args
            set +f
        done
    done
    shows dq stats --html -
    shows dq export
    shows dq add --sql "$raw" "$raw"
    shows dq completion complete -- dq list --tag ''
    shows dq list --tag "$raw"
    shows dq pause "$raw"
    shows dq rehearse --tag "$raw" x
    shows dq --config "/$raw" list
    shows dqd --config "/$raw"
    shows dqd "$raw"
    shows "$DQ_TOP/test/lib/terminal" 200 "$DQ_BIN/dq" --no-pager --color never logs "$failed"
    shows "$DQ_TOP/test/lib/terminal" 200 "$DQ_BIN/dq" rehearse "$id"
    shows "$DQ_TOP/test/lib/terminal" 0 "$DQ_BIN/dq" --no-pager -o csv list -c tag,key,body # its width is not known
    sql "INSERT INTO dq_limit (name, running, reason) VALUES ('export', 1, $text)"
    sql "INSERT INTO dq_schedule (name, tag, message_body, kind, expression, create_time, update_time, actor)
         VALUES ('export', 'x', X'$hex', 1, '1h', $now, $now, '')"
    dq -q limit plain --running 1 --reason 'a\b'
    shows "$DQ_TOP/test/lib/terminal" 200 "$DQ_BIN/dq" limit --export
    shows "$DQ_TOP/test/lib/terminal" 200 "$DQ_BIN/dq" schedule export
    grep -qF "limit plain --clear --running 1 --reason 'a\b'" shown # to be copied
    python3 - <<'END'
import re
shown = open("shown", "rb").read().decode().replace("\r\n", "\n")
found = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f]", shown)
assert len(re.findall("own", shown)) > 100
assert not found, repr(shown[max(0, found.start() - 200):found.end() + 200])
END
}
