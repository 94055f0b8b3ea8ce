# README's commands are real: each line behind a "$ " runs, in the order of the text, in the quick start's sandbox.
load ../lib/sandbox

setup_file()
{
    sandbox_start
    install -m 0644 "$DQ_TOP/etc/quickstart/handlers.yaml" "$DQ_SANDBOX/handlers.yaml"
    mkdir "$DQ_SANDBOX/handlers"
    install -m 0755 "$DQ_TOP"/etc/quickstart/handlers/* "$DQ_SANDBOX/handlers/"
    install -m 0644 "$DQ_TOP/etc/quickstart/shop.txt" "$DQ_SANDBOX/"
}

setup() { cd "$BATS_TEST_TMPDIR"; }

# The commands, but for those that build and install.
commands() { sed -n 's/^    \$ //p' "$DQ_TOP/README" | grep -vE '^(bin/quickstart|bin/check|\./autogen\.sh .*)$'; }

@test 'the two commands that README names first are there' {
    grep -qxF '    $ bin/quickstart' "$DQ_TOP/README"
    grep -qxF '    $ bin/check' "$DQ_TOP/README"
    [ -x "$DQ_TOP/bin/quickstart" ]
    [ -x "$DQ_TOP/bin/check" ]
}

@test 'each command of README works, in order' {
    [ "$(commands | wc -l)" -gt 20 ]
    ln -s "$DQ_TOP/bin" "$DQ_TOP/etc" .
    ln -s "$DQ_SANDBOX" sandbox
    commands >commands
    env -u DQ_CONFIG -u DQ_SANDBOX bash -euo pipefail -x commands </dev/null
    [ "$(sql "SELECT status FROM dq_task WHERE task_key = 'order-1002'")" = 1 ]
}

@test 'the handlers that README shows are accepted' {
    sed -n '/^    handlers:$/,/^$/s/^    //p' "$DQ_TOP/README" >handlers.yaml
    grep -q batch handlers.yaml
    chmod 0644 handlers.yaml
    sed "s|^handlers = .*|handlers = $PWD/handlers.yaml|" "$DQ_CONFIG" >dq.ini
    chmod 0600 dq.ini
    dqd --config dq.ini --check-config
}

@test 'the packages that README names are those that the quick start installs' {
    for package in $(sed -n 's/^    # apt-get install //p' "$DQ_TOP/README"); do
        grep -qE "(^| )$package( |/|\$)" "$DQ_TOP/bin/quickstart"
        grep -qE "(^| )$package( |/|\$)" "$DQ_TOP/bin/check"
    done
}
