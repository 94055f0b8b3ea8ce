-- dq schema, migration 1: tasks, their attempts, tags, pollers.
-- compat: 1
--
-- `dq init` applies these files in order; `dq init --print-sql` prints them for a DBA. Statements end with ";" at the end of a
-- line. A migration that broke off is continued: `dq init` leaves out what has been done. `compat` is the oldest schema number
-- whose programs work with the tables that this migration leaves.
-- All times are DATETIME(3) in UTC and are compared with UTC_TIMESTAMP(3) only.

CREATE TABLE IF NOT EXISTS dq_meta (
  name varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  value varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB COMMENT='dq: facts about the schema: schema_version, the number of the last migration, and schema_compat, the oldest number that still works';

-- An application may insert tasks itself, inside its own transaction:
--   INSERT INTO dq_task (tag, message_body, expected_time, create_time)
--   VALUES ('order.cancel-unpaid', ?, UTC_TIMESTAMP(3) + INTERVAL 30 MINUTE, UTC_TIMESTAMP(3));
-- with a key: also task_key. `live` is then 1 by itself (migration 3).
CREATE TABLE IF NOT EXISTS dq_task (
  id bigint unsigned NOT NULL AUTO_INCREMENT,
  tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'picks the handler',
  task_key varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'unique per tag among pending and running tasks',
  live tinyint unsigned NULL COMMENT '1 while a task with a key is pending or running, else NULL: makes the key unique among live tasks only',
  message_body longblob NOT NULL COMMENT 'bytes, handed to the handler on stdin',
  body_size int unsigned NULL COMMENT 'bytes of message_body; NULL: not known, the body is fetched when the task starts',
  status tinyint unsigned NOT NULL DEFAULT 0 COMMENT '0 pending, 1 done, 2 failed, 3 running, 4 cancelled',
  version bigint unsigned NOT NULL DEFAULT 0 COMMENT '+1 on every transition',
  attempt int unsigned NOT NULL DEFAULT 0 COMMENT 'attempts started',
  max_attempts int unsigned NULL COMMENT 'NULL: by the ladder of the handler, written at the first claim',
  add_token binary(16) NULL COMMENT 'of the dq add that stored it: tells whether an insert whose answer was lost took place',
  claim_token binary(16) NULL COMMENT 'the process that claimed it last',
  host varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'of the last owner',
  pid int unsigned NULL COMMENT 'of dqd on that host',
  lease_until datetime(3) NULL COMMENT 'a running task is taken back when this has passed',
  delay_time bigint unsigned NOT NULL DEFAULT 0 COMMENT 'ms, as asked',
  expected_time datetime(3) NOT NULL COMMENT 'when it is due; moves on retry and reschedule',
  execution_time datetime(3) NULL COMMENT 'start of the last attempt',
  finish_time datetime(3) NULL COMMENT 'when it became done, failed or cancelled',
  exit_code smallint unsigned NULL COMMENT 'of the last attempt',
  `signal` tinyint unsigned NULL COMMENT 'that ended the last attempt',
  error_stack text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'why the last attempt failed',
  output mediumblob NULL COMMENT 'tail of what the last attempt wrote',
  create_time datetime(3) NOT NULL,
  update_time datetime(3) NULL COMMENT 'last transition',
  PRIMARY KEY (id),
  KEY due (status, tag, expected_time),
  UNIQUE KEY live_key (task_key, tag, live)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC STATS_PERSISTENT=1 STATS_AUTO_RECALC=1 COMMENT='dq: one row a task';

CREATE TABLE IF NOT EXISTS dq_attempt (
  task_id bigint unsigned NOT NULL,
  version bigint unsigned NOT NULL COMMENT 'of the task while this attempt ran: a claim has its own',
  attempt int unsigned NOT NULL,
  host varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  pid int unsigned NULL,
  start_time datetime(3) NULL COMMENT 'NULL: claimed, never started',
  finish_time datetime(3) NOT NULL,
  outcome varchar(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'exit, signal, timeout, lease-expired, ...',
  exit_code smallint unsigned NULL,
  `signal` tinyint unsigned NULL,
  error_stack text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  output mediumblob NULL,
  PRIMARY KEY (task_id, version)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='dq: one row per attempt that did not succeed (all of them with history = all)';

CREATE TABLE IF NOT EXISTS dq_tag (
  tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  paused_until datetime(3) NULL COMMENT 'NULL: not paused; 9999-12-31 23:59:59.999: until resumed',
  paused_by varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  pause_reason varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  update_time datetime(3) NULL,
  PRIMARY KEY (tag)
) ENGINE=InnoDB COMMENT='dq: switches of operators per tag; its row is the lock of a limit over all hosts';

CREATE TABLE IF NOT EXISTS dq_poller (
  token binary(16) NOT NULL,
  host varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  pid int unsigned NOT NULL,
  mode varchar(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'once, for, resident',
  slots int unsigned NOT NULL,
  running int unsigned NOT NULL,
  start_time datetime(3) NOT NULL,
  last_seen datetime(3) NOT NULL,
  stale_after int unsigned NOT NULL COMMENT 'ms; silent for longer: dead',
  PRIMARY KEY (token)
) ENGINE=InnoDB COMMENT='dq: live processes of dqd';
