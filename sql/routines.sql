-- The procedures of producers in SQL: doc/producers describes them. `dq init` creates them, or: mysql dq < routines.sql
-- Statements end with a line //. The text works on MariaDB and MySQL alike, in sessions of any sql_mode, character set and
-- isolation level: a routine keeps the sql_mode with which it was created, and nothing here depends on the rest, but for
-- those of which doc/producers warns. Patterns have \A and \x{20}, as ^ and a blank depend on default_regex_flags of MariaDB.
-- A caller that is not strict has long or malformed arguments cut before they get here: hence the parameters are wider than
-- what is allowed.
DELIMITER //

SET @dq_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'
//

-- A session that is not strict and has another character set than utf8mb4 turns a character of four bytes into ????: two keys would be
-- one, and the second task would not be stored. What character set a caller has is not known in here.
-- Not for callers. p_expected_time NULL: p_delay_ms from now. p_conflict: keep, error, replace, again, debounce.
-- The "?" is not in the regular expression because MariaDB 10.5 takes characters beyond U+FFFF for one there. Hence those of
-- them that are invisible are found by their bytes.
-- One statement finds out whether a live task has the key, locks it, and replaces it. In LAST_INSERT_ID, which every session has for itself, it
-- leaves the id of that task, with a bit for "there was one" and a bit for "it is not pending". "again" repeats it to mark a task that runs. What
-- dqds know is asked between, not before: MariaDB would end a transaction whose snapshot is older than a row that it locks later.
-- It is asked by SELECT ... INTO: under REPEATABLE READ, IF and SET with a subquery lock each row that they read until the transaction ends,
-- and dqds write to dq_poller all the time. LIMIT 1 because of sql_select_limit.
CREATE PROCEDURE dq_add_task(
  p_tag varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_key varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_body longblob,
  p_delay_ms bigint,
  p_expected_time datetime(3),
  p_max_attempts int unsigned,
  p_attempt int unsigned,
  p_priority tinyint unsigned,
  p_expires_ms bigint,
  p_expires_time datetime(3),
  p_conflict varchar(16) CHARACTER SET ascii COLLATE ascii_bin,
  OUT p_id bigint unsigned)
SQL SECURITY DEFINER
MODIFIES SQL DATA
COMMENT 'dq: used by dq_add, dq_add_at and dq_add_options'
BEGIN
  DECLARE v_error varchar(128) CHARACTER SET utf8mb4;
  DECLARE v_had bigint unsigned DEFAULT 4611686018427387904;
  DECLARE v_running bigint unsigned DEFAULT 2305843009213693952;
  DECLARE v_callers_id, v_id bigint unsigned;
  DECLARE v_replace bool DEFAULT p_conflict IN ('replace', 'again', 'debounce');
  DECLARE v_again bool DEFAULT FALSE; -- it runs, and no live dqd is too old
  DECLARE v_time, v_now datetime(3);
  DECLARE v_old int;

  SET p_id = NULL;
  IF p_tag IS NULL OR CHAR_LENGTH(p_tag) NOT BETWEEN 1 AND 128 OR LOCATE('?', p_tag) OR p_tag REGEXP
      '\\A-|[\\x{00}-\\x{20}\\x{7f}-\\x{a0}"''`\\\\,*\\x{ad}\\x{34f}\\x{61c}\\x{115f}\\x{1160}\\x{1680}\\x{17b4}\\x{17b5}\\x{180b}-\\x{180f}\\x{2000}-\\x{200f}\\x{2028}-\\x{202f}\\x{205f}-\\x{206f}\\x{3000}\\x{3164}\\x{fe00}-\\x{fe0f}\\x{feff}\\x{ffa0}\\x{fff0}-\\x{fffb}]'
      OR OCTET_LENGTH(p_tag) > CHAR_LENGTH(p_tag) AND HEX(p_tag) REGEXP '\\A(..)*(F3A0|F09BB2A[0-3]|F09D85(B[3-9]|BA))' THEN
    SET v_error = 'dq: tag: 1 to 128 characters, no white space, invisible characters, quotes, backslashes, commas, * or ?, no - at the front';
  ELSEIF CHAR_LENGTH(p_key) NOT BETWEEN 1 AND 255 OR p_key REGEXP
      '[\\x{00}-\\x{1f}\\x{7f}-\\x{9f}]|\\A[\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]|[\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]\\z' THEN
    SET v_error = 'dq: task_key: NULL, or 1 to 255 characters, no control characters, no white space at either end';
  ELSEIF LOCATE('????', p_key) THEN
    SET v_error = 'dq: task_key: ???? is what a session makes of a character that it does not have: SET NAMES utf8mb4';
  ELSEIF p_body IS NULL THEN
    SET v_error = 'dq: body: must not be NULL; an empty one is an empty string';
  ELSEIF OCTET_LENGTH(p_body) > @@max_allowed_packet - 1024 THEN
    SET v_error = CONCAT('dq: body: ', OCTET_LENGTH(p_body), ' bytes; at most max_allowed_packet - 1024 = ', @@max_allowed_packet - 1024);
  ELSEIF p_expected_time IS NULL AND (p_delay_ms IS NULL OR p_delay_ms NOT BETWEEN 0 AND 316224000000) THEN
    SET v_error = 'dq: delay_ms: milliseconds from 0 to 316224000000 (3660 days)';
  END IF;
  IF v_error IS NOT NULL THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = v_error;
  END IF;

  SET v_now = UTC_TIMESTAMP(3); -- each statement has its own
  SET v_time = IFNULL(p_expected_time, v_now + INTERVAL p_delay_ms * 1000 MICROSECOND);
  IF p_expires_ms IS NOT NULL THEN
    SET p_expires_time = GREATEST(v_now, v_time) + INTERVAL p_expires_ms * 1000 MICROSECOND;
  ELSEIF p_expires_time <= v_time THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'dq: options: expires_utc: it would expire before it is due';
  END IF;
  IF p_priority IS NOT NULL THEN
    SELECT COUNT(*) INTO v_old FROM dq_poller
    WHERE knows < 3 AND (next_pass > v_now OR last_seen > v_now - INTERVAL (stale_after * 1000) MICROSECOND) LIMIT 1;
    IF v_old THEN
      SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'dq: options: priority: a live dqd is too old for it: dq pollers lists them';
    END IF;
  END IF;
  SET v_callers_id = LAST_INSERT_ID();
  add_task: LOOP
    INSERT INTO dq_task (tag, task_key, live, message_body, body_size, delay_time, max_attempts, attempt, expected_time, create_time, expires_time,
                         status, priority)
    VALUES (p_tag, p_key, IF(p_key IS NULL, NULL, 1), p_body, OCTET_LENGTH(p_body), p_delay_ms, p_max_attempts, p_attempt,
            v_time, v_now, p_expires_time, IFNULL(p_priority, 0), p_priority)
    ON DUPLICATE KEY UPDATE
      -- if it was a unique index that is not dq's, -1 is an error: that task is another one
      live = IF(task_key = p_key AND tag = p_tag, IF(LAST_INSERT_ID(id + v_had + IF(status IN (0, 5, 6), 0, v_running)), 1, 1), -1),
      version = version + IF(v_replace AND status IN (0, 5, 6), 1, 0),
      run = run + (run < 4294967295 AND v_replace AND status IN (0, 5, 6) AND (claim_token IS NOT NULL OR execution_time IS NOT NULL)),
      host = IF(v_replace AND status IN (0, 5, 6) AND execution_time IS NULL, NULL, host),
      attempt = IF(v_replace AND status IN (0, 5, 6), p_attempt, attempt),
      message_body = IF(v_replace AND status IN (0, 5, 6), p_body, message_body),
      body_size = IF(v_replace AND status IN (0, 5, 6), OCTET_LENGTH(p_body), body_size),
      delay_time = IF(v_replace AND status IN (0, 5, 6), 0, delay_time),
      max_attempts = IF(v_replace AND status IN (0, 5, 6), p_max_attempts, IF(v_again, IFNULL(p_max_attempts, max_attempts), max_attempts)),
      expected_time = IF(v_replace AND status IN (0, 5, 6),
                         CASE p_conflict WHEN 'again' THEN LEAST(expected_time, v_time)
                                         WHEN 'debounce' THEN GREATEST(expected_time, v_time)
                         ELSE v_time END, expected_time),
      update_time = IF(v_replace AND status IN (0, 5, 6), v_now, update_time),
      again_body = IF(v_again AND status = 3, p_body, again_body),
      again_time = IF(v_again AND status = 3,
                      IF(p_conflict = 'again', LEAST(IFNULL(again_time, v_time), v_time),
                         GREATEST(IFNULL(again_time, v_time), v_time)), again_time),
      expires_time = IF(v_replace AND status IN (0, 5, 6) OR v_again AND status = 3,
                        IF(p_expires_ms IS NULL, p_expires_time + INTERVAL IF(p_conflict = 'debounce',
                             GREATEST(TIMESTAMPDIFF(MICROSECOND, GREATEST(v_now, v_time), IF(status = 3, again_time, expected_time)), 0), 0) MICROSECOND,
                           GREATEST(v_now, IF(status = 3, again_time, expected_time))
                           + INTERVAL p_expires_ms * 1000 MICROSECOND), expires_time),
      priority = IF(v_replace AND status IN (0, 5, 6), p_priority, IF(v_again, IFNULL(p_priority, priority), priority)),
      status = IF(v_replace AND status IN (0, 5, 6), IFNULL(priority, 0), status);
    SET v_id = LAST_INSERT_ID();
    IF v_again OR p_conflict NOT IN ('again', 'debounce') OR NOT v_id & v_running THEN
      LEAVE add_task;
    END IF;
    SELECT COUNT(*) INTO v_old FROM dq_poller
    WHERE knows < 1 AND (next_pass > v_now OR last_seen > v_now - INTERVAL (stale_after * 1000) MICROSECOND) LIMIT 1;
    IF v_old THEN
      LEAVE add_task;
    END IF;
    SET v_again = TRUE;
  END LOOP;
  DO LAST_INSERT_ID(v_callers_id);

  SET p_id = v_id & (v_running - 1);
  IF v_id >= v_had AND (p_conflict = 'error' OR p_conflict = 'replace' AND v_id & v_running) THEN
    SET v_error = CONCAT('dq: task_key: task ', p_id, ' has it and is ', IF(v_id & v_running, 'running', 'pending'));
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = v_error, MYSQL_ERRNO = 1062;
  ELSEIF v_id >= v_had AND v_id & v_running AND v_replace AND NOT v_again THEN
    SET v_error = CONCAT('dq: task_key: task ', p_id, ' is running, and a live dqd is too old for "again": dq pollers lists them');
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = v_error;
  END IF;
  IF v_id >= v_had AND v_replace THEN
    INSERT INTO dq_event (token, by_procedure, event_time, actor, verb, arguments, tag, task_id, tasks)
    VALUES (UNHEX(LEFT(SHA2(UUID(), 256), 32)), 1, v_now, LEFT(USER(), 255), IF(p_conflict = 'replace', 'replace', 'again'),
            'CALL dq_add_options', p_tag, p_id, 1);
  END IF;
END
//

CREATE PROCEDURE dq_add(
  p_tag varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_key varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_body longblob,
  p_delay_ms bigint,
  OUT p_id bigint unsigned)
SQL SECURITY DEFINER
MODIFIES SQL DATA
COMMENT 'dq: adds a task that is due in delay_ms; a live task with that key is kept'
BEGIN
  CALL dq_add_task(p_tag, p_key, p_body, p_delay_ms, NULL, NULL, 0, NULL, NULL, NULL, 'keep', p_id);
END
//

CREATE PROCEDURE dq_add_again(
  p_tag varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_key varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_body longblob,
  p_delay_ms bigint,
  OUT p_id bigint unsigned)
SQL SECURITY DEFINER
MODIFIES SQL DATA
COMMENT 'dq: adds a task that is due in delay_ms; a pending task with that key is replaced, a running one runs again'
BEGIN
  CALL dq_add_task(p_tag, p_key, p_body, p_delay_ms, NULL, NULL, 0, NULL, NULL, NULL, 'again', p_id);
END
//

-- Not for callers. A time that is text: a value that is converted by the caller's session would be in its zone.
CREATE PROCEDURE dq_read_utc(
  p_utc varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT p_time datetime(3))
SQL SECURITY DEFINER
NO SQL
COMMENT 'dq: used by dq_add_at and dq_add_options'
BEGIN
  SET p_time = NULL;
  IF p_utc REGEXP '\\A[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[\\x{20}T]([01][0-9]|2[0-3])(:[0-5][0-9]){2}(\\.[0-9]{1,6})?Z?\\z' THEN
    BEGIN
      DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET p_time = NULL;
      -- rounded up, as dq add does: never before that time
      SET p_time = LEFT(CAST(CAST(REPLACE(TRIM(TRAILING 'Z' FROM p_utc), 'T', ' ') AS datetime(6)) + INTERVAL 999 MICROSECOND AS char), 23);
    END;
  END IF;
  IF p_time IS NULL THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'dq: utc: a time in UTC such as 2031-01-02 03:04:05.678 or 2031-01-02T03:04:05Z, years 1000 to 9999';
  END IF;
END
//

CREATE PROCEDURE dq_add_at(
  p_tag varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_key varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_body longblob,
  p_utc varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT p_id bigint unsigned)
SQL SECURITY DEFINER
MODIFIES SQL DATA
COMMENT 'dq: adds a task that is due at a time in UTC; a live task with that key is kept'
BEGIN
  DECLARE v_time datetime(3);

  CALL dq_read_utc(p_utc, v_time);
  CALL dq_add_task(p_tag, p_key, p_body, 0, v_time, NULL, 0, NULL, NULL, NULL, 'keep', p_id);
END
//

CREATE PROCEDURE dq_add_options(
  p_tag varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_key varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_body longblob,
  p_options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT p_id bigint unsigned)
SQL SECURITY DEFINER
MODIFIES SQL DATA
COMMENT 'dq: adds a task with options: delay_ms or utc, max_attempts, attempted, priority, expires_ms or expires_utc, key_conflict, debounce'
BEGIN
  DECLARE v_error varchar(128) CHARACTER SET utf8mb4;
  DECLARE v_type, v_delay, v_max, v_attempted, v_priority, v_expires, v_expires_utc, v_utc, v_conflict, v_debounce varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_time, v_expires_time datetime(3);

  SET p_options = IFNULL(p_options, '{}');
  IF JSON_VALID(p_options) THEN
    SET v_type = JSON_TYPE(p_options);
  END IF;
  IF v_type IS NULL OR v_type <> 'OBJECT' THEN
    SET v_error = 'dq: options: a JSON object such as {"delay_ms": 60000, "key_conflict": "replace"}';
  ELSEIF JSON_LENGTH(JSON_REMOVE(p_options, '$.delay_ms', '$.utc', '$.max_attempts', '$.attempted', '$.priority', '$.expires_ms', '$.expires_utc', '$.key_conflict', '$.debounce')) > 0
      OR LOCATE('\\', JSON_KEYS(p_options)) THEN -- MariaDB removes a member whose name has an escape, but does not find it
    SET v_error = 'dq: options: the members are delay_ms, utc, max_attempts, attempted, priority, expires_ms, expires_utc, key_conflict, debounce';
  ELSE
    SET v_delay = LEFT(JSON_EXTRACT(p_options, '$.delay_ms'), 64);
    SET v_utc = LEFT(JSON_EXTRACT(p_options, '$.utc'), 64);
    SET v_max = LEFT(JSON_EXTRACT(p_options, '$.max_attempts'), 64);
    SET v_attempted = LEFT(JSON_EXTRACT(p_options, '$.attempted'), 64);
    SET v_priority = LEFT(JSON_EXTRACT(p_options, '$.priority'), 64);
    SET v_expires = LEFT(JSON_EXTRACT(p_options, '$.expires_ms'), 64);
    SET v_expires_utc = LEFT(JSON_EXTRACT(p_options, '$.expires_utc'), 64);
    SET v_conflict = LEFT(JSON_EXTRACT(p_options, '$.key_conflict'), 64);
    SET v_debounce = LEFT(JSON_EXTRACT(p_options, '$.debounce'), 64);
    SET v_delay = NULLIF(v_delay, 'null');
    SET v_utc = NULLIF(v_utc, 'null');
    SET v_max = NULLIF(v_max, 'null');
    SET v_attempted = NULLIF(v_attempted, 'null');
    SET v_priority = IFNULL(NULLIF(v_priority, 'null'), '"normal"');
    SET v_expires = NULLIF(v_expires, 'null');
    SET v_expires_utc = NULLIF(v_expires_utc, 'null');
    SET v_conflict = IFNULL(NULLIF(v_conflict, 'null'), '"keep"');
    SET v_debounce = IFNULL(NULLIF(v_debounce, 'null'), 'false');
    IF v_delay NOT REGEXP '\\A[0-9]{1,15}\\z' THEN
      SET v_error = 'dq: options: delay_ms: milliseconds from 0 to 316224000000 (3660 days)';
    ELSEIF v_utc IS NOT NULL AND v_delay <> '0' THEN
      SET v_error = 'dq: options: delay_ms and utc cannot be combined';
    ELSEIF v_max IS NOT NULL AND (v_max NOT REGEXP '\\A[0-9]{1,10}\\z' OR v_max NOT BETWEEN 1 AND 4294967295) THEN
      SET v_error = 'dq: options: max_attempts: a number from 1 to 4294967295';
    ELSEIF v_attempted IS NOT NULL AND (v_attempted NOT REGEXP '\\A[0-9]{1,10}\\z' OR v_attempted NOT BETWEEN 1 AND IFNULL(v_max, 65) - 1) THEN
      SET v_error = 'dq: options: attempted: a number from 1 to max_attempts - 1; without max_attempts, to 64';
    ELSEIF v_attempted IS NOT NULL AND v_delay IS NULL AND v_utc IS NULL THEN
      SET v_error = 'dq: options: attempted: give delay_ms or utc, too: the next wait of the retry list';
    ELSEIF v_expires IS NOT NULL AND (v_expires NOT REGEXP '\\A[0-9]{1,12}\\z' OR v_expires NOT BETWEEN 1 AND 316224000000) THEN
      SET v_error = 'dq: options: expires_ms: milliseconds from 1 to 316224000000 (3660 days)';
    ELSEIF v_expires IS NOT NULL AND v_expires_utc IS NOT NULL THEN
      SET v_error = 'dq: options: expires_ms and expires_utc cannot be combined';
    ELSEIF v_priority NOT IN ('"high"', '"normal"', '"low"') THEN
      SET v_error = 'dq: options: priority: high, normal or low';
    ELSEIF v_conflict NOT IN ('"keep"', '"error"', '"replace"', '"again"') THEN
      SET v_error = 'dq: options: key_conflict: keep, error, replace or again';
    ELSEIF v_debounce NOT IN ('true', 'false') OR v_debounce = 'true' AND v_conflict <> '"again"' THEN
      SET v_error = 'dq: options: debounce: true or false; true only with "key_conflict": "again"';
    END IF;
  END IF;
  IF v_error IS NOT NULL THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = v_error;
  END IF;
  IF v_utc IS NOT NULL THEN
    CALL dq_read_utc(TRIM(BOTH '"' FROM v_utc), v_time);
  END IF;
  IF v_expires_utc IS NOT NULL THEN
    CALL dq_read_utc(TRIM(BOTH '"' FROM v_expires_utc), v_expires_time);
  END IF;
  CALL dq_add_task(p_tag, p_key, p_body, IFNULL(v_delay, 0), v_time, v_max, IFNULL(v_attempted, 0), CASE v_priority WHEN '"high"' THEN 5 WHEN '"low"' THEN 6 END,
                   v_expires, v_expires_time,
                   IF(v_debounce = 'true', 'debounce', TRIM(BOTH '"' FROM v_conflict)), p_id);
END
//

-- One statement changes the task, and leaves its id in LAST_INSERT_ID, with a bit if it was running: its attempt then goes into the
-- history. finish_time comes before status, as assignments are made from left to right.
CREATE PROCEDURE dq_cancel_key(
  p_tag varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_key varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT p_n int)
SQL SECURITY DEFINER
MODIFIES SQL DATA
COMMENT 'dq: cancels the pending or running task of a tag with that key'
BEGIN
  DECLARE v_running bigint unsigned DEFAULT 2305843009213693952;
  DECLARE v_callers_id, v_id bigint unsigned;
  DECLARE v_error varchar(128) CHARACTER SET utf8mb4;

  SET p_n = 0;
  IF p_tag IS NULL OR p_key IS NULL THEN
    SET v_error = CONCAT('dq: ', IF(p_tag IS NULL, 'tag', 'task_key'), ': must not be NULL');
  ELSEIF LOCATE('????', p_key) THEN
    SET v_error = 'dq: task_key: ???? is what a session makes of a character that it does not have: SET NAMES utf8mb4';
  END IF;
  IF v_error IS NOT NULL THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = v_error;
  END IF;

  SET v_callers_id = LAST_INSERT_ID();
  DO LAST_INSERT_ID(0);
  UPDATE dq_task FORCE INDEX (live_key) SET
    finish_time = IF(LAST_INSERT_ID(id + IF(status = 3, v_running, 0)), UTC_TIMESTAMP(3), NULL),
    status = 4, version = version + 1, update_time = UTC_TIMESTAMP(3), live = NULL, lease_until = NULL, again_time = NULL,
    again_body = NULL
  WHERE task_key = p_key AND LENGTH(task_key) = LENGTH(p_key) AND tag = p_tag AND live = 1 AND status IN (0, 3, 5, 6);
  SET v_id = LAST_INSERT_ID();
  DO LAST_INSERT_ID(v_callers_id);

  SET p_n = v_id > 0;
  IF p_n THEN
    INSERT INTO dq_event (token, by_procedure, event_time, actor, verb, arguments, tag, task_id, tasks)
    VALUES (UNHEX(LEFT(SHA2(UUID(), 256), 32)), 1, UTC_TIMESTAMP(3), LEFT(USER(), 255), 'cancel', 'CALL dq_cancel_key', p_tag,
            v_id & (v_running - 1), 1);
  END IF;
  IF v_id & v_running THEN
    REPLACE INTO dq_attempt (task_id, version, attempt, host, pid, start_time, finish_time, outcome)
    SELECT id, version - 1, attempt, host, pid, execution_time, finish_time, 'cancelled'
    FROM dq_task WHERE id = v_id & (v_running - 1) AND status = 4;
  END IF;
END
//

-- Members that are left out stay as they are; NULL drops them. The hours are not among them: SQL cannot check a zone.
CREATE PROCEDURE dq_limit_set(
  p_name varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
SQL SECURITY DEFINER
MODIFIES SQL DATA
COMMENT 'dq: sets a limit: running, rate, burst, reason'
BEGIN
  DECLARE v_error varchar(128) CHARACTER SET utf8mb4;
  DECLARE v_running, v_rate, v_burst, v_period, v_unit varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_reason varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_has_running, v_has_rate bool;
  DECLARE v_count, v_period_ms bigint;
  DECLARE v_old int;

  SELECT COUNT(*) INTO v_old FROM dq_poller
  WHERE knows < 2 AND (next_pass > UTC_TIMESTAMP(3) OR last_seen > UTC_TIMESTAMP(3) - INTERVAL (stale_after * 1000) MICROSECOND) LIMIT 1;
  IF p_name IS NULL OR CHAR_LENGTH(p_name) NOT BETWEEN 1 AND 128 OR p_name REGEXP '\\A-|[[:space:][:cntrl:]*,"]' OR LOCATE('?', p_name) THEN
    SET v_error = 'dq: name: that of a tag, or one that handlers name in limit:';
  ELSEIF p_options IS NULL OR NOT JSON_VALID(p_options) OR JSON_TYPE(IF(JSON_VALID(p_options), p_options, '0')) <> 'OBJECT'
      OR JSON_LENGTH(IF(JSON_VALID(p_options), JSON_REMOVE(p_options, '$.running', '$.rate', '$.burst', '$.reason'), '{"x":0}')) > 0
      OR LOCATE('\\', JSON_KEYS(IF(JSON_VALID(p_options), p_options, '{}'))) THEN
    SET v_error = 'dq: options: a JSON object with running, rate, burst, reason, such as {"running": 4, "rate": "100/m"}';
  ELSE
    SET v_has_running = JSON_CONTAINS_PATH(p_options, 'one', '$.running'), v_has_rate = JSON_CONTAINS_PATH(p_options, 'one', '$.rate');
    SET v_running = LEFT(JSON_EXTRACT(p_options, '$.running'), 64), v_rate = LEFT(JSON_EXTRACT(p_options, '$.rate'), 64);
    SET v_burst = LEFT(JSON_EXTRACT(p_options, '$.burst'), 64);
    SET v_reason = LEFT(JSON_UNQUOTE(NULLIF(LEFT(JSON_EXTRACT(p_options, '$.reason'), 2048), 'null')), 512);
    SET v_running = NULLIF(v_running, 'null'), v_rate = NULLIF(v_rate, 'null'), v_burst = NULLIF(v_burst, 'null');
    IF v_rate REGEXP '\\A"[1-9][0-9]{0,6}/([1-9][0-9]{0,9})?(ms|s|m|h|d)"\\z' THEN
      SET v_rate = TRIM(BOTH '"' FROM v_rate);
      SET v_count = SUBSTRING_INDEX(v_rate, '/', 1), v_period = SUBSTRING_INDEX(v_rate, '/', -1);
      SET v_unit = IF(RIGHT(v_period, 2) = 'ms', 'ms', RIGHT(v_period, 1));
      SET v_period = IF(v_period = v_unit, '1', LEFT(v_period, CHAR_LENGTH(v_period) - CHAR_LENGTH(v_unit)));
      SET v_period_ms = v_period * CASE v_unit WHEN 'ms' THEN 1 WHEN 's' THEN 1000 WHEN 'm' THEN 60000 WHEN 'h' THEN 3600000 ELSE 86400000 END;
    END IF;
    IF v_running IS NOT NULL AND (v_running NOT REGEXP '\\A[0-9]{1,10}\\z' OR v_running NOT BETWEEN 1 AND 4294967295) THEN
      SET v_error = 'dq: options: running: a number from 1 to 4294967295, or null for what the handlers say';
    ELSEIF v_rate IS NOT NULL AND (v_count IS NULL OR v_count > 1000000 OR v_period_ms > 2678400000) THEN
      SET v_error = 'dq: options: rate: a text like "100/m", "5/s" or "1/10s": at most 1000000 in at most 31d; or null';
    ELSEIF v_burst IS NOT NULL AND (v_rate IS NULL OR v_burst NOT REGEXP '\\A[0-9]{1,7}\\z' OR v_burst NOT BETWEEN 1 AND 1000000
                                    OR v_burst * v_period_ms / v_count > 31622400000) THEN
      SET v_error = 'dq: options: burst: a number from 1 to 1000000, with rate; at that rate, it takes at most a year';
    ELSEIF CHAR_LENGTH(v_reason) > 255 THEN
      SET v_error = 'dq: options: reason: at most 255 characters';
    ELSEIF v_old THEN
      SET v_error = 'dq: a live dqd is too old for limits: dq pollers lists them';
    END IF;
  END IF;
  IF v_error IS NOT NULL THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = v_error;
  END IF;

  INSERT INTO dq_limit (name, version, running, rate, rate_period, burst, reason, actor, update_time)
  VALUES (p_name, 1, v_running, v_count, v_period_ms, IF(v_count, IFNULL(v_burst, 1), NULL), v_reason, LEFT(USER(), 255), UTC_TIMESTAMP(3))
  ON DUPLICATE KEY UPDATE
    version = version + 1,
    running = IF(v_has_running, v_running, running),
    rate = IF(v_has_rate, v_count, rate),
    rate_period = IF(v_has_rate, v_period_ms, rate_period),
    burst = IF(v_has_rate, IF(v_count, IFNULL(v_burst, 1), NULL), burst),
    next_at = IF(v_has_rate, LEAST(next_at, UTC_TIMESTAMP(6) -- rate_most_us(); NULL without a rate
                 + INTERVAL (2000000 + IFNULL(v_burst, 1) * ((v_period_ms * 1000 + v_count - 1) DIV v_count)) MICROSECOND), next_at),
    reason = IF(JSON_CONTAINS_PATH(p_options, 'one', '$.reason'), v_reason, reason), actor = LEFT(USER(), 255), update_time = UTC_TIMESTAMP(3);
  INSERT INTO dq_event (token, by_procedure, event_time, actor, verb, arguments, tag, tasks)
  VALUES (UNHEX(LEFT(SHA2(UUID(), 256), 32)), 1, UTC_TIMESTAMP(3), LEFT(USER(), 255), 'limit',
          LEFT(CONCAT('CALL dq_limit_set ', p_options), 1000), p_name, 0);
END
//

-- The next slot is due at once, with '?' for the time zones: dqd then computes it. The version stops a dqd that decides a slot meanwhile.
CREATE PROCEDURE dq_schedule_set(
  p_name varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_tag varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  p_body longblob,
  p_options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT p_n int)
SQL SECURITY DEFINER
MODIFIES SQL DATA
COMMENT 'dq: adds a schedule, or makes it what the options say: cron and zone, every, or gap'
BEGIN
  DECLARE v_error varchar(160) CHARACTER SET utf8mb4;
  DECLARE v_word varchar(1001) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_zone varchar(65) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_kind, v_catch_up, v_overlap int;
  DECLARE v_spread, v_within, v_expires, v_alarm bigint;
  DECLARE v_period bigint;
  DECLARE v_ms varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE v_odd varchar(400) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT -- as in dq_add_task
    '\\A-|[\\x{00}-\\x{20}\\x{7f}-\\x{a0}"''`\\\\,*\\x{ad}\\x{34f}\\x{61c}\\x{115f}\\x{1160}\\x{1680}\\x{17b4}\\x{17b5}\\x{180b}-\\x{180f}\\x{2000}-\\x{200f}\\x{2028}-\\x{202f}\\x{205f}-\\x{206f}\\x{3000}\\x{3164}\\x{fe00}-\\x{fe0f}\\x{feff}\\x{ffa0}\\x{fff0}-\\x{fffb}]';

  IF IFNULL(CHAR_LENGTH(p_name), 0) NOT BETWEEN 1 AND 128 OR LOCATE('?', p_name) OR LOCATE('@', p_name) OR p_name REGEXP v_odd OR HEX(p_name) REGEXP '\\A(..)*(F3A0|F09BB2A[0-3]|F09D85(B[3-9]|BA))' THEN
    SET v_error = 'dq: name: 1 to 128 characters, no white space, invisible characters, quotes, backslashes, commas, @, * or ?, no - at the front';
  ELSEIF IFNULL(CHAR_LENGTH(p_tag), 0) NOT BETWEEN 1 AND 128 OR LOCATE('?', p_tag) OR p_tag REGEXP v_odd OR HEX(p_tag) REGEXP '\\A(..)*(F3A0|F09BB2A[0-3]|F09D85(B[3-9]|BA))' THEN
    SET v_error = 'dq: tag: 1 to 128 characters, no white space, invisible characters, quotes, backslashes, commas, * or ?, no - at the front';
  ELSEIF IFNULL(OCTET_LENGTH(p_body), 65536) > 65535 THEN
    SET v_error = 'dq: body: not NULL, and at most 65535 bytes';
  ELSEIF NOT IFNULL(JSON_VALID(p_options), 0) THEN
    SET v_error = 'dq: options: a JSON object such as {"cron": "30 2 * * 1-5", "zone": "Europe/Berlin"}';
  ELSEIF JSON_TYPE(p_options) <> 'OBJECT' OR JSON_LENGTH(JSON_REMOVE(p_options, '$.cron', '$.every', '$.gap', '$.zone', '$.catch_up', '$.overlap', '$.spread_ms', '$.within_ms', '$.expires_ms', '$.alarm_after_ms')) > 0
      OR LOCATE('\\', JSON_KEYS(p_options)) THEN
    SET v_error = 'dq: options: the members are cron, zone, every, gap, catch_up, overlap, spread_ms, within_ms, expires_ms, alarm_after_ms';
  ELSE
    SET v_kind = CASE WHEN JSON_CONTAINS_PATH(p_options, 'one', '$.cron') THEN 0 WHEN JSON_CONTAINS_PATH(p_options, 'one', '$.every') THEN 1 ELSE 2 END;
    SET v_word = LEFT(JSON_UNQUOTE(JSON_EXTRACT(p_options, ELT(v_kind + 1, '$.cron', '$.every', '$.gap'))), 1001);
    SET v_zone = IFNULL(LEFT(JSON_UNQUOTE(NULLIF(LEFT(JSON_EXTRACT(p_options, '$.zone'), 80), 'null')), 65), 'UTC');
    SET v_catch_up = FIELD(IFNULL(JSON_UNQUOTE(JSON_EXTRACT(p_options, '$.catch_up')), 'latest'), 'skip', 'latest', 'all') - 1;
    SET v_overlap = FIELD(IFNULL(JSON_UNQUOTE(JSON_EXTRACT(p_options, '$.overlap')), 'skip'), 'skip', 'one', 'allow', 'replace') - 1;
    SET v_ms = CONCAT_WS(' ', LEFT(IFNULL(JSON_EXTRACT(p_options, '$.spread_ms'), 0), 13), LEFT(IFNULL(JSON_EXTRACT(p_options, '$.within_ms'), 0), 13),
                         LEFT(IFNULL(JSON_EXTRACT(p_options, '$.expires_ms'), 0), 13), LEFT(IFNULL(JSON_EXTRACT(p_options, '$.alarm_after_ms'), 0), 13));
    IF JSON_CONTAINS_PATH(p_options, 'one', '$.cron') + JSON_CONTAINS_PATH(p_options, 'one', '$.every') + JSON_CONTAINS_PATH(p_options, 'one', '$.gap') <> 1 THEN
      SET v_error = 'dq: options: one of cron, every and gap';
    ELSEIF v_kind = 0 AND IFNULL(v_word, '') NOT REGEXP '\\A(@[a-z]+|[-0-9a-zA-Z*,/]+(\\x{20}+[-0-9a-zA-Z*,/]+){4})\\z' THEN
      SET v_error = 'dq: options: cron: five fields as in crontab(5), or @daily and the like';
    ELSEIF v_kind > 0 AND IFNULL(v_word, '') NOT REGEXP '\\A[1-9][0-9]{0,8}(s|m|h|d|w)\\z' THEN
      SET v_error = 'dq: options: every, gap: a duration such as 30s, 10m, 1h or 1d';
    ELSEIF v_kind > 0 AND v_zone <> 'UTC' OR v_zone NOT REGEXP '\\A[A-Za-z0-9_+/-]{1,64}\\z' THEN
      SET v_error = 'dq: options: zone: of cron, such as Europe/Berlin; default: UTC';
    ELSEIF v_catch_up < 0 THEN
      SET v_error = 'dq: options: catch_up: skip, latest or all';
    ELSEIF v_overlap < 0 THEN
      SET v_error = 'dq: options: overlap: skip, one, allow or replace';
    ELSEIF v_ms NOT REGEXP '\\A[0-9]{1,12}(\\x{20}[0-9]{1,12}){3}\\z' THEN
      SET v_error = 'dq: options: spread_ms, within_ms, expires_ms, alarm_after_ms: milliseconds';
    ELSE
      SET v_spread = SUBSTRING_INDEX(v_ms, ' ', 1), v_within = SUBSTRING_INDEX(SUBSTRING_INDEX(v_ms, ' ', 2), ' ', -1),
          v_expires = SUBSTRING_INDEX(SUBSTRING_INDEX(v_ms, ' ', -2), ' ', 1), v_alarm = SUBSTRING_INDEX(v_ms, ' ', -1);
      SET v_period = IF(v_kind = 0, NULL, LEFT(v_word, CHAR_LENGTH(v_word) - 1) * ELT(FIELD(RIGHT(v_word, 1), 's', 'm', 'h', 'd', 'w'), 1000, 60000, 3600000, 86400000, 604800000));
      IF v_period > 316224000000 THEN
        SET v_error = 'dq: options: every, gap: at most 3660 days';
      ELSEIF GREATEST(v_spread, v_within, v_expires, v_alarm) > 316224000000 OR v_kind = 1 AND v_spread > v_period DIV 2 THEN
        SET v_error = 'dq: options: spread_ms (at most half of every), within_ms, expires_ms, alarm_after_ms: at most 3660 days';
      ELSEIF v_within > 31622400000 OR v_within AND v_catch_up = 0 THEN
        SET v_error = 'dq: options: within_ms: at most a year, and not with "catch_up": "skip"';
      END IF;
    END IF;
  END IF;
  IF v_error IS NOT NULL THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = v_error;
  END IF;

  INSERT INTO dq_schedule (name, tag, message_body, kind, expression, zone, spread, catch_up, catch_up_within, overlap, expires, alarm_after,
                           version, next_slot, zone_version, create_time, update_time, actor)
  VALUES (p_name, p_tag, p_body, v_kind, v_word, v_zone, v_spread, v_catch_up, v_within, v_overlap, v_expires, v_alarm,
          1, UTC_TIMESTAMP(3), IF(v_kind = 2, '', '?'), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), LEFT(USER(), 255))
  ON DUPLICATE KEY UPDATE
    next_slot = IF(kind = v_kind AND expression = v_word AND zone = v_zone AND from_time IS NULL AND to_time IS NULL, next_slot, UTC_TIMESTAMP(3)),
    zone_version = IF(v_kind = 2 OR kind = v_kind AND expression = v_word AND zone = v_zone AND from_time IS NULL AND to_time IS NULL, zone_version, '?'),
    from_time = NULL, to_time = NULL, kind = v_kind, expression = v_word, zone = v_zone, tag = p_tag, message_body = p_body, spread = v_spread,
    catch_up = v_catch_up, catch_up_within = v_within, overlap = v_overlap, expires = v_expires, alarm_after = v_alarm,
    version = version + 1, update_time = UTC_TIMESTAMP(3), actor = LEFT(USER(), 255);
  SET p_n = ROW_COUNT() = 1;
  INSERT INTO dq_event (token, by_procedure, event_time, actor, verb, arguments, tag)
  VALUES (UNHEX(LEFT(SHA2(UUID(), 256), 32)), 1, UTC_TIMESTAMP(3), LEFT(USER(), 255), 'schedule set', CONCAT('CALL dq_schedule_set ', p_name), p_tag);
END
//

CREATE PROCEDURE dq_schedule_delete(
  p_name varchar(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  OUT p_n int)
SQL SECURITY DEFINER
MODIFIES SQL DATA
COMMENT 'dq: deletes a schedule; tasks that it has added stay'
BEGIN
  DECLARE v_tag varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT (SELECT tag FROM dq_schedule WHERE name = p_name);

  DELETE FROM dq_schedule WHERE name = p_name AND LENGTH(name) = LENGTH(p_name);
  SET p_n = ROW_COUNT();
  IF p_n THEN
    INSERT INTO dq_event (token, by_procedure, event_time, actor, verb, arguments, tag)
    VALUES (UNHEX(LEFT(SHA2(UUID(), 256), 32)), 1, UTC_TIMESTAMP(3), LEFT(USER(), 255), 'schedule delete', CONCAT('CALL dq_schedule_delete ', p_name), v_tag);
  END IF;
END
//

SET SESSION sql_mode = @dq_sql_mode
//
DELIMITER ;
