#!/usr/bin/env bats
# The sample handlers of etc/handlers.d do what their comments say.

@test 'mail-batch: a mail that the server refuses fails or is retried by itself, whatever is refused' {
    python3 - "$DQ_TOP/etc/handlers.d/mail-batch" 3>&- <<'END'
import json, socket, subprocess, sys, threading

ANSWERS = {'EHLO': '250 hello', 'MAIL': '250 ok', 'RCPT': '250 ok', 'DATA': '354 go on', '.': '250 ok',
           'RSET': '250 ok'}
refused = [ # the command that is refused, the answer, and the verdict
    ('MAIL', '553 no', 'fail'), ('MAIL', '451 later', 'retry'),
    ('RCPT', '550 no', 'fail'), ('RCPT', '450 later', 'retry'),
    ('DATA', '554 no', 'fail'), ('.', '554 spam', 'fail'), ('.', '452 full', 'retry'), ('QUIT', '', 'done')]

def serve(listener):
    connection = listener.accept()[0]
    lines = connection.makefile('rb')
    said, mail, in_data = '220 ready', 0, False
    while True:
        connection.sendall(said.encode() + b'\r\n')
        line = lines.readline()
        while in_data and line and line != b'.\r\n':
            line = lines.readline()
        if not line:
            return
        command = '.' if in_data else line.decode().split()[0].upper()
        mail += command == 'MAIL'
        said = ANSWERS.get(command, '500 what?')
        if 0 < mail <= len(refused) and command == refused[mail - 1][0]:
            said = refused[mail - 1][1]
        in_data = said.startswith('354')

listener = socket.create_server(('127.0.0.1', 0))
threading.Thread(target=serve, args=(listener,), daemon=True).start()
body = json.dumps({'to': 'a@example.org', 'subject': 's', 'text': 't'})
tasks = ''.join(json.dumps({'id': i + 1, 'run_id': str(i + 1), 'body': body}) + '\n' for i in range(len(refused)))
server = '127.0.0.1:%d' % listener.getsockname()[1]
got = subprocess.run([sys.argv[1], server], input=tasks, capture_output=True, text=True,
                     env={'MAIL_FROM': 'shop@example.org'})
verdicts = [json.loads(line)['result'] for line in got.stdout.splitlines()]
expected = [verdict for _, _, verdict in refused]
if verdicts != expected or got.returncode:
    sys.exit('verdicts %s, status %d, %s' % (verdicts, got.returncode, got.stderr))
END
}

@test 'test/handlers/run skips a destination whose packages cannot be had, and names them' {
    mkdir "$BATS_TEST_TMPDIR/path"
    cd "$BATS_TEST_TMPDIR/path"
    ln -s /usr/sbin/* /usr/bin/* . 2>/dev/null || true
    rm -f msmtp apt-get dpkg-query
    printf '#!/bin/sh\ncase $* in *msmtp*) exit 1 ;; esac\necho installed\n' >dpkg-query
    chmod +x dpkg-query
    PATH=$PWD run "$DQ_TOP/test/handlers/run" mail
    echo "$output"
    [ "$status" -eq 0 ]
    [[ ${lines[0]} = 'ok 1 - mail # SKIP '*msmtp* ]]
    run "$DQ_TOP/test/handlers/run" mail nonsense
    [ "$status" -eq 64 ]
    [[ $output = *nonsense* ]]
}

@test 'destinations.yaml: each script is there, and ends before the timeout of its entry' {
    cd "$DQ_TOP/etc/handlers.d"
    checked=0
    while read -r script timeout; do
        default=$(grep -oE '[^_]TIMEOUT(", "|:-)[0-9]+' "$script" | grep -oE '[0-9]+')
        each=$(grep -oE 'TASK_TIMEOUT", "[0-9]+' "$script" | grep -oE '[0-9]+') || each=1
        [ $((2 * each)) -le "$default" ]
        case $timeout in
        *m) timeout=$((60 * ${timeout%m})) ;;
        *s) timeout=${timeout%s} ;;
        esac
        echo "$script: $default s, its entry: $timeout s"
        [ "$default" -lt "$timeout" ]
        checked=$((checked + 1))
    done < <(sed -nE 's|.*run: \[/usr/local/libexec/dq/([a-z-]+),.*|\1|p; s|^ +timeout: (.*)|\1|p' destinations.yaml |
        paste -d' ' - -)
    [ "$checked" -ge 9 ]
    for script in *; do
        [[ $script == *.* ]] || grep -qF "/usr/local/libexec/dq/$script," destinations.yaml
    done
}

@test 'destinations.yaml: each variable is one that its script reads' {
    cd "$DQ_TOP/etc/handlers.d"
    awk '/run: / { sub(/.*\/libexec\/dq\//, ""); script = $0; sub(/,.*/, "", script) }
         /^ +env: / { while (match($0, /[A-Z_]+:/)) {
             print script, substr($0, RSTART, RLENGTH - 1); $0 = substr($0, RSTART + RLENGTH) } }' destinations.yaml |
        tee "$BATS_TEST_TMPDIR/read"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/read")" -ge 12 ]
    while read -r script name; do
        grep -qw "$name" "$script" || { echo "$script does not read $name"; false; }
    done <"$BATS_TEST_TMPDIR/read"
}
