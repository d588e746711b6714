-- Version 2: what orders did, of a grid that matches. It is applied as version 1 is.

-- One row per execution of an order: one side of a trade. entry and n are its id, as in p1/17.2. Only a sink that is told
-- to write executions fills the table.
CREATE TABLE executions (
    grid        text COLLATE "C" NOT NULL,
    "partition" int NOT NULL,
    entry       bigint NOT NULL,
    n           int NOT NULL,
    lineage     bigint NOT NULL,
    received    timestamptz NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    symbol      text COLLATE "C",
    account     text COLLATE "C",
    side        text COLLATE "C",
    cl_ord_id   text COLLATE "C",
    order_seq   bigint,
    other_seq   bigint,
    price       numeric,
    quantity    numeric,
    leaves      numeric,
    cumulative  numeric,
    reason      text COLLATE "C",
    passive     boolean NOT NULL,
    auction     boolean NOT NULL,
    PRIMARY KEY (grid, "partition", entry, n, received)
) PARTITION BY RANGE (received);
COMMENT ON TABLE executions IS 'Executions of OrderGrid, one table per day (UTC) of received.';
COMMENT ON COLUMN executions.entry IS 'Log entry that did it; n is its number in the entry, from 1.';
COMMENT ON COLUMN executions.received IS 'When the primary received the entry, cut to microseconds.';
COMMENT ON COLUMN executions.kind IS 'accepted, rejected, filled, cancelled, cancel rejected, replaced, restated, triggered.';
COMMENT ON COLUMN executions.side IS 'FIX tag 54 of the order.';
COMMENT ON COLUMN executions.account IS 'FIX tag 1 of the last accepted message of the order; null if it has none, or if its entry was freed.';
COMMENT ON COLUMN executions.order_seq IS 'Log entry of the last accepted message of the order.';
COMMENT ON COLUMN executions.other_seq IS 'Of a trade the other order''s, of a replaced order the entry that replaced it.';
COMMENT ON COLUMN executions.price IS 'Of a trade its price, else that of the order; quantity likewise.';
COMMENT ON COLUMN executions.passive IS 'Of a trade: the order was in the book before.';

CREATE TABLE executions_default PARTITION OF executions DEFAULT;
COMMENT ON TABLE executions_default IS 'Executions of days without a table of their own.';

-- make_day makes the tables of a day, of orders and of executions. It returns false if both are there.
CREATE OR REPLACE FUNCTION make_day(day date) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT SET lock_timeout = '2s' SET timezone = 'UTC'
AS $$
DECLARE
    parent text;
    name   text;
    made   boolean := false;
BEGIN
    PERFORM pg_advisory_xact_lock('orders'::regclass::oid::bigint);
    FOREACH parent IN ARRAY ARRAY['orders', 'executions'] LOOP
        name := parent || '_' || to_char(day, 'YYYYMMDD');
        CONTINUE WHEN to_regclass(quote_ident(name)) IS NOT NULL;
        -- Attaching a finished table lets readers and writers of the other days go on.
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)', name, parent);
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, name, day::timestamptz, (day + 1)::timestamptz);
        made := true;
    END LOOP;
    RETURN made;
END
$$;
COMMENT ON FUNCTION make_day(date) IS 'Makes the tables of a day, of orders and of executions; false if there are both.';

INSERT INTO schema_version (version) VALUES (2);
