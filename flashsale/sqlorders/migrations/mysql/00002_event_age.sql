-- Events of the provider are removed by age. An index that exists is left alone, since a statement that defines one cannot be rolled back.

-- +goose Up
SET @headgate = (SELECT IF(COUNT(*) = 0, 'CREATE INDEX payment_event_at ON payment_event (at)', 'DO 0') FROM information_schema.statistics
    WHERE table_schema = DATABASE() AND table_name = 'payment_event' AND index_name = 'payment_event_at');
PREPARE headgate FROM @headgate;
EXECUTE headgate;
DEALLOCATE PREPARE headgate;

-- +goose Down
DROP INDEX payment_event_at ON payment_event;
