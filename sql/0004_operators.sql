-- dq schema, migration 4: what operators ask about.
-- compat: 1

-- Each dqd counts what it does, by minute and tag.
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

-- What each dqd serves.
CREATE TABLE IF NOT EXISTS dq_handler (
  handlers bigint unsigned NOT NULL COMMENT 'a handlers file as dqd has read it; dq_poller.handlers refers to it',
  pattern varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'a tag, or a glob',
  is_glob tinyint unsigned NOT NULL,
  number int unsigned NOT NULL COMMENT 'its place among the handlers of the file, from 0',
  line int unsigned NOT NULL COMMENT 'of the file',
  digest bigint unsigned NOT NULL COMMENT 'of its settings, but for the values of env',
  batch int unsigned NOT NULL,
  max_running int unsigned NOT NULL COMMENT 'processes of a tag on a host',
  global_max_running int unsigned NOT NULL COMMENT 'tasks of a tag on all hosts; 0: no limit',
  max_attempts int unsigned NOT NULL,
  timeout bigint unsigned NOT NULL COMMENT 'ms',
  PRIMARY KEY (handlers, is_glob, pattern)
) ENGINE=InnoDB COMMENT='dq: the handlers of dqds; those with the same file share their rows';

CREATE TABLE IF NOT EXISTS dq_rest (
  token binary(16) NOT NULL COMMENT 'of a dqd in dq_poller',
  tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  rest_until datetime(3) NOT NULL,
  error text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'why its handler could not be started',
  PRIMARY KEY (token, tag)
) ENGINE=InnoDB COMMENT='dq: tags that a dqd leaves alone for a while, because their handler could not be started';

ALTER TABLE dq_poller ADD COLUMN handlers bigint unsigned NULL COMMENT 'what it serves, see dq_handler; 0: nothing', ALGORITHM=INSTANT;

ALTER TABLE dq_poller ADD COLUMN handlers_file mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'path of the handlers file', ALGORITHM=INSTANT;

ALTER TABLE dq_poller ADD COLUMN tags mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'globs of --tag, one a line; NULL: all tags', ALGORITHM=INSTANT;

ALTER TABLE dq_poller ADD COLUMN next_pass datetime(3) NULL COMMENT 'a pass that has ended: the next one is expected before', ALGORITHM=INSTANT;

ALTER TABLE dq_poller ADD COLUMN clock_ahead bigint NULL COMMENT 'ms by which the clock of its host is ahead of that of the server; NULL: not known yet', ALGORITHM=INSTANT;

-- What operators did, and when a dqd began and ended.
CREATE TABLE IF NOT EXISTS dq_event (
  token binary(16) NOT NULL COMMENT 'of the act; random, or made of that of a dqd',
  event_time datetime(3) NOT NULL COMMENT 'of the first change',
  actor varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'login@host, or dqd@host',
  verb varchar(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'cancel, retry, ..., dqd-start, dqd-end, dqd-lost',
  arguments varchar(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'what was asked for, as on the command line',
  tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'NULL: none, or several',
  task_id bigint unsigned NULL COMMENT 'NULL: none, or several',
  tasks bigint unsigned NOT NULL DEFAULT 0 COMMENT 'changed so far: grows with each step of a long act',
  PRIMARY KEY (token),
  KEY event_time (event_time)
) ENGINE=InnoDB COMMENT='dq: acts of operators, starts and ends of dqd';

-- What a running attempt writes, while someone follows it.
CREATE TABLE IF NOT EXISTS dq_output (
  task_id bigint unsigned NOT NULL,
  task_version bigint unsigned NOT NULL COMMENT 'of the task while this attempt runs',
  seq int unsigned NOT NULL COMMENT '0: the mark of a follower; 1 and up: the chunks, in order',
  until_time datetime(3) NULL COMMENT 'of the mark: someone follows the attempt until then',
  start_byte bigint unsigned NOT NULL DEFAULT 0 COMMENT 'how much the attempt had written before the chunk',
  is_last tinyint unsigned NOT NULL DEFAULT 0 COMMENT '1: the attempt has ended',
  chunk mediumblob NULL,
  PRIMARY KEY (task_id, task_version, seq)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='dq: output of running attempts, written only while someone follows it';

ALTER TABLE dq_attempt ADD KEY finished (finish_time), ALGORITHM=INPLACE, LOCK=NONE;
