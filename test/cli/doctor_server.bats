# dq doctor on a server that was started with unsafe settings.

load ../lib/sandbox

setup_file() { sandbox_start --options '--log-bin --sync-binlog=0 --skip-innodb-doublewrite'; }

# says CHECK TEXT: the line of that check.
says() { dq doctor -o tsv | grep -P "^[A-Za-z]*\\t$1\\t" | tee /dev/stderr | grep -qF -- "$2"; }

@test 'a binary log that is not flushed and pages that are written once are reported' {
    says durability 'innodb_doublewrite = OFF: a power failure may destroy pages; set it to ON'
    says durability 'sync_binlog = 0: a power failure may lose tasks; set it to 1'
    sql 'SET GLOBAL sync_binlog = 1'
    refute says durability sync_binlog
}

@test 'a binary log that refuses what dq writes is BAD' {
    says isolation 'READ COMMITTED; binlog_format = '
    sql 'SET GLOBAL binlog_format = STATEMENT'
    says isolation 'BAD'
    says isolation 'binlog_format = STATEMENT refuses writes under READ COMMITTED (error 1665); set it to ROW'
    run dq add t
    [ "$status" -ne 0 ]
    [[ $output == *1665* ]]
    sql 'SET GLOBAL binlog_format = ROW'
    dq -q add t
}

@test 'a server that runs with innodb_force_recovery is reported' {
    "$DQ_TOP/bin/dq-sandbox" stop 3>&-
    "$DQ_TOP/bin/dq-sandbox" start --no-schema --options --innodb-force-recovery=1 3>&-
    says durability 'innodb_force_recovery = 1: a server that is being rescued may refuse or lose tasks'
}
