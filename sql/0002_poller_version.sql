-- dq schema, migration 2: dq_poller shows the version of each dqd. A dqd of schema 1 leaves it NULL.
-- compat: 1

ALTER TABLE dq_poller ADD COLUMN version varchar(64) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'of dqd', ALGORITHM=INSTANT;
