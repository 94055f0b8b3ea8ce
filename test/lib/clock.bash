# A sandbox whose server has a clock that can be set, for bats: source it behind sandbox.bash. libfaketime moves it:
# $DQ_SANDBOX/server/clock has the offset to that of this host.

setup_file()
{
    local library program server
    server=$(PATH=$PATH:/usr/sbin command -v mariadbd)
    # a server of an older system needs that system's library
    library=$(echo "$(dirname "$server")"/../root/usr/lib/*/faketime/libfaketimeMT.so.1)
    [ -e "$library" ] || library=$(echo /usr/lib/*/faketime/libfaketimeMT.so.1)
    DIR=$(mktemp -d /var/tmp/dq-clock.XXXXXX) # where the server's account can execute it
    export DIR
    program=$DIR/mariadbd
    cat >"$program" <<END
#!/bin/sh
[ "\$2" != --version ] || exec $server "\$@"
echo +0 >clock
export FAKETIME_TIMESTAMP_FILE="\$PWD/clock" FAKETIME_NO_CACHE=1 FAKETIME_DONT_RESET=1 DONT_FAKE_MONOTONIC=1
export FAKETIME_DONT_FAKE_MONOTONIC=1 LD_PRELOAD=$library
exec $server "\$@"
END
    chmod 755 "$DIR" "$program"
    PATH=$DIR:$PATH sandbox_start
}

teardown_file()
{
    sandbox_destroy
    rm -rf "$DIR"
}

# set_clock OFFSET, +N or -N seconds: a file that is replaced is read by the server's next look at the clock.
set_clock()
{
    local clock
    clock=$(readlink -f "$DQ_SANDBOX/server")/clock
    echo "$1" >"$clock.new"
    chmod 644 "$clock.new"
    mv "$clock.new" "$clock"
    is_set() { [ "$(sql "SELECT ABS(UNIX_TIMESTAMP() - $(date +%s) - ($1)) < 10")" = 1 ]; }
    wait_until is_set "$1"
}
