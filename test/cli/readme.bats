# README's commands are real: each line behind a "$ " runs, in the order of the text, in the quick start's sandbox.
load ../lib/sandbox

setup_file() { sandbox_start_quickstart; }

setup() { cd "$BATS_TEST_TMPDIR"; }

# The commands behind the first block, except those that build and install.
commands()
{
    sed -n '/^TRY IT/,$s/^    \$ //p' "$DQ_TOP/README" | grep -vE '^(bin/quickstart|bin/check|\./autogen\.sh .*)$'
}

@test 'the commands that README names first exist' {
    grep -qxF '    $ bin/quickstart' "$DQ_TOP/README"
    grep -qxF '    $ bin/check' "$DQ_TOP/README"
    [ -x "$DQ_TOP/bin/quickstart" ]
    [ -x "$DQ_TOP/bin/check" ]
}

# The first block: commands with what they print.
first_block() { sed -n '/^    \$ dq add /,/^$/s/^    //p' "$DQ_TOP/README" | sed -n '1,/hello, brave new world/p'; }

# Whatever differs from run to run becomes N, D (durations) or HOST; columns lose their width.
steady() { sed -E 's/\b[0-9][0-9.]*(ms|s)\b/D/g; s/[0-9]+/N/g; s/^host .*/host HOST/; s/ +/ /g'; }

@test 'the first commands of README print what it shows' {
    first_block | steady >shown
    [ "$(wc -l <shown)" -gt 20 ]
    [ "$(grep -c '^\$ dqd\? ' shown)" -eq 4 ]
    first_block | sed -n 's/^\$ //p' | while IFS= read -r command; do
        printf '$ %s\n' "$command"
        TZ=UTC PATH=$DQ_BIN:$PATH bash -c "$command" </dev/null 2>&1
    done | steady >printed
    diff shown printed
}

@test 'each command of README works, in order' {
    sandbox_clear
    [ "$(commands | wc -l)" -ge 20 ]
    ln -s "$DQ_TOP/bin" "$DQ_TOP/etc" .
    ln -s "$DQ_SANDBOX" sandbox
    commands >commands
    env -u DQ_CONFIG -u DQ_SANDBOX bash -euo pipefail -x commands </dev/null
    [ "$(sql "SELECT status FROM dq_task WHERE task_key = 'order-1002'")" = 1 ]
}

@test 'the handlers that README shows are valid' {
    sed -n '/^    handlers:$/,/^$/s/^    //p' "$DQ_TOP/README" >handlers.yaml
    grep -q batch handlers.yaml
    chmod 0644 handlers.yaml
    sed "s|^handlers = .*|handlers = $PWD/handlers.yaml|" "$DQ_CONFIG" >dq.ini
    chmod 0600 dq.ini
    dqd --config dq.ini --check-config
}

@test 'README and bin/quickstart name the same packages' {
    for package in $(sed -n 's/^    # apt-get install //p' "$DQ_TOP/README"); do
        grep -qE "(^| )$package( |/|\$)" "$DQ_TOP/bin/quickstart"
        grep -qE "(^| )$package( |/|\$)" "$DQ_TOP/bin/check"
    done
}

@test 'etc/producers/README shows dq list with its columns' {
    heading() { sed -n 's/^ *ID  TAG /ID TAG /p' "$@" | sed -E 's/ +/ /g'; }
    dq -q add t body >/dev/null
    [ "$(heading "$DQ_TOP/etc/producers/README")" = "$(dq list 2>/dev/null | heading)" ]
}

# What test/bench/peers measured to print it, from README's table itself.
comparison() { sed -n '/^COMPARISON/,/^`test/p' "$DQ_TOP/README" | sed -n '/tasks per second/,/^$/p' | grep .; }
figures()
{
    comparison | sed 1,2d | tr -d , | awk -v peers="$1" '{
        split(peers, who, " ")
        split("process batches late-p50 late-p99 add", row, " ")
        for (i = 1; i <= 5; i++)
            print row[i] "\t1\t" who[NR] "\t" $(NF - 5 + i)
    }'
}

@test 'the comparison of README is what its command prints: each peer, each column' {
    peers=$(sed -n 's/^all=(\(.*\))$/\1/p' "$DQ_TOP/test/bench/peers")
    figures "$peers" >results.tsv
    [ "$(wc -l <results.tsv)" -eq $((5 * $(wc -w <<<"$peers"))) ]
    awk -F '\t' -v names="$peers" -f "$DQ_TOP/test/bench/median.awk" -f "$DQ_TOP/test/bench/peers.awk" results.tsv |
        diff - <(comparison)
}
