-- Skus of sales that were dropped before they were ever opened: by whom and why, and where a sale of the same name begins.

-- +goose Up
CREATE TABLE dropped (
    operation        TEXT NOT NULL,
    sale             TEXT NOT NULL,
    sku              TEXT NOT NULL,
    epoch            INTEGER NOT NULL,
    settings_version INTEGER NOT NULL,
    removed          INTEGER NOT NULL, -- 1: the stock has nothing of it any more
    reason           TEXT NOT NULL,
    by_whom          TEXT NOT NULL,
    at               INTEGER NOT NULL,
    PRIMARY KEY (operation, sku)
) STRICT, WITHOUT ROWID;
CREATE INDEX dropped_sale ON dropped (sale, sku);

-- +goose Down
DROP TABLE dropped;
