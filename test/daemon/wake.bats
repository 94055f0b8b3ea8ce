#!/usr/bin/env bats
# dq wakes the dqd of its host: with a poll every 20 minutes, whatever starts within a test was not found by a poll.

load ../lib/sandbox

setup()
{
    sandbox_clear
    ran=$BATS_TEST_TMPDIR/ran
    : >"$ran"
    write_handlers <<END
handlers:
  t: {run: 'echo \$DQ_ID >>$ran'}
  fails: {run: 'echo \$DQ_ID >>$ran; exit 65'}
END
    wake_dir=$DQ_SANDBOX/wake
    rm -rf "$wake_dir"
}

teardown()
{
    [ -z "${second:-}" ] || kill "$second" 2>/dev/null || true
    dqd_reap
}

ini() # ini LINE...: configuration with these lines in [dqd]
{
    {
        sed "s|^handlers *=.*|handlers = $DQ_HANDLERS|; /^wake_dir/d" "$DQ_SANDBOX/dq.ini"
        printf '%s\n' 'poll_interval = 20m' 'lease = 2h' "$@"
    } >"$BATS_TEST_TMPDIR/own.ini"
    chmod 600 "$BATS_TEST_TMPDIR/own.ini"
    export DQ_CONFIG=$BATS_TEST_TMPDIR/own.ini
}

selects() { sql "SHOW GLOBAL STATUS LIKE 'Com_select'" | cut -f 2; }
quiet() # nothing has been asked for a while: the next look is the next poll, or a wake
{
    local before
    before=$(selects)
    sleep 0.3 # between two looks
    [ "$(selects)" = "$before" ]
}
has_run() { [ "$(grep -cxF "$1" "$ran")" = "${2:-1}" ]; } # has_run ID [TIMES]
tasks() { [ "$(sql "SELECT COUNT(*) FROM dq_task WHERE $1")" = "$2" ]; }
pollers() { [ "$(sql 'SELECT COUNT(*) FROM dq_poller')" = "$1" ]; }
files() { [ "$(find "$wake_dir" -name 'wake.*' -type f -size -2c | wc -l)" = "$1" ]; }
counts_two() { grep -q 'share of the work.* of=2' "$1"; }
seen_after() { [ "$(sql 'SELECT last_seen FROM dq_poller')" \> "$1" ]; }
beaten() # a heartbeat begins and ends
{
    local seen
    seen=$(sql 'SELECT last_seen FROM dq_poller')
    wait_until seen_after "$seen"
    seen=$(sql 'SELECT last_seen FROM dq_poller')
    wait_until seen_after "$seen"
}
up() { wait_until pollers 1 && wait_until quiet; }

@test 'add, run-now, reschedule, retry and resume wake dqd' {
    ini "wake_dir = $wake_dir"
    dqd_start --resident
    up
    id=$(dq add t)
    wait_until has_run "$id"
    wait_until quiet
    id=$(dq add t --in 400ms)
    wait_until has_run "$id"
    id=$(dq add t --in 3h)
    wait_until quiet
    dq run-now "$id"
    wait_until has_run "$id"
    id=$(dq add t --in 3h)
    wait_until quiet
    dq reschedule "$id" --in 300ms
    wait_until has_run "$id"
    id=$(dq add fails)
    wait_until tasks "id = $id AND status = 2" 1
    wait_until quiet
    dq retry "$id"
    wait_until has_run "$id" 2
    dq pause t
    id=$(dq add t)
    wait_until quiet
    dq resume t
    wait_until has_run "$id"
    dqd_stop
}

@test 'schedules that are set or resumed are seen at once, and not with the next heartbeat' {
    ini "wake_dir = $wake_dir" 'heartbeat = 1h'
    dqd_start --resident
    up
    dq -q schedule set gap t --gap 1h
    wait_until tasks "task_key LIKE 'gap@%' AND status = 1" 1
    dq -q schedule set tick t --every 1s
    wait_until tasks "task_key LIKE 'tick@%' AND status = 1" 1
    dq -q schedule pause tick gap
    decided() { [ "$(sql "SELECT COUNT(*) FROM dq_slot WHERE name = 'tick' AND decision = $1")" -ge "$2" ]; }
    wait_until decided 4 1
    dq -q schedule resume tick
    before=$(sql "SELECT COUNT(*) FROM dq_slot WHERE name = 'tick' AND decision = 0")
    wait_until decided 0 $((before + 1))
    # what only makes tasks due asks for no heartbeat
    seen=$(sql 'SELECT last_seen FROM dq_poller')
    dq -q schedule delete tick
    id=$(dq -q schedule run-now gap)
    wait_until has_run "$id"
    [ "$(sql 'SELECT last_seen FROM dq_poller')" = "$seen" ]
    dqd_stop
}

@test 'add --from wakes dqd as soon as a chunk with a due task is stored' {
    ini "wake_dir = $wake_dir"
    dqd_start --resident
    up
    set -o pipefail
    more() # lines that are not due, until the first one has run: it is not held back until the end of the file
    {
        printf '{"tag":"t","in":"3h"}\n%.0s' {1..1000}
        tasks 'status = 1' 1
    }
    { echo '{"tag":"t","in":"0s"}' && wait_until more; } | dq -q add --from -
    dqd_stop
}

wakes() # wakes COMMAND...: how many wakes a dqd of database dq would have got meanwhile
{
    python3 - "$wake_dir" "$@" 3>&- <<'END'
import ctypes, os, struct, subprocess, sys
IN_CLOSE_NOWRITE, IN_OPEN = 0x10, 0x20 # the closes between them keep opens from being reported as one
h = 14695981039346656037
for c in b'dq':
    h = (h ^ c) * 1099511628211 & (1 << 64) - 1
name = os.path.join(sys.argv[1], 'wake.%016x.test' % h)
open(name, 'x').close()
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(os.O_NONBLOCK)
assert libc.inotify_add_watch(fd, name.encode(), IN_OPEN | IN_CLOSE_NOWRITE) > 0
subprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL)
count = 0
try:
    while True:
        for _, mask, _, size in struct.iter_unpack('iIII', os.read(fd, 65536)):
            assert size == 0
            count += mask == IN_OPEN
except BlockingIOError:
    print(count)
os.unlink(name)
END
}

@test 'only the dqd of that database is woken, once, and only for tasks due before its next poll' {
    mkdir "$wake_dir"
    ini "wake_dir = $wake_dir"
    [ "$(wakes "$DQ_BIN/dq" add t)" = 1 ]
    [ "$(wakes "$DQ_BIN/dq" add t --in 19m --key k)" = 1 ]
    [ "$(wakes "$DQ_BIN/dq" add t --in 19m --key k)" = 0 ] # it was there
    [ "$(wakes "$DQ_BIN/dq" add t --in 21m)" = 0 ]
    [ "$(wakes "$DQ_BIN/dq" add t --at '@1000000000')" = 1 ]
    [ "$(wakes "$DQ_BIN/dq" add t --at 2100-01-01T00:00:00Z)" = 0 ]
    [ "$(wakes "$DQ_BIN/dq" reschedule --key k -y --in 2h)" = 0 ]
    [ "$(wakes "$DQ_BIN/dq" run-now --key k -y --dry-run)" = 0 ]
    [ "$(wakes "$DQ_BIN/dq" run-now --key k -y)" = 1 ]
    [ "$(wakes "$DQ_BIN/dq" cancel --key k -y)" = 0 ]
    for i in $(seq 8500); do echo "{\"tag\":\"t\",\"in\":\"$((i == 8001))h\"}"; done >"$BATS_TEST_TMPDIR/t.ndjson"
    [ "$(wakes "$DQ_BIN/dq" add --from "$BATS_TEST_TMPDIR/t.ndjson")" = 3 ]
    sed -i 's/0h/1h/; 2100s/1h/0h/' "$BATS_TEST_TMPDIR/t.ndjson"
    [ "$(wakes "$DQ_BIN/dq" add --from "$BATS_TEST_TMPDIR/t.ndjson")" = 1 ]
    sed -i 's/^database = .*/database = dq_other/' "$DQ_CONFIG"
    dq init
    [ "$(wakes "$DQ_BIN/dq" add t)" = 0 ]
}

@test 'a pass, which ends when nothing is due, does not wait for wake-ups' {
    mkdir "$wake_dir"
    ini "wake_dir = $wake_dir"
    printf 'handlers:\n  t: {run: "find %s -type f >>%s; echo ran >>%s"}\n' "$wake_dir" "$ran" "$ran" >"$DQ_HANDLERS"
    dq -q add t >/dev/null
    dqd --once
    [ "$(cat "$ran")" = ran ]
}

@test 'of several dqds on a host, the one that owns the share takes the task' {
    local id
    ini "wake_dir = $wake_dir" 'heartbeat = 100ms' 'log_level = debug'
    dqd_start --resident
    "$DQ_BIN/dqd" --for 2h --allow-overlap >"$BATS_TEST_TMPDIR/second.log" 2>&1 3>&- &
    second=$!
    wait_until counts_two "$DQD_LOG"
    wait_until counts_two "$BATS_TEST_TMPDIR/second.log"
    wait_until files 2
    for _ in 1 2 3 4 5 6; do
        id=$(dq add t)
        wait_until has_run "$id"
    done
    kill "$second"
    wait "$second"
    files 1
    dqd_stop
}

@test 'a woken dqd also takes tasks in the share of a host that was not woken' {
    local id
    ini "wake_dir = $wake_dir" 'heartbeat = 100ms' 'log_level = debug'
    sql "INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after, version,
                                lease, handlers)
         VALUES (REPEAT('a', 16), 'elsewhere', 1, 'resident', 8, 0, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 3600000,
                 '0.1.0', 60000, 0)"
    dqd_start --resident
    wait_until counts_two "$DQD_LOG"
    for _ in 1 2 3 4 5 6; do
        id=$(dq add t)
        wait_until has_run "$id"
    done
    dqd_stop
}

@test 'another account can wake dqd' {
    local account id
    [ "$(id -u)" = 0 ] || skip 'needs root, to have another account'
    account=$(stat -c %U "$(readlink -f "$DQ_SANDBOX/server")/data") # it reaches the server
    wake_dir=$(mktemp -d /tmp/dq-wake.XXXXXX)
    chmod 755 "$wake_dir"
    ini "wake_dir = $wake_dir"
    dqd_start --resident
    up
    install -m 0600 -o "$account" "$DQ_CONFIG" "$wake_dir/dq.ini"
    install -m 0755 "$DQ_BIN/dq" "$wake_dir/dq"
    id=$(cd / && setpriv --reuid="$account" --clear-groups "$wake_dir/dq" --config "$wake_dir/dq.ini" add t)
    wait_until has_run "$id"
    dqd_stop
    rm -rf "$wake_dir"
}

added_in_silence()
{
    ini "wake_dir = $1"
    timeout 300 "$DQ_BIN/dq" add -q t >/dev/null 2>"$BATS_TEST_TMPDIR/stderr"
    [ ! -s "$BATS_TEST_TMPDIR/stderr" ]
}

@test 'dq add succeeds silently whatever wake_dir contains' {
    export -f added_in_silence ini
    export BATS_TEST_TMPDIR wake_dir
    added_in_silence ''
    added_in_silence "$wake_dir"
    added_in_silence "$DQ_HANDLERS"
    mkdir "$wake_dir"
    added_in_silence "$wake_dir"
    # Nobody behind it, none of ours, a link to nowhere and to a file, other types, a file that is locked and leased.
    python3 - "$wake_dir" bash -ec "added_in_silence '$wake_dir'" 3>&- <<'END'
import fcntl, os, signal, socket, subprocess, sys
signal.signal(signal.SIGIO, signal.SIG_IGN) # somebody opens what is leased
h = 14695981039346656037
for c in b'dq':
    h = (h ^ c) * 1099511628211 & (1 << 64) - 1
os.chdir(sys.argv[1])
name = 'wake.%016x.' % h
open(name + 'dead', 'w').close()
with open(name + 'file', 'w') as f:
    f.write('as it was')
os.symlink('/nonexistent', name + 'link')
os.symlink(name + 'file', name + 'link2')
os.mkdir(name + 'directory')
os.mkfifo(name + 'fifo')
stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
stream.bind(name + 'stream')
stream.listen()
held = os.open(name + 'held', os.O_RDONLY | os.O_CREAT, 0o444)
fcntl.flock(held, fcntl.LOCK_EX)
fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
status = subprocess.call(sys.argv[2:])
with open(name + 'file') as f:
    assert f.read() == 'as it was'
sys.exit(status)
END
    tasks 'status = 0' 5
}

@test 'dqd removes only stale files of its own account from wake_dir' {
    local id
    ini "wake_dir = $wake_dir"
    dqd_start --resident
    up
    kill -KILL "$DQD_PID"
    wait "$DQD_PID" || true
    files 1
    touch -d '1 minute ago' "$wake_dir"/wake.*
    echo kept >"$wake_dir/wake.file"
    ln -s wake.file "$wake_dir/wake.link"
    python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind(sys.argv[1])' \
        "$wake_dir/other"
    touch -d '1 minute ago' "$wake_dir/other"
    sql 'DELETE FROM dq_poller'
    dqd_start --resident
    up
    files 1
    touch -d '1 minute ago' "$wake_dir"/wake.*
    dqd --for 1ms --allow-overlap # it leaves alone who lives
    id=$(dq add t)
    wait_until has_run "$id"
    dqd_stop
    [ "$(ls "$wake_dir" | tr '\n' ' ')" = 'other wake.file wake.link ' ]
}

@test 'a removed wake_dir is created again, or dqd logs once that it cannot be woken' {
    local id made
    ini "wake_dir = $wake_dir" 'heartbeat = 100ms'
    dqd_start --resident
    wait_until pollers 1
    rm -r "$wake_dir"
    wait_until files 1
    beaten
    id=$(dq add t)
    wait_until has_run "$id"
    [ "$(grep -c 'been recreated' "$DQD_LOG")" = 1 ]
    mv "$wake_dir" "$BATS_TEST_TMPDIR/moved"
    becomes_link() # dqd may make the directory again at any moment
    {
        rm -rf "$wake_dir"
        ln -sT "$BATS_TEST_TMPDIR/none" "$wake_dir"
    }
    wait_until becomes_link
    wait_until grep -q 'cannot wake' "$DQD_LOG"
    made=$(grep -c 'been recreated' "$DQD_LOG")
    [ ! "$(find "$BATS_TEST_TMPDIR/moved" -name 'wake.*')" ]
    beaten
    rm "$wake_dir"
    wait_until files 1
    [ "$(grep -c 'cannot wake' "$DQD_LOG")" = 1 ]
    wait_until eval '[ "$(grep -c "been recreated" "$DQD_LOG")" = $((made + 1)) ]'
    dqd_stop
    files 0
}

@test 'dqd works without a usable wake_dir and logs one line about it' {
    local dir id
    mkdir "$wake_dir"
    ln -s "$wake_dir" "$BATS_TEST_TMPDIR/link"
    for dir in /proc/none "$DQ_HANDLERS" "$BATS_TEST_TMPDIR/link"; do
        ini "wake_dir = $dir"
        id=$(dq add t)
        dqd_start --resident
        wait_until has_run "$id"
        [ "$(grep -c 'cannot wake' "$DQD_LOG")" = 1 ]
        files 0
        dqd_stop
    done
    ini 'wake_dir ='
    dqd_start --resident
    up
    [ "$(grep -c 'cannot wake' "$DQD_LOG")" = 0 ]
    dqd_stop
}

@test 'a flood of wake-ups causes a bounded number of looks, and tasks continue' {
    local before took looks
    ini "wake_dir = $wake_dir"
    dqd_start --resident
    up
    before=$(selects)
    took=$(python3 - "$wake_dir"/wake.* <<'END'
import os, sys, time
begin = time.monotonic()
for i in range(100000):
    os.close(os.open(sys.argv[1], os.O_RDONLY))
print(int((time.monotonic() - begin) * 1000))
END
    )
    wait_until quiet
    looks=$(($(selects) - before))
    echo "$looks looks in $took ms"
    [ "$looks" -ge 1 ]
    [ "$looks" -le $((took / 2 + 10)) ]
    [ "$(find "/proc/$DQD_PID/fd" -type l | wc -l)" -lt 20 ]
    python3 - "$wake_dir"/wake.* "$BATS_TEST_TMPDIR/flooding" 3>&- <<'END' &
import os, sys
open(sys.argv[2], 'w').close()
try:
    while True:
        os.close(os.open(sys.argv[1], os.O_RDONLY))
except FileNotFoundError:
    pass # dqd has ended
END
    wait_until test -e "$BATS_TEST_TMPDIR/flooding"
    for _ in $(seq 20); do dq add -q t; done
    wait_until tasks 'status = 1' 20
    dqd_stop
    wait "$!"
}

@test 'a wake-up cannot carry a descriptor or a byte that would block dqd' {
    local id
    ini "wake_dir = $wake_dir"
    dqd_start --resident
    up
    python3 - "$wake_dir"/wake.* "$BATS_TEST_TMPDIR/taken" 3>&- <<'END'
import os, socket, struct, sys, time
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
peer = server.accept()[0]
client.setblocking(False)
try:
    while True: # nobody reads at the other end: there is always something left to be sent
        client.send(b'x' * 65536)
except BlockingIOError:
    pass
client.setblocking(True)
client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 3600))
if os.fork():
    os._exit(0)
os.closerange(0, 3)
taken = 0
for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    try:
        s = socket.socket(socket.AF_UNIX, kind)
        s.connect(sys.argv[1])
        socket.send_fds(s, [b'x'], [client.fileno()])
        taken += 1
        os.dup2(s.fileno(), client.fileno()) # what was sent is the last: who closes it waits
    except OSError:
        pass
with open(sys.argv[2] + '~', 'w') as f:
    print(taken, file=f)
os.rename(sys.argv[2] + '~', sys.argv[2])
end = time.monotonic() + 60
while os.path.exists(sys.argv[1]) and time.monotonic() < end:
    time.sleep(0.1)
os._exit(0) # without closing client, which would wait
END
    wait_until test -e "$BATS_TEST_TMPDIR/taken"
    for _ in 1 2 3; do
        id=$(dq add t)
        wait_until has_run "$id"
    done
    [ "$(cat "$BATS_TEST_TMPDIR/taken")" = 0 ]
    [ "$(stat -c '%a %s' "$wake_dir"/wake.*)" = '444 1' ]
    dqd_stop
}
