-- The tables of a sale. Times are microseconds since 1970, durations microseconds, 0 or NULL where there is none. Ids and users
-- are bytes: no collation pads or folds them. What exists is left alone, since a statement that defines a table cannot be rolled back.

-- +goose Up
CREATE TABLE IF NOT EXISTS sale (
    id         VARBINARY(64) NOT NULL PRIMARY KEY,
    title      VARCHAR(1024) NOT NULL,
    currency   VARBINARY(16) NOT NULL,
    zone       VARCHAR(255)  NOT NULL,
    opens_at   BIGINT        NOT NULL,
    closes_at  BIGINT        NOT NULL,
    hold       BIGINT        NOT NULL,
    pay_time   BIGINT        NOT NULL,
    grace      BIGINT        NOT NULL,
    rate       BIGINT        NOT NULL,
    body       MEDIUMTEXT    NOT NULL, -- the sale as it was created
    created_at BIGINT        NOT NULL,
    INDEX sale_created (created_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The row that every decision of a sku locks first. What T1 needs of the sale stands in it once more, and never changes.
CREATE TABLE IF NOT EXISTS sale_sku (
    sale             VARBINARY(64)  NOT NULL,
    sku              VARBINARY(64)  NOT NULL,
    ord              BIGINT         NOT NULL,
    title            VARCHAR(1024)  NOT NULL,
    total            BIGINT         NOT NULL,
    initial          BIGINT         NOT NULL,
    reserved         BIGINT         NOT NULL,
    sold             BIGINT         NOT NULL,
    epoch            BIGINT         NOT NULL,
    rebuilding       BIGINT         NOT NULL,
    status           VARBINARY(16)  NOT NULL,
    settings_version BIGINT         NOT NULL,
    rate             BIGINT         NOT NULL,
    purchase_limit   BIGINT         NOT NULL,
    price            BIGINT         NOT NULL,
    currency         VARBINARY(16)  NOT NULL,
    opens_at         BIGINT         NOT NULL,
    closes_at        BIGINT         NOT NULL,
    hold             BIGINT         NOT NULL,
    pay_time         BIGINT         NOT NULL,
    grace            BIGINT         NOT NULL,
    seq              BIGINT         NOT NULL,
    store_run        VARBINARY(255) NOT NULL,
    changed_at       BIGINT         NOT NULL,
    PRIMARY KEY (sale, sku),
    CONSTRAINT sku_units CHECK (reserved >= 0 AND sold >= 0 AND reserved + sold <= total),
    CONSTRAINT sku_epoch CHECK (epoch > 0 AND rebuilding IN (0, 1)),
    CONSTRAINT sku_status CHECK (status IN ('draft', 'open', 'paused', 'draining', 'closed')),
    CONSTRAINT sku_settings CHECK (rate > 0 AND purchase_limit > 0 AND price >= 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS buyer (
    sale     VARBINARY(64)  NOT NULL,
    sku      VARBINARY(64)  NOT NULL,
    user_id  VARBINARY(255) NOT NULL,
    quantity BIGINT         NOT NULL,
    most     BIGINT         NOT NULL, -- the purchase limit
    PRIMARY KEY (sale, sku, user_id),
    CONSTRAINT buyer_user CHECK (octet_length(user_id) BETWEEN 1 AND 255),
    CONSTRAINT buyer_limit CHECK (quantity >= 0 AND quantity <= most)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS reservation (
    rid         VARBINARY(64)  NOT NULL PRIMARY KEY,
    sale        VARBINARY(64)  NOT NULL,
    sku         VARBINARY(64)  NOT NULL,
    user_id     VARBINARY(255) NOT NULL,
    quantity    BIGINT         NOT NULL,
    state       SMALLINT       NOT NULL,
    version     BIGINT         NOT NULL,
    reason      VARCHAR(512)   NOT NULL,
    until_at    BIGINT         NOT NULL,
    pay_granted SMALLINT       NOT NULL,
    order_id    VARBINARY(100) NOT NULL,
    amount      BIGINT         NOT NULL,
    currency    VARBINARY(16)  NOT NULL,
    origin      VARBINARY(100) NOT NULL,
    epoch       BIGINT         NOT NULL,
    seq         BIGINT         NOT NULL,
    created_at  BIGINT         NOT NULL,
    changed_at  BIGINT         NOT NULL,
    ended_at    BIGINT, -- NULL while not terminal
    CONSTRAINT reservation_user CHECK (octet_length(user_id) BETWEEN 1 AND 255),
    CONSTRAINT reservation_units CHECK (quantity > 0 AND version > 0 AND amount >= 0),
    -- 2 reserved, 3 confirming; 4 confirmed, 5 cancelled, 6 expired, 7 rejected
    CONSTRAINT reservation_state CHECK (state IN (2, 3) AND ended_at IS NULL OR state IN (4, 5, 6, 7) AND ended_at IS NOT NULL),
    INDEX reservation_sku (sale, sku, ended_at),
    INDEX reservation_due (state, until_at),
    INDEX reservation_user (sale, user_id, created_at),
    INDEX reservation_paid (state, changed_at, rid)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS stock_ledger (
    id       VARBINARY(160) NOT NULL, -- a rid, an operation, or "sale/sku" of phase initial
    phase    VARBINARY(16)  NOT NULL,
    sale     VARBINARY(64)  NOT NULL,
    sku      VARBINARY(64)  NOT NULL,
    quantity BIGINT         NOT NULL,
    kind     VARBINARY(16)  NOT NULL, -- of phase settle: sold or released
    at       BIGINT         NOT NULL,
    PRIMARY KEY (id, phase),
    CONSTRAINT ledger_phase CHECK (phase IN ('initial', 'reserve', 'settle', 'top_up', 'withdraw')),
    CONSTRAINT ledger_kind CHECK (phase = 'settle' AND kind IN ('sold', 'released') OR phase <> 'settle' AND kind = ''),
    CONSTRAINT ledger_quantity CHECK (quantity > 0 OR phase = 'initial' AND quantity = 0),
    INDEX ledger_sku (sale, sku),
    INDEX ledger_sold (phase, kind, at, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS operation (
    id         VARBINARY(64) NOT NULL PRIMARY KEY,
    sale       VARBINARY(64) NOT NULL,
    sku        VARBINARY(64) NOT NULL,
    kind       VARBINARY(16) NOT NULL,
    delta      BIGINT        NOT NULL,
    status     VARBINARY(16) NOT NULL,
    rate       BIGINT        NOT NULL,
    reason     VARCHAR(512)  NOT NULL,
    by_whom    VARCHAR(512)  NOT NULL,
    state      VARBINARY(16) NOT NULL,
    epoch      BIGINT        NOT NULL,
    detail     VARCHAR(1024) NOT NULL,
    created_at BIGINT        NOT NULL,
    changed_at BIGINT        NOT NULL,
    CONSTRAINT operation_state CHECK (state IN ('begun', 'committed', 'done', 'refused')),
    CONSTRAINT operation_kind CHECK (kind IN ('top_up', 'withdraw', 'status', 'rate', 'rebuild')),
    CONSTRAINT operation_reason CHECK (reason <> ''),
    INDEX operation_open (state, created_at),
    INDEX operation_sku (sale, sku, created_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS orders (
    order_id   VARBINARY(100) NOT NULL PRIMARY KEY,
    rid        VARBINARY(64)  NOT NULL,
    sale       VARBINARY(64)  NOT NULL,
    sku        VARBINARY(64)  NOT NULL,
    user_id    VARBINARY(255) NOT NULL,
    quantity   BIGINT         NOT NULL,
    amount     BIGINT         NOT NULL,
    currency   VARBINARY(16)  NOT NULL,
    state      VARBINARY(16)  NOT NULL,
    created_at BIGINT         NOT NULL,
    changed_at BIGINT         NOT NULL,
    CONSTRAINT orders_rid UNIQUE (rid),
    CONSTRAINT orders_units CHECK (quantity > 0 AND amount >= 0),
    CONSTRAINT orders_state CHECK (state IN ('unpaid', 'paid', 'cancelled', 'expired')),
    INDEX orders_sku (sale, sku),
    INDEX orders_paid (state, changed_at, rid)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS payment (
    intent_key VARBINARY(100) NOT NULL PRIMARY KEY,
    rid        VARBINARY(64)  NOT NULL,
    attempt    BIGINT         NOT NULL,
    amount     BIGINT         NOT NULL,
    currency   VARBINARY(16)  NOT NULL,
    state      VARBINARY(16)  NOT NULL,
    live       SMALLINT, -- 1 or NULL: one live payment for each reservation
    applied_to VARBINARY(64),
    reason     VARCHAR(512)   NOT NULL,
    created_at BIGINT         NOT NULL,
    changed_at BIGINT         NOT NULL,
    CONSTRAINT payment_attempt UNIQUE (rid, attempt),
    CONSTRAINT payment_live UNIQUE (rid, live),
    CONSTRAINT payment_applied UNIQUE (applied_to),
    CONSTRAINT payment_state CHECK (state IN ('live', 'captured', 'void', 'failed', 'refunding', 'refunded')),
    CONSTRAINT payment_one_live CHECK (state = 'live' AND live IS NOT NULL AND live = 1 OR state <> 'live' AND live IS NULL),
    INDEX payment_open (state, changed_at),
    INDEX payment_changed (changed_at, intent_key)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS payment_event (
    event_id   VARBINARY(255) NOT NULL PRIMARY KEY,
    intent_key VARBINARY(100) NOT NULL,
    status     VARBINARY(16)  NOT NULL,
    at         BIGINT         NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS outbox (
    id         BIGINT         NOT NULL AUTO_INCREMENT PRIMARY KEY,
    rid        VARBINARY(64)  NOT NULL,
    version    BIGINT         NOT NULL,
    sale       VARBINARY(64)  NOT NULL,
    sku        VARBINARY(64)  NOT NULL,
    user_id    VARBINARY(255) NOT NULL,
    quantity   BIGINT         NOT NULL,
    state      SMALLINT       NOT NULL,
    reason     VARCHAR(512)   NOT NULL,
    order_id   VARBINARY(100) NOT NULL,
    amount     BIGINT         NOT NULL,
    currency   VARBINARY(16)  NOT NULL,
    stock_sent SMALLINT       NOT NULL,
    relay_sent SMALLINT       NOT NULL,
    at         BIGINT         NOT NULL,
    CONSTRAINT outbox_version UNIQUE (rid, version),
    INDEX outbox_stock (stock_sent, id),
    INDEX outbox_relay (relay_sent, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS inbox (
    consumer   VARBINARY(64)  NOT NULL,
    message_id VARBINARY(255) NOT NULL,
    at         BIGINT         NOT NULL,
    PRIMARY KEY (consumer, message_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS lease (
    name     VARBINARY(190) NOT NULL PRIMARY KEY,
    holder   VARBINARY(190) NOT NULL, -- '': nobody
    fence    BIGINT         NOT NULL,
    until_at BIGINT         NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

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
