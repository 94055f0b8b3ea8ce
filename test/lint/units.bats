# systemd understands the units, and rates the sandbox of hardening.conf as good; what is installed is complete.
# test/packages/run boots it.

setup()
{
    DQ_TOP=${DQ_TOP:-$BATS_TEST_DIRNAME/../..}
    DQ_BIN=${DQ_BIN:-$DQ_TOP/bin}
    command -v systemd-analyze >/dev/null || skip 'systemd-analyze is missing (Debian: apt-get install systemd)'
    mkdir "$BATS_TEST_TMPDIR/units"
    cd "$BATS_TEST_TMPDIR/units"
    cp "$DQ_TOP"/etc/systemd/*.{service,timer} .
    # It looks for programs where they are installed.
    sed -i "s|^\(Exec[A-Za-z]*=\)dqd |\1$DQ_BIN/dqd |" *.service
}

# At every level that a message may have.
@test 'systemd-analyze verify has no complaints about the units' {
    run systemd-analyze verify --man=no ./dqd.service ./dqd-once.service ./dqd.timer
    echo "$output"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test 'with hardening.conf the exposure of both services is at most 3.0' {
    for unit in dqd dqd-once; do
        cat "$DQ_TOP/etc/systemd/hardening.conf" >>$unit.service
        systemd-analyze verify --man=no ./$unit.service
        run systemd-analyze security --offline=true --threshold=30 --no-pager ./$unit.service
        tail -n 1 <<<"$output"
        [ "$status" -eq 0 ]
    done
}

@test 'make install puts the handlers where the installed samples name them, and uninstall removes all' {
    [ -e "$DQ_BIN/../Makefile" ] || skip 'the programs are not in a tree that make has built'
    made() { env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -C "$DQ_BIN/.." prefix=/opt/dq DESTDIR="$PWD/root" "$1"; }
    made install
    samples=root/opt/dq/share/doc/dq/examples
    grep -ohE '/[a-z/]+/libexec/dq/[a-z-]+' $samples/{handlers,destinations}.yaml | sort -u | sed 's|^|root|' >named
    find root/opt/dq/libexec/dq -type f -perm -u+x | sort | diff - named
    [ "$(wc -l <named)" -ge 9 ]
    [ -s $samples/prometheus/dq.rules.yml ]
    made uninstall
    [ "$(find root -type f)" = '' ]
}

@test 'a Debian package takes each folder of examples that is installed' {
    sed -n 's|^[a-z]*dir = $(examplesdir)/\([^/]*\).*|\1|p' "$DQ_TOP/Makefile.am" | sort -u >"$BATS_TEST_TMPDIR/folders"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/folders")" -ge 5 ]
    while read -r folder; do
        grep -q "^usr/share/doc/dq/examples/$folder\(/\| \|\$\)" "$DQ_TOP"/etc/debian/*.install ||
            echo "no package takes $folder"
    done <"$BATS_TEST_TMPDIR/folders" >"$BATS_TEST_TMPDIR/missing"
    cat "$BATS_TEST_TMPDIR/missing"
    [ ! -s "$BATS_TEST_TMPDIR/missing" ]
}
