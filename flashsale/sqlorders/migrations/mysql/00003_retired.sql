-- The epoch of a sku whose stock was removed, long after it was closed; 0: none. A column that exists is left alone, since a statement
-- that defines one cannot be rolled back.

-- +goose Up
SET @headgate = (SELECT IF(COUNT(*) = 0, 'ALTER TABLE sale_sku ADD COLUMN retired BIGINT NOT NULL DEFAULT 0', 'DO 0') FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'sale_sku' AND column_name = 'retired');
PREPARE headgate FROM @headgate;
EXECUTE headgate;
DEALLOCATE PREPARE headgate;

-- +goose Down
ALTER TABLE sale_sku DROP COLUMN retired;
