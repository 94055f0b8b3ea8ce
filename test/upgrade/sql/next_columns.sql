-- What a next release might do, for tests: columns and a table, instantly.
-- compat: 1

ALTER TABLE dq_task ADD COLUMN trace varchar(64) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'text, with a COMMA', ALGORITHM=INSTANT;

ALTER TABLE dq_attempt ADD COLUMN cost int unsigned NOT NULL DEFAULT 7, ALGORITHM=INSTANT;

ALTER TABLE dq_limit ADD COLUMN owner varchar(64) CHARACTER SET ascii COLLATE ascii_bin NULL, ALGORITHM=INSTANT;

ALTER TABLE dq_attempt ADD KEY ended (finish_time), ALGORITHM=INPLACE, LOCK=NONE;

CREATE TABLE IF NOT EXISTS dq_extra (
  id bigint unsigned NOT NULL,
  PRIMARY KEY (id)
) ENGINE=InnoDB;
