# Descriptors that do not block, as other programs leave the pipes that dq shares with them.

load ../lib/sandbox

setup() { sandbox_clear; }

@test 'standard input and output that do not block are waited for, and no byte is lost' {
    printf '{"tag":"t","in":"1h","body":"%01000d"}\n' {1..500} | dq -q add --from - >/dev/null
    dq export >"$BATS_TEST_TMPDIR/export"
    dq list -n 0 -o tsv -c id,body >"$BATS_TEST_TMPDIR/list"
    cat >"$BATS_TEST_TMPDIR/slow" <<'END'
import array, fcntl, os, select, subprocess, termios, time

DQ = os.environ["DQ_BIN"] + "/dq"

def waiting(fd):
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]

def until(dq, true):
    while not true() and dq.poll() is None:
        time.sleep(0.001)

def is_full(fd):
    return not select.select([], [fd], [], 0)[1]

def read(*command): # when the pipe is full, each time
    out, fd = os.pipe()
    os.set_blocking(fd, False)
    dq = subprocess.Popen([DQ, *command], stdout=fd)
    text = b""
    while dq.poll() is None or waiting(out):
        until(dq, lambda: is_full(fd))
        text += os.read(out, waiting(out)) if waiting(out) else b""
    return dq.wait(), text

for name, command in (("export", ["export"]), ("list", ["list", "-n", "0", "-o", "tsv", "-c", "id,body"])):
    status, text = read(*command)
    with open(name, "rb") as f:
        assert (status, text) == (0, f.read()), (command, status, len(text))

for command in (["add", "slow", "-"], ["add", "--from", "-"]):
    fd, into = os.pipe()
    os.set_blocking(fd, False)
    dq = subprocess.Popen([DQ, "-q", *command], stdin=fd, stdout=subprocess.DEVNULL)
    for piece in [b'{"tag":"slow","body":"'] + 20 * [b"x"] + [b'"}\n']: # each when the last one was taken
        os.write(into, piece)
        until(dq, lambda: waiting(fd) == 0)
    os.close(into)
    assert dq.wait() == 0, (command, dq.returncode)
END
    (cd "$BATS_TEST_TMPDIR" && DQ_BIN=$DQ_BIN python3 slow)
    x=xxxxxxxxxxxxxxxxxxxx
    [ "$(sql "SELECT message_body FROM dq_task WHERE tag = 'slow'")" = '{"tag":"slow","body":"'$x$'"}\\n\n'$x ]
}
