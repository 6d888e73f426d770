-- Events of the provider are removed by age.

-- +goose Up
CREATE INDEX payment_event_at ON payment_event (at);

-- +goose Down
DROP INDEX payment_event_at;
