#!/usr/bin/env bats
# dq completion: the words, and bash, zsh and fish as a person at a terminal uses them.

bats_require_minimum_version 1.5.0
load ../lib/sandbox

setup()
{
    sandbox_clear
    cd "$BATS_TEST_TMPDIR"
    mkdir bin
    ln -s "$DQ_BIN/dq" "$DQ_BIN/dqd" bin
    PATH=$PWD/bin:$PATH
}

# The words that the last word of a command line may become, in one line.
words() { dq completion --line -- "$@" | cut -f1 | paste -sd' '; }

# stored EXPECTED WORD...: the same with words of the database, which are left out if it does not answer at once.
stored()
{
    local expected=$1
    shift
    are_stored() { [ "$(words "$@")" = "$expected" ]; }
    wait_until are_stored "$@"
}

@test 'verbs, options and values come from the tables' {
    verbs=$(dq help | awk '/^[a-z].*:$/ { verbs = !/^options/ } verbs && /^  [a-z]/ { print $1 }')
    [ "$(wc -w <<<"$verbs")" -ge 20 ]
    all=" $(words '') "
    for verb in $verbs; do
        [[ $all == *" $verb "* ]]
        of_verb=" $(words "$verb" --) "
        for option in $(dq help "$verb" | grep -oE '^ +(-[A-Za-z], )? *--[a-z][a-z-]*' | sed 's/.*--/--/'); do
            [[ $of_verb == *" $option "* ]]
        done
    done
    [ "$(words exp)" = export ]
    [ "$(words -q list --stat)" = --status ]
    [ "$(words list --status fa)" = failed ]
    [ "$(words list -s failed,ru)" = failed,running ]
    [ "$(words list --status=fa)" = --status=failed ]
    [ "$(words list --columns id,att)" = id,attempt ]
    [ "$(words tags --columns tag,pen)" = tag,pending ]
    [ "$(words list -o '')" = 'table json ndjson tsv id csv' ]
    [ "$(words stats -o p)" = prometheus ]
    [ "$(words --color a)" = 'auto always' ]
    [ "$(words completion '')" = 'bash zsh fish' ]
    [ "$(words help pau)" = pause ]
    [ "$(words import '')" = :files ]
    [ "$(words --config '')" = :files ]
    [ "$(words nosuch '')" = '' ]
    [ "$(words list --no-such '')" = '' ]
    [ "$(words add -- --k)" = '' ]
}

@test 'tags, ids and keys come from the database' {
    fake_dqd served.only 'glob.*'
    first=$(dq -q add mail.welcome x --key order-1)
    dq -q add mail.digest x --key order-2 --in 1h
    dq -q cancel --key order-2 -y
    stored 'mail.digest mail.welcome' pause mail.
    stored served.only list -t s
    stored --tag=mail.welcome list --tag=mail.w
    stored "$((first + 1)) $first" show ''
    stored "$first" show 1 "$first"
    stored "$((first + 1)) $first" events ''
    [ "$(words why 1 '')" = '' ]
    stored order-1 cancel --key o
    helps() { dq completion --line -- show "$first" | grep -qx "$first"$'\tmail.welcome'; }
    wait_until helps
    dq -q add only.high x --priority high
    dq -q add only.low x --priority low
    stored 'only.high only.low' list -t only.
}

@test 'names that a shell or a terminal would act on are left out' {
    for name in '$(touch pwned)' '`touch pwned`' ';touch' '~root' '-rf' 'a|b' 'a&b' 'a>b' 'a{b}' "a'b" 'a"b' \
        'a b' 'a\b' 'a#!b' $'a\xe2\x80\xaeb' '=dq' ':files' 'größe:1' 'fine.tag'; do
        hex=$(printf %s "$name" | od -An -v -tx1 | tr -d ' \n')
        sql "INSERT INTO dq_task (tag, task_key, message_body, expected_time, create_time, update_time)
             VALUES (X'$hex', X'$hex', '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))"
    done
    stored 'fine.tag größe:1' pause ''
    stored 'fine.tag größe:1' cancel --key ''
    [ "$(words pause '$(touch')" = '' ]
}

@test 'a database that is away or does not answer is not waited for, and no error is printed' {
    own_ini 's|^socket *=.*|socket = /nonexistent\nconnect_timeout = 1h|'
    dq -q add elsewhere
    run -0 --separate-stderr words --config "$BATS_TEST_TMPDIR/own.ini" pause ''
    [ -z "$output$stderr" ]
    run -0 --separate-stderr words --config="$BATS_TEST_TMPDIR/own.ini" pause ''
    [ -z "$output$stderr" ]
    python3 - 3>&- <<'END_OF_PYTHON'
import socket, subprocess, sys
with socket.socket(socket.AF_UNIX) as mute:
    mute.bind("mute")
    mute.listen()
    text = open("own.ini").read().replace("/nonexistent", "mute")
    open("own.ini", "w").write(text)
    command = ["dq", "completion", "--line", "--", "--config", "own.ini", "pause", ""]
    got = subprocess.run(command, capture_output=True, timeout=60)  # a hundredth of connect_timeout
    mute.setblocking(False)
    mute.accept()  # fails if dq has not tried to connect
    if got.returncode or got.stdout or got.stderr:
        sys.exit(f"{got}")
END_OF_PYTHON
}

@test 'the scripts are those that are installed; another shell is refused' {
    local of=$DQ_TOP/etc/completion
    dq completion bash | cmp - <(cat "$of/bash/dq" "$of/bash/dqd")
    dq completion zsh | cmp - <(cat "$of/zsh/_dq" "$of/zsh/_dqd")
    dq completion fish | cmp - <(cat "$of/fish/dq.fish" "$of/fish/dqd.fish")
    run -64 dq completion tcsh
    [[ $output == *'bash, zsh or fish'* ]]
}

# completes_in SHELL ARG...: what a person at a terminal gets from it.
completes_in()
{
    dq -q add shop:order.paid x
    dq -q add shop:order.sent x
    touch orders.csv
    python3 "$DQ_TOP/test/lib/keys" "$@" 3>&- <<'END_OF_KEYS'
wait >\s
complete dq expo -> dq export\s
complete dq list --status fail -> --status failed\s
complete dq pause shop:order.p -> dq pause shop:order.paid\s
complete dq list --tag=shop:order.s -> --tag=shop:order.sent\s
complete dq import ord -> dq import orders.csv\s
complete dqd --resi -> dqd --resident\s
complete dqd --log-level noti -> dqd --log-level notice\s
complete dqd --once --tag shop:order.p -> dqd --once --tag shop:order.paid\s
complete dqd --tag=shop:order.s -> dqd --tag=shop:order.sent\s
complete dqd --config ord -> dqd --config orders.csv\s
END_OF_KEYS
}

@test 'bash completes at a terminal' {
    printf 'PS1="> "; bind "set bell-style none"; source <(dq completion bash)\n' >rc
    completes_in bash --noprofile --rcfile rc -i
}

@test 'zsh completes at a terminal' {
    mkdir zdot functions
    cp "$DQ_TOP"/etc/completion/zsh/* functions
    printf 'PS1="> "; fpath=(%s $fpath); autoload -U compinit; compinit -u -D\n' "$PWD/functions" >zdot/.zshrc
    ZDOTDIR=$PWD/zdot completes_in zsh -i
}

@test 'fish completes' {
    dq -q add shop:order.paid x
    touch orders.csv
    mkdir home
    offers()
    {
        HOME=$PWD/home fish --no-config -c "source $DQ_TOP/etc/completion/fish/${1%% *}.fish; complete -C '$1'" 3>&-
    }
    offered() { [ "$(offers "$1" | cut -f1)" = "$2" ]; }
    [ "$(offers 'dq expo')" = $'export\t'"$(dq help export | sed -n 's/^export: //p')" ]
    offered 'dq list --status fail' failed
    wait_until offered 'dq pause shop:order.p' shop:order.paid
    wait_until offered 'dq list --tag=shop:ord' --tag=shop:order.paid
    offered 'dq import ord' orders.csv
    [ "$(offers 'dqd --list-h')" = $'--list-handlers\tprint the handlers as dqd understands them' ]
    offered 'dqd --log-level noti' notice
    offered 'dqd --for 5' ''
    wait_until offered 'dqd --once --tag shop:order.p' shop:order.paid
    offered 'dqd --config ord' orders.csv
}
