# dq list --watch, in a real terminal (tmux) of several sizes.

load ../lib/sandbox
load ../lib/screen

setup() { sandbox_clear; }

teardown()
{
    [ -z "${SERVER:-}" ] || kill -CONT "$SERVER"
    screen_end
    dqd_reap
}

# watch_start COLUMNS ROWS ARG...: under a shell, in which something was printed before.
watch_start()
{
    local columns=$1 rows=$2
    shift 2
    screen_start "$columns" "$rows" "env PS1='ready\$ ' LC_ALL=C.UTF-8 bash --norc --noprofile"
    keys "echo be''fore; '$DQ_BIN/dq' list --watch 1s $*; echo ended \$?" Enter
    sees '^dq list .*--watch 1s'
}

# The terminal is as it was: the first screen with its text, a cursor, and an echo.
left_clean()
{
    sees "^ended $1\$"
    sees '^before$'
    hides '^ *ID  TAG'
    [ "$(terminal display-message -p '#{alternate_on} #{cursor_flag}')" = '0 1' ]
    keys 'stty -a | grep -ow -- "-*echo"; stty -a | grep -ow -- "-*icanon"' Enter
    sees '^echo$'
    sees '^icanon$'
}

fill()
{
    sql "INSERT INTO dq_task (tag, message_body, expected_time, create_time)
         SELECT 'slow.export', '', UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, UTC_TIMESTAMP(3) - INTERVAL 1 HOUR
         FROM $(numbers 60);
         INSERT INTO dq_task (tag, message_body, expected_time, create_time, status, error_stack) VALUES
         (X'E58C85E8A3B9E58C85E8A3B9', '', UTC_TIMESTAMP(3) + INTERVAL 1 DAY, UTC_TIMESTAMP(3), 0, REPEAT('why ', 99)),
         (CONCAT('a', CHAR(27), '[2J'), '', UTC_TIMESTAMP(3) + INTERVAL 2 DAY, UTC_TIMESTAMP(3), 0, NULL)"
}

@test 'the list is drawn again and again, with its place and time, at 80, 120 and 200 columns' {
    fill
    fake_dqd slow.export
    for columns in 80 120 200; do
        watch_start "$columns" 24
        screen
        sees "localhost/dq  [0-9]{2}:[0-9]{2}:[0-9]{2}\$"
        sees '^ID +TAG '
        sees '包裹包裹'
        sees '^only 16 tasks are listed, there are more \(late\)$'
        [ "$(screen | grep -c 'slow.e')" -eq 14 ]
        [ "$(screen | LC_ALL=C.UTF-8 wc -L)" -le "$columns" ]
        clock=$(screen | sed -n 1p)
        goes_on() { [ "$(screen | sed -n 1p)" != "$clock" ]; }
        wait_until goes_on
        [ "$(screen | grep -c 'ID *TAG')" -eq 1 ]
    done
}

@test 'the list follows what happens, and the size of the window' {
    fake_dqd
    watch_start 100 24 --tag "'mail.*'"
    sees "^dq list --tag 'mail\.\*' --watch 1s "
    hides 'mail.a'
    id=$(dq -q add mail.a --in 1h)
    sees '^ *[0-9]+  mail.a .* pending '
    dq -q add sms --in 1h
    dq -q cancel "$id" >/dev/null
    wait_until hides 'mail.a'
    hides sms
    dq -q retry "$id" >/dev/null
    sees 'mail.a'
    # a table that cannot be that narrow is cut, not wrapped
    screen_resize 50 10
    three_lines() { shows '^dq list --tag' && [ "$(screen | grep -c .)" -eq 3 ]; }
    wait_until three_lines
    keys q
    left_clean 0
}

@test 'an interrupt leaves the terminal clean, with status 0, even if the database does not answer' {
    fill
    watch_start 120 24
    keys C-c
    left_clean 0
    watch_start 120 24
    SERVER=$(cat "$(readlink -f "$DQ_SANDBOX/server")/pid")
    kill -STOP "$SERVER"
    # the time that is shown has fallen behind
    waits() { [ $((($(date +%s) - $(date -d "$(screen | sed -n '1s/.*  //p')" +%s) + 86400) % 86400)) -ge 3 ]; }
    wait_until waits
    keys C-c
    left_clean 0
    kill -CONT "$SERVER"
    SERVER=''
}

@test 'SIGTERM leaves the terminal clean, too, and ^Z and fg do what they do in an editor' {
    fill
    watch_start 120 24
    keys C-z
    sees 'Stopped'
    sees '^before$'
    keys 'fg' Enter
    sees '^dq list .*--watch 1s'
    sees 'slow.export'
    kill "$(pgrep -P "$(terminal display-message -p '#{pane_pid}')")"
    sees '^Terminated'
    left_clean '[0-9]*'
}

@test 'the list waits for a database that is away' {
    fill
    watch_start 100 24 --status all
    "$DQ_TOP/bin/dq-sandbox" stop >/dev/null 2>&1 3>&-
    sees '^database away, retrying .*localhost/dq'
    sees 'slow.export'
    "$DQ_TOP/bin/dq-sandbox" start >/dev/null 2>&1 3>&-
    sees '^dq list --status all --watch'
    sees 'slow.export'
    keys q
    left_clean 0
}

@test '--limit bounds what is watched, also at one task' {
    fill
    for limit in 1 3; do
        watch_start 100 24 --limit "$limit"
        sees '^ *ID +TAG '
        sees "^only [0-9]+ tasks? (is|are) listed"
        [ "$(screen | grep -c 'slow.export')" -eq "$limit" ]
        keys q
        left_clean 0
        screen_end
    done
}

@test 'tags, stats and errors are watched in the same way' {
    fill
    for verb in tags stats errors; do
        screen_start 120 30 "env LC_ALL=C.UTF-8 '$DQ_BIN/dq' $verb --watch 1s"
        sees "^dq $verb .*--watch 1s"
        [ "$verb" = errors ] || sees '^slow.export '
        keys q
        screen_end
        run dq $verb --watch 1s
        [ "$status" -eq 64 ]
    done
}

@test '--watch needs a terminal, and is a table' {
    refused()
    {
        run dq list --watch 2s "${@:2}"
        [ "$status" -eq 64 ]
        [[ $output == "dq: list: $1"* ]]
    }
    refused 'standard output must be a terminal'
    refused '--watch shows a table on a terminal' -o ndjson
    refused '--watch shows a table on a terminal' -o json
    run script -qec "TERM=dumb '$DQ_BIN/dq' list --watch 2s" /dev/null </dev/null
    [ "$status" -eq 64 ]
    [[ $output == *'TERM = dumb is not a terminal whose screen can be redrawn'* ]]
}
