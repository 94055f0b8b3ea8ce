#!/usr/bin/env bats
# Priorities and turns with real dqds: which of the due tasks start first, and that none waits for ever.

load ../lib/sandbox
setup() { sandbox_clear; cd "$BATS_TEST_TMPDIR"; }
teardown() { dqd_reap; }

# many PRIORITY N: of tag t
many() { yes "{\"tag\":\"t\",\"body\":\"$1\",\"priority\":\"$1\"}" | head -n "$2" | dq -q add --from -; }
starts() { wc -l <starts; }
all_started() { [ "$(starts)" -ge "$1" ]; }
# handler KEYS: of tag t, writes each body to starts
handler()
{
    write_handlers <<END
handlers:
  t: {run: 'read -r body; echo "\$body" >>$BATS_TEST_TMPDIR/starts'$1}
END
    : >starts
}

@test 'among 5,000 due tasks at 100 a minute, one of high priority starts with the next slot' {
    handler
    dq -q limit t --rate 100/m
    many normal 5000
    dqd_start --resident
    wait_until all_started 2
    dq -q add t high --priority high
    added=$(starts)
    wait_until grep -qx high starts
    # a start that was reserved before may come first
    [ "$(grep -nx high starts | cut -d : -f 1)" -le $((added + 2)) ]
}

@test 'one start in eight at least goes to each priority that has due tasks, the most to the highest' {
    for slots in 1 4; do
        handler ", max_running: $slots"
        sandbox_clear
        many low 100
        many normal 100
        many high 100
        DQ_DQD_CLAIM_BATCH=8 dqd --once
        [ "$(starts)" -eq 300 ]
        # while all three had tasks: what a claim owes comes last, and a process may begin later
        head -n 120 starts | awk -v slack=$((8 + 4 * slots)) '{ n[$1]++ }
            END { exit !(n["low"] * 8 >= 120 - slack && n["normal"] * 8 >= 120 - slack && n["high"] >= 120 * 5 / 8) }'
        [ "$(tail -n 40 starts | grep -cx high)" -eq 0 ]
    done
}

@test 'a task keeps its priority over a retry and the end of its dqd' {
    write_handlers <<END
handlers:
  t: {run: 'if [ \$DQ_ATTEMPT = 1 ]; then exit 75; fi; sleep 60', retry: [0s, 1h]}
END
    dq -q add t --priority high
    dqd_start --resident
    wait_until is 'status = 3 AND attempt = 2' 1
    kill -TERM "$DQD_PID"
    wait_until is 'status = 5 AND priority = 5' 1
}

@test 'of the slots that become free, a tag of three times the weight gets three of four' {
    write_handlers <<END
defaults: {max_running: 100}
handlers:
  heavy: {run: exec $PWD/handler, weight: 30}
  light: {run: exec $PWD/handler}
END
    cat >handler <<END
#!/bin/sh
cd $PWD; echo \$DQ_TAG \$DQ_ID >>starts
exec <go.\$DQ_ID # waits until it is opened for writing
END
    chmod +x handler
    : >starts
    for tag in heavy light; do yes "{\"tag\":\"$tag\"}" | head -n 120 | dq -q add --from -; done
    mkfifo $(sql "SELECT CONCAT('go.', id) FROM dq_task")
    DQ_DQD_SLOTS=8 dqd_start --resident
    begun() { [ "$(starts)" -ge "$1" ]; }
    wait_until begun 6 # of 8 slots 2 are kept for tags that run nothing
    for ((n = 7; n <= 120; n++)); do # one after the other becomes free
        : >"go.$(sed -n "$((n - 6))p" starts | cut -d ' ' -f 2)"
        wait_until begun "$n"
    done
    for fifo in go.*; do exec {fd}<>"$fifo"; done
    # A start counts by how long a tag's tasks take. Where the machine becomes slower meanwhile, this is learned of the
    # one tag before the other: so many of some 40 in a row. Without weights, 20 of any.
    awk '{ heavy[NR] = heavy[NR - 1] + ($1 == "heavy"); n = heavy[NR] - heavy[NR - 40] }
        NR >= 60 && NR <= 120 && n >= 26 && n <= 34 { found = 1 }
        END { exit !found }' starts || {
        cut -c 1 starts | tr -d '\n'
        false
    }
}

@test "a dqd whose slots are in use leaves the tasks of other tags to another one" {
    : >starts
    write_handlers <<END
handlers:
  'h.*':
    run: echo >>$BATS_TEST_TMPDIR/starts; exec <$BATS_TEST_TMPDIR/go
END
    mkfifo go
    seq 60 | awk '{ for (i = 0; i < 2; i++) print "{\"tag\":\"h." $1 "\"}" }' | dq -q add --from -
    "$DQ_BIN/dqd" --resident --slots 4 3>&- & few=$!
    wait_until all_started 4
    "$DQ_BIN/dqd" --resident --slots 100 3>&- & many=$!
    wait_until all_started 64
    exec {fd}<>go
    wait_until is 'status = 1' 120
    kill $few $many
    wait $few $many
}

@test 'of a rate that tags share, one whose handler takes batches has its part' {
    write_handlers <<END
handlers:
  one: {run: ':', limit: shared}
  many: {run: 'cat >/dev/null', limit: shared, batch: 5}
END
    dq -q limit shared --rate 20/s
    yes '{"tag":"one"}' | head -n 2000 | dq -q add --from -
    yes '{"tag":"many"}' | head -n 40 | dq -q add --from -
    dqd_start --resident
    wait_until is "tag = 'many' AND status = 1" 40
    [ "$(sql "SELECT COUNT(*) FROM dq_task WHERE tag = 'one' AND status = 0")" -gt 1000 ]
}
