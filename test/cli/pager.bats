# What only a terminal gets: a pager, colours, columns that fit.

load ../lib/sandbox

setup()
{
    sandbox_clear
    cd "$BATS_TEST_TMPDIR"
    unset DQ_PAGER PAGER LESS
    export TERM=xterm LC_ALL=C.UTF-8
}

# terminal COMMAND [LINE...]: runs it in a shell on a terminal of 80 columns, with these lines as the script of
# test/lib/terminal. The file seen has what it shows, and $ended its exit status, or how it ended.
terminal()
{
    local command=$1
    shift
    ended=0
    printf '%s\n' "$@" | "$DQ_TOP/test/lib/terminal" 80 bash -c "$command" >shown 2>end || ended=$?
    [ ! -s end ] || ended=$(cat end)
    sed 's/\r$//' shown | tee seen
}

many() { seq "$1" | sed 's/.*/{"tag":"t","in":"1h","key":"k&"}/' | dq -q add --from - >/dev/null; }

@test 'long output on a terminal goes through less, short output only past it' {
    many 40
    terminal "$DQ_BIN/dq list -n 0" 'wait k1' 'key q'
    [ "$ended" = 0 ]
    grep -q k1 seen
    refute grep -q k40 seen
    terminal "$DQ_BIN/dq list -n 10"
    [ "$ended" = 0 ]
    [ "$(grep -c pending seen)" -eq 10 ]
    terminal "$DQ_BIN/dq --no-pager list -n 0"
    [ "$ended" = 0 ]
    [ "$(grep -c pending seen)" -eq 40 ]
}

@test 'the pager is DQ_PAGER, else PAGER; none if that is empty, cat, missing, or the output is no terminal' {
    many 3
    export PAGER='sed s/^/PAGER:/'
    terminal "$DQ_BIN/dq list"
    [ "$(grep -c '^PAGER:.*pending' seen)" -eq 3 ]
    DQ_PAGER='sed s/^/DQ:/' terminal "$DQ_BIN/dq list"
    [ "$(grep -c '^DQ:.*pending' seen)" -eq 3 ]
    # a note belongs behind the table, also there
    [[ $(DQ_PAGER='sed s/^/DQ:/' terminal "$DQ_BIN/dq list -n 1" | grep -A 1 pending | tail -n 1) == DQ:only* ]]
    for none in '' cat /no/such/pager; do
        DQ_PAGER=$none terminal "$DQ_BIN/dq list"
        [ "$ended" = 0 ]
        [ "$(grep -c pending seen)" -eq 3 ]
        refute grep -q PAGER seen
    done
    [ "$(dq list | grep -c PAGER || true)" -eq 0 ]
    terminal "$DQ_BIN/dq add x"
    refute grep -q PAGER seen
}

@test 'the exit status is that of the command, whatever the pager does' {
    many 3
    id=$(dq list -o id | head -n 1)
    DQ_PAGER='sed s/^/DQ:/; exit 9' terminal "$DQ_BIN/dq show $id 999999"
    grep -q 'DQ:dq: show: .*999999' seen
    [ "$ended" = 1 ]
    DQ_PAGER='sed s/^/DQ:/' terminal "$DQ_BIN/dq list --columns nonsense"
    [ "$ended" = 64 ]
    refute grep -q DQ: seen
    many 5000
    DQ_PAGER='head -n 2' terminal "$DQ_BIN/dq list -n 0"
    [ "$ended" = 0 ]
    [ "$(grep -c pending seen)" -eq 1 ]
    refute grep -q 'dq: ' seen
}

@test '^C leaves the pager its input and its terminal: dq ends after it, by the signal' {
    many 5000
    cat >pager <<'END'
#!/usr/bin/env python3
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
print(sys.stdin.readline(), end="")
print("ready", flush=True)
signal.sigwait({signal.SIGINT})
sys.stdin.read()
os.kill(os.getppid(), 0)
print("last words")
END
    chmod +x pager
    DQ_PAGER=./pager terminal "$DQ_BIN/dq list -n 0" 'wait ready' 'key interrupt'
    grep -q 'last words' seen
    [ "$ended" = 'ended by signal 2' ]
}

@test '--color and NO_COLOR decide on colours, a pager gets them, too' {
    colours() { grep -c $'\033\\[' seen || true; }
    dq -q add t
    export DQ_PAGER='sed s/^/DQ:/'
    terminal "$DQ_BIN/dq list"
    grep -q $'DQ:.*\033\\[33m' seen # late
    for off in 'NO_COLOR=1 ' 'TERM=dumb '; do
        terminal "$off$DQ_BIN/dq list"
        [ "$(colours)" -eq 0 ]
    done
    terminal "$DQ_BIN/dq list --color never"
    [ "$(colours)" -eq 0 ]
    NO_COLOR=1 terminal "$DQ_BIN/dq list --color always"
    [ "$(colours)" -gt 0 ]
    dq list >seen
    [ "$(colours)" -eq 0 ]
    dq --color=always list >seen
    [ "$(colours)" -gt 0 ]
    run dq list --color green
    [ "$status" -eq 64 ]
}

@test 'the setting color comes after --color and before NO_COLOR' {
    colours() { grep -c $'\033\\[' seen || true; }
    with() { own_ini "\$a [dq]\ncolor = $1"; }
    own=$BATS_TEST_TMPDIR/own.ini
    dq -q add t
    with never
    terminal "$DQ_BIN/dq --config $own --no-pager list"
    [ "$(colours)" -eq 0 ]
    terminal "$DQ_BIN/dq --config $own --no-pager list --color auto"
    [ "$(colours)" -gt 0 ]
    with auto
    terminal "NO_COLOR=1 $DQ_BIN/dq --config $own --no-pager list"
    [ "$(colours)" -eq 0 ]
    with always
    NO_COLOR=1 dq --config "$own" list >seen
    [ "$(colours)" -gt 0 ]
    NO_COLOR=1 dq --config "$own" doctor >seen || true
    [ "$(colours)" -gt 0 ]
    dq --config "$own" list --color never >seen
    [ "$(colours)" -eq 0 ]
    dq --config "$own" list --color auto >seen
    [ "$(colours)" -eq 0 ]
}

@test 'each state has its colour' {
    for status in 0 1 2 3 4; do
        sql "INSERT INTO dq_task (tag, message_body, status, expected_time, create_time)
             VALUES ('t', '', $status, UTC_TIMESTAMP(3) + INTERVAL 1 HOUR, UTC_TIMESTAMP(3))"
    done
    esc=$'\033'
    dq list -s all --sort id --color always -c status --no-header >seen
    diff seen - <<END
pending
${esc}[32mdone${esc}[0m
${esc}[31mfailed${esc}[0m
${esc}[1;36mrunning${esc}[0m
${esc}[2mcancelled${esc}[0m
END
}

@test 'CJK and emoji keep the columns of every table straight, also when they are cut' {
    wide='支払い🚀注文⚡キャンセル✅処理'
    for tag in "$wide" plain; do
        id=$(dq -q add "$tag" x --key "鍵$tag")
        hex=$(printf %s "$tag" | od -An -v -t x1 | tr -d ' \n')
        sql "INSERT INTO dq_attempt (task_id, version, attempt, start_time, finish_time, outcome, error_stack)
             VALUES ($id, 1, 1, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 'exit', REPEAT(_utf8mb4 0x$hex, 3));
             INSERT INTO dq_poller (token, host, pid, mode, slots, running, start_time, last_seen, stale_after, version,
                                    lease, handlers)
             VALUES (UNHEX(LEFT(SHA2($id, 256), 32)), _utf8mb4 0x$hex, 7, 'resident', 8, 3,
                     UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), 60000, '0.1.0', 60000, 0)"
    done
    for verb in list tags errors pollers "show $id"; do
        NO_COLOR=1 terminal "$DQ_BIN/dq --no-pager $verb 2>&1"
        python3 - "$verb" <<'END'
import sys, unicodedata
def width(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
def column(text, at):  # where the character at that index stands
    return width(text[:at])
lines = open("seen", encoding="utf-8").read().split("\n")
verb = sys.argv[1].split()[0]
heads = ("ID ", "TAG ", "HOST ", "ATTEMPT ")
head = next(i for i, line in enumerate(lines) if line.lstrip().startswith(heads))
names = lines[head]
rows = [line for line in lines[head + 1:] if "  " in line and not line.startswith("  dq")][:2]
assert rows, lines
for row in rows:
    assert verb in ("show", "pollers", "tags") or width(row) <= 80, (verb, width(row), row)
# a column that is aligned to the left begins at the same place in the heading and in each row
for name in ("STATUS", "ERROR", "HANDLER", "MODE", "OUTCOME", "FIRST", "LAST SEEN"):
    if " " + name in names:
        at = names.index(" " + name) + 1
        for row in rows:
            starts = [i for i, c in enumerate(row) if column(row, i) == at]
            assert starts and row[starts[0] - 1] == " " and row[starts[0]] != " ", (name, row)
END
    done
}
