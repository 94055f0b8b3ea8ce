-- dq schema, migration 1: tasks, their attempts and tags, dqds and what they serve, counts, the record of acts, and schedules.
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
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='dq: facts about the schema: schema_version, the number of the last migration, and schema_compat, the oldest number that still works';

-- An application may insert tasks itself, inside its own transaction:
--   INSERT INTO dq_task (tag, message_body, expected_time, create_time)
--   VALUES ('order.cancel-unpaid', ?, UTC_TIMESTAMP(3) + INTERVAL 30 MINUTE, UTC_TIMESTAMP(3));
-- with a key: also task_key. `live` is then 1 by itself.
-- The characters of a blob are bytes. Unlike LENGTH, every server shows CHAR_LENGTH by this name, as dq doctor expects.
CREATE TABLE IF NOT EXISTS dq_task (
  id bigint unsigned NOT NULL AUTO_INCREMENT,
  tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'picks the handler',
  task_key varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'unique per tag among pending and running tasks',
  live tinyint unsigned NULL DEFAULT (IF(task_key IS NULL, NULL, 1)) COMMENT '1 while a task with a key is pending or running, else NULL: makes the key unique among live tasks only',
  message_body longblob NOT NULL COMMENT 'bytes, handed to the handler on stdin',
  body_size int unsigned NULL DEFAULT (CHAR_LENGTH(message_body)) COMMENT 'bytes of message_body; NULL: not known',
  status tinyint unsigned NOT NULL DEFAULT 0 COMMENT '0 pending, 1 done, 2 failed, 3 running, 4 cancelled; 5 pending with high priority, 6 with low',
  version bigint unsigned NOT NULL DEFAULT 0 COMMENT '+1 on every transition',
  run int unsigned NOT NULL DEFAULT 0 COMMENT 'how often it was begun again: with another body, or after it was done',
  attempt int unsigned NOT NULL DEFAULT 0 COMMENT 'attempts started',
  max_attempts int unsigned NULL COMMENT 'NULL: one more than the retry list of the handler has waits; written at the first claim',
  add_token binary(16) NULL COMMENT 'of the dq add that stored it: shows whether an insert whose answer was lost took place',
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
  expires_time datetime(3) NULL COMMENT 'it is not started from then on, but cancelled; NULL: never, or the handler decides',
  again_time datetime(3) NULL COMMENT 'it was added again while it runs: when it is due once this run has ended',
  again_body longblob NULL COMMENT 'its body then',
  priority tinyint unsigned NULL COMMENT 'its status whenever it is pending: 5 high, 6 low; NULL: 0, normal',
  missed_slots int unsigned NULL COMMENT 'a schedule added it, and task_key is NAME@SLOT: how many missed slots it stands for, too',
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
  PRIMARY KEY (task_id, version),
  KEY finished (finish_time)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='dq: one row per attempt that did not succeed (all of them with history = all)';

-- A tag is under the limit of its own name, or under the one that its handler names. It is paused by the row of its own name, by that of
-- its limit, and by each pattern that it matches.
CREATE TABLE IF NOT EXISTS dq_limit (
  name varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'a tag; a limit that handlers name; a glob of tags, which can only be paused; or dqd HOST, which dq quiet pauses',
  pattern varchar(520) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'of a glob: for LIKE, with ESCAPE ''!''',
  version bigint unsigned NOT NULL DEFAULT 0 COMMENT '+1 on every change but those of next_at',
  running int unsigned NULL COMMENT 'tasks that may run at a time on all hosts; NULL: global_max_running of the handler',
  rate int unsigned NULL COMMENT 'tasks that may start in rate_period; NULL: any number',
  rate_period bigint unsigned NULL COMMENT 'ms',
  burst int unsigned NULL COMMENT 'of these: at once',
  next_at datetime(6) NULL COMMENT 'when the next one may start if burst is 1',
  rate_full tinyint unsigned NOT NULL DEFAULT 0 COMMENT '1: the last claim wanted more than the rate lets start',
  hours varchar(2000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'the windows in which tasks may start, one a line; NULL: always',
  reason varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'of these limits',
  actor varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'who set them',
  paused_until datetime(3) NULL COMMENT 'NULL: not paused; 9999-12-31 23:59:59.999: until resumed',
  paused_by varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  pause_reason varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  held_until datetime(3) NULL COMMENT 'by the answer of a handler, or the breaker: no task starts before this',
  hold_reason varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  hold_time datetime(3) NULL COMMENT 'when that was decided',
  breaker tinyint unsigned NOT NULL DEFAULT 0 COMMENT 'how often in a row it has opened; 0: it is closed',
  update_time datetime(3) NULL,
  PRIMARY KEY (name),
  KEY pattern (pattern)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='dq: how many tasks may start, how fast and when; pauses and holds; its row is the lock of a limit over all hosts';

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
  lease int unsigned NOT NULL COMMENT 'ms; of the tasks that it claims',
  version varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'of dqd',
  knows tinyint unsigned NOT NULL DEFAULT 0 COMMENT 'of rows of dq_task, from 1: again_time; from 2: dq_limit; from 3: priority',
  handlers bigint unsigned NOT NULL COMMENT 'what it serves, see dq_handler; 0: nothing',
  handlers_file mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'path of the handlers file',
  tags mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'globs of --tag, one a line; NULL: all tags',
  next_pass datetime(3) NULL COMMENT 'a pass that has ended: the next one is expected before',
  tzdata varchar(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'version of the time zones of its host; empty: not known',
  clock_ahead bigint NULL COMMENT 'ms by which the clock of its host is ahead of that of the server; NULL: not known yet',
  PRIMARY KEY (token)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='dq: live processes of dqd';

-- Each dqd counts what it does, by minute and tag.
CREATE TABLE IF NOT EXISTS dq_minute (
  minute datetime(3) NOT NULL COMMENT 'when it began',
  tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'empty: tags beyond the number that a dqd counts apart',
  poller binary(16) NOT NULL COMMENT 'the dqd that counted, as in dq_poller: it alone writes the row',
  started int unsigned NOT NULL COMMENT 'attempts that began',
  done int unsigned NOT NULL COMMENT 'tasks that became done',
  failed int unsigned NOT NULL COMMENT 'tasks that failed for good',
  retried int unsigned NOT NULL COMMENT 'attempts that failed, whose task runs again',
  excused int unsigned NOT NULL DEFAULT 0 COMMENT 'of failed and retried: by a permanent error, or because their dqd died; no breaker counts them',
  failures int unsigned NOT NULL DEFAULT 0 COMMENT 'the others of failed and retried, those that ended with one process as one: what a breaker counts',
  expired int unsigned NOT NULL COMMENT 'tasks that were cancelled because they expired',
  ended int unsigned NOT NULL COMMENT 'attempts that began and ended',
  run_sum bigint unsigned NOT NULL COMMENT 'ms from start to end of these, together',
  run_max bigint unsigned NOT NULL COMMENT 'ms of the longest one',
  late_sum bigint unsigned NOT NULL COMMENT 'ms by which the attempts began too late, together',
  late_max bigint unsigned NOT NULL COMMENT 'ms by which an attempt began too late, at most',
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
  run_5ms int unsigned NOT NULL COMMENT 'attempts that ran for at most 5 ms; the next columns: longer than that, up to ...',
  run_10ms int unsigned NOT NULL,
  run_25ms int unsigned NOT NULL,
  run_50ms int unsigned NOT NULL,
  run_100ms int unsigned NOT NULL,
  run_250ms int unsigned NOT NULL,
  run_1s int unsigned NOT NULL,
  run_5s int unsigned NOT NULL,
  run_30s int unsigned NOT NULL,
  run_2m int unsigned NOT NULL,
  run_10m int unsigned NOT NULL,
  run_1h int unsigned NOT NULL COMMENT 'those that ran even longer are the rest of ended',
  PRIMARY KEY (minute, tag, poller)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='dq: what each dqd did in each minute, written with its heartbeat';

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
  limit_name varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'of dq_limit: the limit that its tags are under; NULL: each under that of its own name',
  max_attempts int unsigned NOT NULL,
  timeout bigint unsigned NOT NULL COMMENT 'ms',
  retry varchar(1024) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'the waits of the retry list in ms, separated by commas; NULL: not known',
  PRIMARY KEY (handlers, is_glob, pattern)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='dq: the handlers of dqds; those with the same file share their rows';

CREATE TABLE IF NOT EXISTS dq_rest (
  token binary(16) NOT NULL COMMENT 'of a dqd in dq_poller',
  tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  rest_until datetime(3) NOT NULL,
  reason tinyint unsigned NOT NULL COMMENT '0: its handler could not be started; 1: the server refuses to change its tasks; 2: changing one takes long; 3: what the processes that stay are doing',
  error text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  PRIMARY KEY (token, tag)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='dq: tags that a dqd leaves alone, or can claim few tasks of';

-- What operators did, and when a dqd began and ended.
CREATE TABLE IF NOT EXISTS dq_event (
  token binary(16) NOT NULL COMMENT 'of the act; random, or made of that of a dqd',
  step int unsigned NOT NULL DEFAULT 0 COMMENT 'a long act has a row for each of its transactions',
  by_procedure tinyint unsigned NOT NULL DEFAULT 0 COMMENT '1: an application called a procedure. There may be many, and they are kept as long as cancelled tasks',
  event_time datetime(3) NOT NULL COMMENT 'of the change',
  actor varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'login@host, dqd@host, or the account that called a procedure',
  verb varchar(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'cancel, retry, ..., dqd-start, dqd-end, dqd-lost',
  arguments varchar(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'of step 0: what was asked for, as on the command line; a digest of a text of bodies',
  tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'NULL: none, or several',
  task_id bigint unsigned NULL COMMENT 'NULL: none, or several',
  ids mediumtext CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'of several tasks: those changed in this step, separated by commas',
  tasks bigint unsigned NOT NULL DEFAULT 0 COMMENT 'changed in this step',
  PRIMARY KEY (token, step),
  KEY event_time (by_procedure, event_time),
  KEY task (task_id, event_time)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='dq: acts of operators, starts and ends of dqd; rows are added and, by retention, deleted, but never changed';

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

-- What is to be added when. Any dqd adds the tasks.
CREATE TABLE IF NOT EXISTS dq_schedule (
  name varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  owner varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'of dq schedule apply, which deletes only what the same owner applied',
  tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'of its tasks',
  message_body blob NOT NULL COMMENT 'of its tasks',
  kind tinyint unsigned NOT NULL COMMENT '0 cron, 1 every, 2 gap',
  expression varchar(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'of cron, or a duration',
  zone varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'UTC',
  from_time datetime(3) NULL COMMENT 'it has no slots before',
  to_time datetime(3) NULL COMMENT 'it has no slots after',
  spread bigint unsigned NOT NULL DEFAULT 0 COMMENT 'ms; its tasks are due at a place of its own within so long after their slots',
  catch_up tinyint unsigned NOT NULL DEFAULT 1 COMMENT 'missed slots: 0 skip, 1 latest, 2 all',
  catch_up_within bigint unsigned NOT NULL DEFAULT 0 COMMENT 'ms; older missed slots are skipped; 0: latest has a period, a day at most',
  overlap tinyint unsigned NOT NULL DEFAULT 0 COMMENT 'if the last run has not ended: 0 skip, 1 one may wait, 2 allow, 3 replace',
  expires bigint unsigned NOT NULL DEFAULT 0 COMMENT 'ms after they are due, its tasks are not started any more; 0: with the next slot',
  alarm_after bigint unsigned NOT NULL DEFAULT 0 COMMENT 'ms after a slot; 0: a period, 5 minutes at least',
  paused_time datetime(3) NULL COMMENT 'since when its slots are skipped',
  paused_by varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  pause_reason varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  version bigint unsigned NOT NULL DEFAULT 0 COMMENT '+1 with each change and each decision',
  next_slot datetime(3) NULL COMMENT 'the first one that is not decided; NULL: there is none',
  last_slot datetime(3) NULL COMMENT 'the last one that ran',
  missed int unsigned NOT NULL DEFAULT 0 COMMENT 'slots since then that did not run, but for those of pauses',
  zone_version varchar(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'of the time zones by which next_slot was computed',
  zone_digest bigint unsigned NOT NULL DEFAULT 0 COMMENT 'of the file of that zone',
  create_time datetime(3) NOT NULL,
  update_time datetime(3) NOT NULL COMMENT 'last change by a person',
  actor varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'who made it',
  PRIMARY KEY (name),
  KEY next_slot (next_slot)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='dq: one row a schedule';

-- What became of each slot.
CREATE TABLE IF NOT EXISTS dq_slot (
  name varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'of the schedule, which may have been deleted',
  slot datetime(3) NOT NULL,
  slots int unsigned NOT NULL DEFAULT 1 COMMENT 'so many in a row, from this one on, had the same decision at once',
  decision tinyint unsigned NOT NULL COMMENT '0 ran, 1 late, 2 skipped-overlap, 3 skipped-missed, 4 skipped-paused, 5 refused, 6 by-hand',
  missed int unsigned NOT NULL DEFAULT 0 COMMENT 'of one that ran: the slots before it that it stands for, too',
  decide_time datetime(3) NOT NULL,
  is_open tinyint unsigned NULL COMMENT '1 until it is known here how its run ended, else NULL',
  task_id bigint unsigned NULL COMMENT 'NULL: none, or not known yet: its key is NAME@SLOT',
  start_time datetime(3) NULL COMMENT 'of the last attempt',
  finish_time datetime(3) NULL,
  result tinyint unsigned NULL COMMENT 'status of the task in the end; NULL: not known',
  exit_code smallint unsigned NULL,
  error varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  PRIMARY KEY (name, slot),
  KEY is_open (is_open, decide_time)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC COMMENT='dq: slots of schedules, kept for 90 days';
