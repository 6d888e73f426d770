-- The tables of a sale. Times are microseconds since 1970, durations microseconds, 0 or NULL where there is none. Ids are compared
-- byte by byte (COLLATE "C"), and users are bytes: any are kept.

-- +goose Up
CREATE TABLE sale (
    id         TEXT COLLATE "C" PRIMARY KEY,
    title      TEXT             NOT NULL,
    currency   TEXT             NOT NULL,
    zone       TEXT             NOT NULL,
    opens_at   BIGINT           NOT NULL,
    closes_at  BIGINT           NOT NULL,
    hold       BIGINT           NOT NULL,
    pay_time   BIGINT           NOT NULL,
    grace      BIGINT           NOT NULL,
    rate       BIGINT           NOT NULL,
    body       TEXT             NOT NULL, -- the sale as it was created
    created_at BIGINT           NOT NULL
);
CREATE INDEX sale_created ON sale (created_at);

-- The row that every decision of a sku locks first. What T1 needs of the sale stands in it once more, and never changes.
CREATE TABLE sale_sku (
    sale             TEXT COLLATE "C" NOT NULL,
    sku              TEXT COLLATE "C" NOT NULL,
    ord              BIGINT           NOT NULL,
    title            TEXT             NOT NULL,
    total            BIGINT           NOT NULL,
    initial          BIGINT           NOT NULL,
    reserved         BIGINT           NOT NULL,
    sold             BIGINT           NOT NULL,
    epoch            BIGINT           NOT NULL,
    rebuilding       BIGINT           NOT NULL,
    status           TEXT             NOT NULL,
    settings_version BIGINT           NOT NULL,
    rate             BIGINT           NOT NULL,
    purchase_limit   BIGINT           NOT NULL,
    price            BIGINT           NOT NULL,
    currency         TEXT             NOT NULL,
    opens_at         BIGINT           NOT NULL,
    closes_at        BIGINT           NOT NULL,
    hold             BIGINT           NOT NULL,
    pay_time         BIGINT           NOT NULL,
    grace            BIGINT           NOT NULL,
    seq              BIGINT           NOT NULL,
    store_run        TEXT             NOT NULL,
    changed_at       BIGINT           NOT NULL,
    PRIMARY KEY (sale, sku),
    CONSTRAINT sku_units CHECK (reserved >= 0 AND sold >= 0 AND reserved + sold <= total),
    CONSTRAINT sku_epoch CHECK (epoch > 0 AND rebuilding IN (0, 1)),
    CONSTRAINT sku_status CHECK (status IN ('draft', 'open', 'paused', 'draining', 'closed')),
    CONSTRAINT sku_settings CHECK (rate > 0 AND purchase_limit > 0 AND price >= 0)
) WITH (fillfactor = 50);

CREATE TABLE buyer (
    sale     TEXT COLLATE "C" NOT NULL,
    sku      TEXT COLLATE "C" NOT NULL,
    user_id  BYTEA            NOT NULL,
    quantity BIGINT           NOT NULL,
    most     BIGINT           NOT NULL, -- the purchase limit
    PRIMARY KEY (sale, sku, user_id),
    CONSTRAINT buyer_user CHECK (octet_length(user_id) BETWEEN 1 AND 255),
    CONSTRAINT buyer_limit CHECK (quantity >= 0 AND quantity <= most)
);

CREATE TABLE reservation (
    rid         TEXT COLLATE "C" PRIMARY KEY,
    sale        TEXT COLLATE "C" NOT NULL,
    sku         TEXT COLLATE "C" NOT NULL,
    user_id     BYTEA            NOT NULL,
    quantity    BIGINT           NOT NULL,
    state       SMALLINT         NOT NULL,
    version     BIGINT           NOT NULL,
    reason      TEXT             NOT NULL,
    until_at    BIGINT           NOT NULL,
    pay_granted SMALLINT         NOT NULL,
    order_id    TEXT COLLATE "C" NOT NULL,
    amount      BIGINT           NOT NULL,
    currency    TEXT             NOT NULL,
    origin      TEXT COLLATE "C" NOT NULL,
    epoch       BIGINT           NOT NULL,
    seq         BIGINT           NOT NULL,
    created_at  BIGINT           NOT NULL,
    changed_at  BIGINT           NOT NULL,
    ended_at    BIGINT, -- NULL while not terminal
    CONSTRAINT reservation_user CHECK (octet_length(user_id) BETWEEN 1 AND 255),
    CONSTRAINT reservation_units CHECK (quantity > 0 AND version > 0 AND amount >= 0),
    -- 2 reserved, 3 confirming; 4 confirmed, 5 cancelled, 6 expired, 7 rejected
    CONSTRAINT reservation_state CHECK (state IN (2, 3) AND ended_at IS NULL OR state IN (4, 5, 6, 7) AND ended_at IS NOT NULL)
);
CREATE INDEX reservation_sku ON reservation (sale, sku, ended_at);
CREATE INDEX reservation_due ON reservation (state, until_at) WHERE ended_at IS NULL;
CREATE INDEX reservation_user ON reservation (sale, user_id, created_at);
CREATE INDEX reservation_paid ON reservation (changed_at, rid) WHERE state = 4;

CREATE TABLE stock_ledger (
    id       TEXT COLLATE "C" NOT NULL, -- a rid, an operation, or "sale/sku" of phase initial
    phase    TEXT             NOT NULL,
    sale     TEXT COLLATE "C" NOT NULL,
    sku      TEXT COLLATE "C" NOT NULL,
    quantity BIGINT           NOT NULL,
    kind     TEXT             NOT NULL, -- of phase settle: sold or released
    at       BIGINT           NOT NULL,
    PRIMARY KEY (id, phase),
    CONSTRAINT ledger_phase CHECK (phase IN ('initial', 'reserve', 'settle', 'top_up', 'withdraw')),
    CONSTRAINT ledger_kind CHECK (phase = 'settle' AND kind IN ('sold', 'released') OR phase <> 'settle' AND kind = ''),
    CONSTRAINT ledger_quantity CHECK (quantity > 0 OR phase = 'initial' AND quantity = 0)
);
CREATE INDEX ledger_sku ON stock_ledger (sale, sku);
CREATE INDEX ledger_sold ON stock_ledger (at, id) WHERE phase = 'settle' AND kind = 'sold';

CREATE TABLE operation (
    id         TEXT COLLATE "C" PRIMARY KEY,
    sale       TEXT COLLATE "C" NOT NULL,
    sku        TEXT COLLATE "C" NOT NULL,
    kind       TEXT             NOT NULL,
    delta      BIGINT           NOT NULL,
    status     TEXT             NOT NULL,
    rate       BIGINT           NOT NULL,
    reason     TEXT             NOT NULL,
    by_whom    TEXT             NOT NULL,
    state      TEXT             NOT NULL,
    epoch      BIGINT           NOT NULL,
    detail     TEXT             NOT NULL,
    created_at BIGINT           NOT NULL,
    changed_at BIGINT           NOT NULL,
    CONSTRAINT operation_state CHECK (state IN ('begun', 'committed', 'done', 'refused')),
    CONSTRAINT operation_kind CHECK (kind IN ('top_up', 'withdraw', 'status', 'rate', 'rebuild')),
    CONSTRAINT operation_reason CHECK (reason <> '')
);
CREATE INDEX operation_open ON operation (created_at) WHERE state IN ('begun', 'committed');
CREATE INDEX operation_sku ON operation (sale, sku, created_at);

CREATE TABLE orders (
    order_id   TEXT COLLATE "C" PRIMARY KEY,
    rid        TEXT COLLATE "C" NOT NULL,
    sale       TEXT COLLATE "C" NOT NULL,
    sku        TEXT COLLATE "C" NOT NULL,
    user_id    BYTEA            NOT NULL,
    quantity   BIGINT           NOT NULL,
    amount     BIGINT           NOT NULL,
    currency   TEXT             NOT NULL,
    state      TEXT             NOT NULL,
    created_at BIGINT           NOT NULL,
    changed_at BIGINT           NOT NULL,
    CONSTRAINT orders_rid UNIQUE (rid),
    CONSTRAINT orders_units CHECK (quantity > 0 AND amount >= 0),
    CONSTRAINT orders_state CHECK (state IN ('unpaid', 'paid', 'cancelled', 'expired'))
);
CREATE INDEX orders_sku ON orders (sale, sku);
CREATE INDEX orders_paid ON orders (changed_at, rid) WHERE state = 'paid';

CREATE TABLE payment (
    intent_key TEXT COLLATE "C" PRIMARY KEY,
    rid        TEXT COLLATE "C" NOT NULL,
    attempt    BIGINT           NOT NULL,
    amount     BIGINT           NOT NULL,
    currency   TEXT             NOT NULL,
    state      TEXT             NOT NULL,
    live       SMALLINT, -- 1 or NULL: one live payment for each reservation
    applied_to TEXT COLLATE "C",
    reason     TEXT             NOT NULL,
    created_at BIGINT           NOT NULL,
    changed_at BIGINT           NOT NULL,
    CONSTRAINT payment_attempt UNIQUE (rid, attempt),
    CONSTRAINT payment_live UNIQUE (rid, live),
    CONSTRAINT payment_applied UNIQUE (applied_to),
    CONSTRAINT payment_state CHECK (state IN ('live', 'captured', 'void', 'failed', 'refunding', 'refunded')),
    CONSTRAINT payment_one_live CHECK (state = 'live' AND live IS NOT NULL AND live = 1 OR state <> 'live' AND live IS NULL)
);
CREATE INDEX payment_open ON payment (state, changed_at);
CREATE INDEX payment_changed ON payment (changed_at, intent_key);
CREATE INDEX payment_paid ON payment (changed_at, applied_to) WHERE applied_to IS NOT NULL;

CREATE TABLE payment_event (
    event_id   TEXT COLLATE "C" PRIMARY KEY,
    intent_key TEXT COLLATE "C" NOT NULL,
    status     TEXT             NOT NULL,
    at         BIGINT           NOT NULL
);

CREATE TABLE outbox (
    id         BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    rid        TEXT COLLATE "C"                        NOT NULL,
    version    BIGINT                                  NOT NULL,
    sale       TEXT COLLATE "C"                        NOT NULL,
    sku        TEXT COLLATE "C"                        NOT NULL,
    user_id    BYTEA                                   NOT NULL,
    quantity   BIGINT                                  NOT NULL,
    state      SMALLINT                                NOT NULL,
    reason     TEXT                                    NOT NULL,
    order_id   TEXT COLLATE "C"                        NOT NULL,
    amount     BIGINT                                  NOT NULL,
    currency   TEXT                                    NOT NULL,
    stock_sent SMALLINT                                NOT NULL,
    relay_sent SMALLINT                                NOT NULL,
    at         BIGINT                                  NOT NULL,
    CONSTRAINT outbox_version UNIQUE (rid, version)
);
CREATE INDEX outbox_stock ON outbox (id) WHERE stock_sent = 0;
CREATE INDEX outbox_relay ON outbox (id) WHERE relay_sent = 0;

CREATE TABLE inbox (
    consumer   TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    at         BIGINT           NOT NULL,
    PRIMARY KEY (consumer, message_id)
);

CREATE TABLE lease (
    name     TEXT COLLATE "C" PRIMARY KEY,
    holder   TEXT COLLATE "C" NOT NULL, -- '': nobody
    fence    BIGINT           NOT NULL,
    until_at BIGINT           NOT NULL
);

-- +goose Down
DROP TABLE lease, inbox, outbox, payment_event, payment, orders, operation, stock_ledger, reservation, buyer, sale_sku, sale;
