#!/usr/bin/env bats
# Tasks of a batch that are cancelled while its process runs.

load ../lib/sandbox
setup() { sandbox_clear; }
teardown() { dqd_reap; }

logged() { grep -q "$1" "$DQD_LOG"; }
begun() { [ "$(cat "$BATS_TEST_TMPDIR/begun" 2>/dev/null | wc -l)" -eq "$1" ]; }

@test "a task of a batch that is cancelled while it runs costs the others nothing" {
    write_handlers <<END
handlers:
  t:
    run: |
      echo >>$BATS_TEST_TMPDIR/begun
      until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.1; done
    batch: 10
END
    dq -q add t
    id=$(dq add t)
    dq -q add t
    dqd_start --resident
    wait_until begun 1
    dq cancel "$id"
    wait_until logged "task was cancelled or taken back; its batch goes on"
    touch "$BATS_TEST_TMPDIR/go"
    wait_until is 'status = 1 AND attempt = 1' 2
    dqd_stop
    begun 1
    is "status = 4 AND id = $id" 1
}

@test "a batch of which only cancelled tasks are left is stopped" {
    write_handlers <<END
handlers:
  t:
    run: |
      id=\$(sed -n 's/^{"id":\([0-9]*\).*/\1/p' | head -n 1)
      echo >>$BATS_TEST_TMPDIR/begun
      until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.1; done
      echo "{\"id\":\$id,\"result\":\"done\"}"
      exec sleep 300
    batch: 10
    timeout: 10m
END
    dq -q add t
    id=$(dq add t)
    dqd_start --resident
    wait_until begun 1
    dq cancel "$id"
    wait_until logged "task was cancelled or taken back; its batch goes on"
    touch "$BATS_TEST_TMPDIR/go"
    wait_until logged "attempt ended, but its task was cancelled"
    is 'status = 1' 1
    dqd_stop
}
