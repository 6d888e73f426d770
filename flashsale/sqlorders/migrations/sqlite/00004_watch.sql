-- How long a lease lasts, in microseconds, so that one that nobody renews is seen to have ended though the clock was set back; 0: it is
-- not known. And up to when a job has come that looks at all that has changed since.

-- +goose Up
ALTER TABLE lease ADD COLUMN life INTEGER NOT NULL DEFAULT 0;
CREATE TABLE progress (
    name TEXT NOT NULL PRIMARY KEY,
    at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE progress;
ALTER TABLE lease DROP COLUMN life;
