# What bin/check takes, what it lets the tests call, and what it says of them: how many failed, and which.

setup()
{
    top=${DQ_TOP:-$BATS_TEST_DIRNAME/../..}
    cd "$BATS_TEST_TMPDIR"
    lib=$top/test/lib
    driver=${DQ_TOP:-$BATS_TEST_DIRNAME/../..}/build-aux/tap-driver.sh
}

# drive NAME STATUS <TAP: as make check runs a test that prints this and exits with that.
drive()
{
    { echo 'cat <<END'; cat; echo END; echo "exit $2"; } >"$1"
    env AM_TAP_AWK=awk sh "$driver" --test-name "$1" --log-file "$1.log" --trs-file "$1.trs" -- sh "$1" >/dev/null
}

# drive_with RUNNER NAME: as make check runs it, with a limit of two seconds. A bats in a bats must not know of that.
drive_with()
{
    env -i PATH="${PATH#*/bats-core:}" DQ_TEST_TIMEOUT=2 AM_TAP_AWK=awk \
        sh "$driver" --test-name "$2" --log-file "$2.log" --trs-file "$2.trs" -- "$1" "$2" >/dev/null
}

# counted NAME 'PASSED FAILED SKIPPED'
counted()
{
    awk -f "$lib/results.awk" "$1.trs" | tee counts
    [ "$(cat counts)" = "$2 $1.trs" ]
}

@test 'a failed test is counted once, and a program that fails without one is counted, too' {
    drive passes 0 <<<$'1..3\nok 1 a\nok 2 b # SKIP not here\nok 3 c'
    counted passes '2 0 1'
    drive fails 1 <<<$'1..3\nok 1 a\nnot ok 2 b\nok 3 c'
    counted fails '2 1 0'
    drive fails_twice 2 <<<$'1..2\nnot ok 1 a\nnot ok 2 b'
    counted fails_twice '0 2 0'
    drive crashes 139 <<<$'1..3\nok 1 a'
    counted crashes '1 1 0'
    drive exits 1 <<<$'1..1\nok 1 a'
    counted exits '1 1 0'
    drive says_nothing 0 </dev/null
    counted says_nothing '0 1 0'
    drive bails_out 0 <<<'Bail out! bats is missing'
    counted bails_out '0 1 0'
    awk -f "$lib/results.awk" *.trs >counts
    [ "$(awk '{ p += $1; f += $2; s += $3 } END { print p, f, s }' counts)" = '6 7 1' ]
}

@test 'of a log, what belongs to its failed tests is printed; all of it if none has failed' {
    drive fails 1 <<<$'1..3\nok 1 a\n# of a\nnot ok 2 b\n# of b\nok 3 c\n# of c'
    drive crashes 139 <<<$'1..3\nok 1 a\n# the end'
    awk -f "$lib/failures.awk" fails.log crashes.log | tee shown
    [ "$(grep -c '^# of b$' shown)" -eq 1 ]
    [ "$(grep -c '^# of [ac]$' shown)" -eq 0 ]
    grep -qx '# the end' shown
}

@test 'in bin/check, tests find the commands of its packages and of essential ones, and no others' {
    command -v dpkg-query || skip 'no packages of Debian here'
    packages=$("$top/bin/check" --packages)
    "$lib/bare-path" path $packages
    for command in awk less mandoc mariadbd ps python3; do [ -x "path/$command" ]; done
    [ ! -e path/apt-get ]
    "$lib/bare-path" path $(grep -vx less <<<"$packages")
    [ ! -e path/less ]
}

@test 'bin/check, bin/quickstart and the runners refuse what they do not know, and say so' {
    for script in bin/check bin/quickstart .ci/run test/{analyze,bench,builds,fault,fuzz,producers,servers}/run; do
        status=0
        "$top/$script" --nonsense 2>said || status=$?
        cat said
        [ "$status" = 64 ] || [[ $script != bin/* && $status = 2 ]] # as Python's argparse ends
        grep -qi -- --nonsense said
    done
    for option in -h --help; do
        "$top/bin/check" $option | grep -F 'usage: bin/check'
        "$top/bin/quickstart" $option | grep -F 'quickstart - '
    done
}

@test 'a test that hangs ends by its own limit, and is a failure' {
    printf '@test "it hangs" { while :; do read -r -t 1 <> <(:) || true; done; }\n' >hangs.bats
    drive_with "$lib/bats-tap" hangs.bats
    counted hangs.bats '0 1 0'
    grep -F 'Bail out! hangs.bats still runs after 2 s' hangs.bats.log
    printf '#!/bin/sh\nwhile :; do :; done\n' >hangs
    chmod +x hangs
    drive_with "$lib/run-test" ./hangs
    counted ./hangs '0 1 0'
}

@test 'test/servers/run installs what bin/check installs before it runs anything' {
    command -v dpkg-query || skip 'no packages of Debian here'
    "$lib/bare-path" path $("$top/bin/check" --packages)
    rm -f path/fish
    mkdir stubs
    printf '#!/bin/sh\n' >stubs/dpkg-query # nothing is installed
    printf '#!/bin/sh\necho "$@"\nexit 100\n' >stubs/apt-get
    chmod +x stubs/*
    PATH=$PWD/stubs:$PWD/path run "$top/test/servers/run" --dir servers mariadb-10.11
    echo "$output"
    [ "$status" = 1 ]
    grep -E '^( *apt-get .*install|installing) .*\bfish\b' <<<"$output"
    [ ! -e servers ]
}
