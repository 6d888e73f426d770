-- The tables of a sale. Times are microseconds since 1970, durations microseconds, 0 or NULL where there is none. Ids are compared
-- byte by byte , and users are bytes: any are kept.

-- +goose Up
CREATE TABLE sale (
    id         TEXT    NOT NULL PRIMARY KEY,
    title      TEXT    NOT NULL,
    currency   TEXT    NOT NULL,
    zone       TEXT    NOT NULL,
    opens_at   INTEGER NOT NULL,
    closes_at  INTEGER NOT NULL,
    hold       INTEGER NOT NULL,
    pay_time   INTEGER NOT NULL,
    grace      INTEGER NOT NULL,
    rate       INTEGER NOT NULL,
    body       TEXT    NOT NULL, -- the sale as it was created
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sale_created ON sale (created_at);

-- The row that every decision of a sku locks first. What T1 needs of the sale stands in it once more, and never changes.
CREATE TABLE sale_sku (
    sale             TEXT    NOT NULL,
    sku              TEXT    NOT NULL,
    ord              INTEGER NOT NULL,
    title            TEXT    NOT NULL,
    total            INTEGER NOT NULL,
    initial          INTEGER NOT NULL,
    reserved         INTEGER NOT NULL,
    sold             INTEGER NOT NULL,
    epoch            INTEGER NOT NULL,
    rebuilding       INTEGER NOT NULL,
    status           TEXT    NOT NULL,
    settings_version INTEGER NOT NULL,
    rate             INTEGER NOT NULL,
    purchase_limit   INTEGER NOT NULL,
    price            INTEGER NOT NULL,
    currency         TEXT    NOT NULL,
    opens_at         INTEGER NOT NULL,
    closes_at        INTEGER NOT NULL,
    hold             INTEGER NOT NULL,
    pay_time         INTEGER NOT NULL,
    grace            INTEGER NOT NULL,
    seq              INTEGER NOT NULL,
    store_run        TEXT    NOT NULL,
    changed_at       INTEGER NOT NULL,
    PRIMARY KEY (sale, sku),
    CONSTRAINT sku_units CHECK (reserved >= 0 AND sold >= 0 AND reserved + sold <= total),
    CONSTRAINT sku_epoch CHECK (epoch > 0 AND rebuilding IN (0, 1)),
    CONSTRAINT sku_status CHECK (status IN ('draft', 'open', 'paused', 'draining', 'closed')),
    CONSTRAINT sku_settings CHECK (rate > 0 AND purchase_limit > 0 AND price >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE buyer (
    sale     TEXT    NOT NULL,
    sku      TEXT    NOT NULL,
    user_id  BLOB    NOT NULL,
    quantity INTEGER NOT NULL,
    most     INTEGER NOT NULL, -- the purchase limit
    PRIMARY KEY (sale, sku, user_id),
    CONSTRAINT buyer_user CHECK (length(user_id) BETWEEN 1 AND 255),
    CONSTRAINT buyer_limit CHECK (quantity >= 0 AND quantity <= most)
) STRICT, WITHOUT ROWID;

CREATE TABLE reservation (
    rid         TEXT    NOT NULL PRIMARY KEY,
    sale        TEXT    NOT NULL,
    sku         TEXT    NOT NULL,
    user_id     BLOB    NOT NULL,
    quantity    INTEGER NOT NULL,
    state       INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    reason      TEXT    NOT NULL,
    until_at    INTEGER NOT NULL,
    pay_granted INTEGER NOT NULL,
    order_id    TEXT    NOT NULL,
    amount      INTEGER NOT NULL,
    currency    TEXT    NOT NULL,
    origin      TEXT    NOT NULL,
    epoch       INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    changed_at  INTEGER NOT NULL,
    ended_at    INTEGER, -- NULL while not terminal
    CONSTRAINT reservation_user CHECK (length(user_id) BETWEEN 1 AND 255),
    CONSTRAINT reservation_units CHECK (quantity > 0 AND version > 0 AND amount >= 0),
    -- 2 reserved, 3 confirming; 4 confirmed, 5 cancelled, 6 expired, 7 rejected
    CONSTRAINT reservation_state CHECK (state IN (2, 3) AND ended_at IS NULL OR state IN (4, 5, 6, 7) AND ended_at IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX reservation_sku ON reservation (sale, sku, ended_at);
CREATE INDEX reservation_due ON reservation (state, until_at) WHERE ended_at IS NULL;
CREATE INDEX reservation_user ON reservation (sale, user_id, created_at);
CREATE INDEX reservation_paid ON reservation (changed_at, rid) WHERE state = 4;

CREATE TABLE stock_ledger (
    id       TEXT    NOT NULL, -- a rid, an operation, or "sale/sku" of phase initial
    phase    TEXT    NOT NULL,
    sale     TEXT    NOT NULL,
    sku      TEXT    NOT NULL,
    quantity INTEGER NOT NULL,
    kind     TEXT    NOT NULL, -- of phase settle: sold or released
    at       INTEGER NOT NULL,
    PRIMARY KEY (id, phase),
    CONSTRAINT ledger_phase CHECK (phase IN ('initial', 'reserve', 'settle', 'top_up', 'withdraw')),
    CONSTRAINT ledger_kind CHECK (phase = 'settle' AND kind IN ('sold', 'released') OR phase <> 'settle' AND kind = ''),
    CONSTRAINT ledger_quantity CHECK (quantity > 0 OR phase = 'initial' AND quantity = 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_sku ON stock_ledger (sale, sku);
CREATE INDEX ledger_sold ON stock_ledger (at, id) WHERE phase = 'settle' AND kind = 'sold';

CREATE TABLE operation (
    id         TEXT    NOT NULL PRIMARY KEY,
    sale       TEXT    NOT NULL,
    sku        TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    delta      INTEGER NOT NULL,
    status     TEXT    NOT NULL,
    rate       INTEGER NOT NULL,
    reason     TEXT    NOT NULL,
    by_whom    TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    epoch      INTEGER NOT NULL,
    detail     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    CONSTRAINT operation_state CHECK (state IN ('begun', 'committed', 'done', 'refused')),
    CONSTRAINT operation_kind CHECK (kind IN ('top_up', 'withdraw', 'status', 'rate', 'rebuild')),
    CONSTRAINT operation_reason CHECK (reason <> '')
) STRICT, WITHOUT ROWID;
CREATE INDEX operation_open ON operation (created_at) WHERE state IN ('begun', 'committed');
CREATE INDEX operation_sku ON operation (sale, sku, created_at);

CREATE TABLE orders (
    order_id   TEXT    NOT NULL PRIMARY KEY,
    rid        TEXT    NOT NULL,
    sale       TEXT    NOT NULL,
    sku        TEXT    NOT NULL,
    user_id    BLOB    NOT NULL,
    quantity   INTEGER NOT NULL,
    amount     INTEGER NOT NULL,
    currency   TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    CONSTRAINT orders_rid UNIQUE (rid),
    CONSTRAINT orders_units CHECK (quantity > 0 AND amount >= 0),
    CONSTRAINT orders_state CHECK (state IN ('unpaid', 'paid', 'cancelled', 'expired'))
) STRICT, WITHOUT ROWID;
CREATE INDEX orders_sku ON orders (sale, sku);
CREATE INDEX orders_paid ON orders (changed_at, rid) WHERE state = 'paid';

CREATE TABLE payment (
    intent_key TEXT    NOT NULL PRIMARY KEY,
    rid        TEXT    NOT NULL,
    attempt    INTEGER NOT NULL,
    amount     INTEGER NOT NULL,
    currency   TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    live       INTEGER, -- 1 or NULL: one live payment for each reservation
    applied_to TEXT,
    reason     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    CONSTRAINT payment_attempt UNIQUE (rid, attempt),
    CONSTRAINT payment_live UNIQUE (rid, live),
    CONSTRAINT payment_applied UNIQUE (applied_to),
    CONSTRAINT payment_state CHECK (state IN ('live', 'captured', 'void', 'failed', 'refunding', 'refunded')),
    CONSTRAINT payment_one_live CHECK (state = 'live' AND live IS NOT NULL AND live = 1 OR state <> 'live' AND live IS NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX payment_open ON payment (state, changed_at);
CREATE INDEX payment_changed ON payment (changed_at, intent_key);
CREATE INDEX payment_paid ON payment (changed_at, applied_to) WHERE applied_to IS NOT NULL;

CREATE TABLE payment_event (
    event_id   TEXT    NOT NULL PRIMARY KEY,
    intent_key TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY AUTOINCREMENT, -- a number is never used again
    rid        TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    sale       TEXT    NOT NULL,
    sku        TEXT    NOT NULL,
    user_id    BLOB    NOT NULL,
    quantity   INTEGER NOT NULL,
    state      INTEGER NOT NULL,
    reason     TEXT    NOT NULL,
    order_id   TEXT    NOT NULL,
    amount     INTEGER NOT NULL,
    currency   TEXT    NOT NULL,
    stock_sent INTEGER NOT NULL,
    relay_sent INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    CONSTRAINT outbox_version UNIQUE (rid, version)
) STRICT;
CREATE INDEX outbox_stock ON outbox (id) WHERE stock_sent = 0;
CREATE INDEX outbox_relay ON outbox (id) WHERE relay_sent = 0;

CREATE TABLE inbox (
    consumer   TEXT    NOT NULL,
    message_id TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (consumer, message_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE lease (
    name     TEXT    NOT NULL PRIMARY KEY,
    holder   TEXT    NOT NULL, -- '': nobody
    fence    INTEGER NOT NULL,
    until_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE lease;
DROP TABLE inbox;
DROP TABLE outbox;
DROP TABLE payment_event;
DROP TABLE payment;
DROP TABLE orders;
DROP TABLE operation;
DROP TABLE stock_ledger;
DROP TABLE reservation;
DROP TABLE buyer;
DROP TABLE sale_sku;
DROP TABLE sale;
