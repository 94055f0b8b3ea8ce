# The examples of dq(1), line by line: each line of it that begins with "$ " is run as it is printed.

load ../lib/sandbox

examples() { mandoc -T ascii "$DQ_TOP/doc/dq.1" | sed -n 's/^ *\$ //p'; }

@test 'every example of dq(1) works as printed' {
    cd "$BATS_TEST_TMPDIR"
    mkdir bin
    ln -s "$DQ_BIN/dq" bin/dq
    [ "$(examples | wc -l)" -ge 15 ]
    examples | while IFS= read -r line; do
        echo "\$ $line"
        PATH=$PWD/bin:$PATH bash -e -o pipefail -c "$line" </dev/null
    done
    [ "$(sql 'SELECT COUNT(*) FROM dq_task')" -ge 8 ]
}
