-- dq schema, migration 3: a plain INSERT with a key and without `live` gets live = 1, so that its key is unique. Statements that
-- give `live` are not changed by that.
-- compat: 1

ALTER TABLE dq_task ALTER COLUMN live SET DEFAULT (IF(task_key IS NULL, NULL, 1)), ALGORITHM=INSTANT;
