-- How long a lease lasts, in microseconds, so that one that nobody renews is seen to have ended though the clock was set back; 0: it is
-- not known. And up to when a job has come that looks at all that has changed since. What exists is left alone, since a statement that
-- defines a column or a table cannot be rolled back.

-- +goose Up
SET @headgate = (SELECT IF(COUNT(*) = 0, 'ALTER TABLE lease ADD COLUMN life BIGINT NOT NULL DEFAULT 0', 'DO 0') FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'lease' AND column_name = 'life');
PREPARE headgate FROM @headgate;
EXECUTE headgate;
DEALLOCATE PREPARE headgate;
CREATE TABLE IF NOT EXISTS progress (
    name VARCHAR(190) NOT NULL PRIMARY KEY,
    at   BIGINT       NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE progress;
ALTER TABLE lease DROP COLUMN life;
