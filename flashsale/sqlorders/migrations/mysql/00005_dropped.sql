-- Skus of sales that were dropped before they were ever opened: by whom and why, and where a sale of the same name begins. A table
-- that exists is left alone, since a statement that defines one cannot be rolled back.

-- +goose Up
CREATE TABLE IF NOT EXISTS dropped (
    operation        VARBINARY(64) NOT NULL,
    sale             VARBINARY(64) NOT NULL,
    sku              VARBINARY(64) NOT NULL,
    epoch            BIGINT NOT NULL,
    settings_version BIGINT NOT NULL,
    removed          BIGINT NOT NULL, -- 1: the stock has nothing of it any more
    reason           VARCHAR(512) NOT NULL,
    by_whom          VARCHAR(512) NOT NULL,
    at               BIGINT NOT NULL,
    PRIMARY KEY (operation, sku),
    INDEX dropped_sale (sale, sku)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE dropped;
