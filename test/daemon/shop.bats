#!/usr/bin/env bats
# An hour of a shop, played in two minutes, which an outage of the database lasts: a stock index that is added again, a
# provider that asks for patience, calls that expire, and a payment that fails. Leases end several times meanwhile.

load ../lib/sandbox
teardown() { kill $PROVIDER 2>/dev/null || true; }

# The provider takes one request in three, and asks the others to come again after a second.
provider()
{
    cat >"$BATS_TEST_TMPDIR/provider.py" <<'END'
import http.server, os, sys, time

class Provider(http.server.BaseHTTPRequestHandler):
    seen = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        Provider.seen += 1
        busy = Provider.seen % 3
        with open(sys.argv[1] + "/requests", "a") as f:
            f.write(f"{body} {429 if busy else 200} {time.time()}\n")
        self.send_response(429 if busy else 200)
        if busy:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Provider)
with open(sys.argv[1] + "/port.new", "w") as f:
    f.write(str(server.server_port))
os.rename(sys.argv[1] + "/port.new", sys.argv[1] + "/port")
server.serve_forever()
END
    python3 "$BATS_TEST_TMPDIR/provider.py" "$BATS_TEST_TMPDIR" 3>&- &
    PROVIDER=$!
    wait_until test -s "$BATS_TEST_TMPDIR/port"
}

# Each change of a product's stock, under the product's key; from the ninth on, the database is away.
change_stock()
{
    local n
    for n in {1..24}; do
        [ "$n" -lt 9 ] || wait_until test -e "$BATS_TEST_TMPDIR/outage" || return
        echo "$((n % 3)) $n" >>"$BATS_TEST_TMPDIR/changes"
        dq -q add stock "$n" --key "product-$((n % 3))" --key-conflict again --retry-for 5m >/dev/null || return
    done
}

long_enough() { [ "$SECONDS" -ge 120 ]; }

@test 'an hour of the shop: nothing is lost, late results are right, and each failure is answered once' {
    local n work=$BATS_TEST_TMPDIR
    provider
    write_handlers <<END
handlers:
  stock:
    run: body=\$(cat); sleep 1; echo "\$body" >>"$work/index.\$DQ_KEY"
  notify:
    run: [$DQ_TOP/etc/handlers.d/http-post, "http://127.0.0.1:$(cat "$work/port")/"]
    retry: [10ms]
    max_running: 2
  call:
    run: echo called >>"$work/calls"
    expires: 1m
  pay:
    run: grep -v bad >/dev/null || { echo card declined; exit 65; }
    on_failed: pay.failed
  pay.failed:
    run: cat >>"$work/refunds"; echo >>"$work/refunds"
END
    own_ini 's/^\[dqd\]/&\nlease = 20s/'
    export DQ_CONFIG=$work/own.ini
    dqd_start --resident
    change_stock 3>&- &
    producer=$!
    for n in 1 2 3 4; do dq -q add notify "order-$n" --max-attempts 30; done
    for n in 1 2 bad 4; do dq -q add pay "$n" --key "payment-$n"; done
    dq -q add call later --in 1h
    kill -STOP "$DQD_PID" # it sees none of these before the outage
    for n in 1 2 3; do dq -q add call "$n"; done
    "$DQ_TOP/bin/dq-sandbox" stop
    kill -CONT "$DQD_PID"
    SECONDS=0
    touch "$work/outage"
    wait_until long_enough
    "$DQ_TOP/bin/dq-sandbox" start 3>&-
    wait "$producer"
    wait_until is 'status IN (0, 3)' 1
    dqd_stop

    # after its last change, each product was indexed with that change
    for n in 0 1 2; do
        last=$(awk -v p="$n" '$1 == p { n = $2 } END { print n }' "$work/changes")
        [ "$(tail -n 1 "$work/index.product-$n")" = "$last" ]
    done
    # each order has reached the provider once, and none came sooner than it had asked for
    [ "$(awk '$2 == 200 { print $1 }' "$work/requests" | sort)" = $'order-1\norder-2\norder-3\norder-4' ]
    grep -q ' 429 ' "$work/requests"
    awk '$1 in asked && $3 < asked[$1] { print "too soon: " $0 }
         $2 == 429 { asked[$1] = $3 + 1 }' "$work/requests" >"$work/soon"
    [ ! -s "$work/soon" ]
    # no customer is called so late
    [ ! -e "$work/calls" ]
    is "tag = 'call' AND error_stack LIKE 'expired: %'" 3
    is "tag = 'call' AND status = 0" 1
    # the payment that failed is refunded once, and the refund knows which it was
    [ "$(wc -l <"$work/refunds")" -eq 1 ]
    grep -q '"tag":"pay","key":"payment-bad","error":"exit status 65: card declined".*"body":"bad"}' "$work/refunds"
    [ "$(sql "SELECT GROUP_CONCAT(status ORDER BY id) FROM dq_task WHERE tag = 'pay'")" = 1,1,2,1 ]
}
