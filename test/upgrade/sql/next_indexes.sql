-- What the release after that might do: indexes, built beside the work on the table; and some of what the one before made goes.
-- compat: 1

ALTER TABLE dq_task ADD KEY made (create_time, id), ALGORITHM=INPLACE, LOCK=NONE;

ALTER TABLE dq_extra ADD COLUMN word varchar(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'x', ALGORITHM=INSTANT;

ALTER TABLE dq_extra ADD UNIQUE KEY by_word (word), ALGORITHM=INPLACE, LOCK=NONE;

ALTER TABLE dq_attempt ALTER COLUMN cost SET DEFAULT 8, ALGORITHM=INSTANT;

ALTER TABLE dq_limit DROP COLUMN owner, ALGORITHM=INPLACE, LOCK=NONE;

ALTER TABLE dq_attempt DROP KEY ended, ALGORITHM=INPLACE, LOCK=NONE;

UPDATE dq_meta SET value = 'seen' WHERE name = 'bench';
