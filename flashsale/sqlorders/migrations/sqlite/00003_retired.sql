-- The epoch of a sku whose stock was removed, long after it was closed; 0: none.

-- +goose Up
ALTER TABLE sale_sku ADD COLUMN retired INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE sale_sku DROP COLUMN retired;
