-- dq schema, migration 4: what operators ask about. Each dqd counts what it does, by minute and tag.
-- compat: 1

CREATE TABLE IF NOT EXISTS dq_minute (
  minute datetime(3) NOT NULL COMMENT 'when it began',
  tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'empty: tags beyond the number that a dqd counts apart',
  poller binary(16) NOT NULL COMMENT 'the dqd that counted, as in dq_poller: it alone writes the row',
  started int unsigned NOT NULL COMMENT 'attempts that began',
  done int unsigned NOT NULL COMMENT 'tasks that became done',
  failed int unsigned NOT NULL COMMENT 'tasks that failed for good',
  retried int unsigned NOT NULL COMMENT 'attempts that failed, whose task runs again',
  run_sum bigint unsigned NOT NULL COMMENT 'ms from start to end, all attempts that ended',
  late_sum bigint unsigned NOT NULL COMMENT 'ms by which the attempts began too late, together',
  late_max bigint unsigned NOT NULL COMMENT 'ms by which the latest one began too late',
  late_5ms int unsigned NOT NULL COMMENT 'attempts that began at most 5 ms late; the next columns: later than that, up to ...',
  late_10ms int unsigned NOT NULL,
  late_25ms int unsigned NOT NULL,
  late_50ms int unsigned NOT NULL,
  late_100ms int unsigned NOT NULL,
  late_250ms int unsigned NOT NULL,
  late_1s int unsigned NOT NULL,
  late_5s int unsigned NOT NULL,
  late_30s int unsigned NOT NULL,
  late_2m int unsigned NOT NULL,
  late_10m int unsigned NOT NULL,
  late_1h int unsigned NOT NULL COMMENT 'those that began even later are the rest of started',
  PRIMARY KEY (minute, tag, poller)
) ENGINE=InnoDB COMMENT='dq: what each dqd did in each minute, written with its heartbeat';
