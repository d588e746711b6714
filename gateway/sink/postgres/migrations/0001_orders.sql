-- Version 1. It is applied with search_path set to the schema of the sink, in one transaction. By hand:
--   psql -v ON_ERROR_STOP=1 -1 -c 'CREATE SCHEMA ordergrid' -c 'SET search_path = ordergrid, pg_temp' -f 0001_orders.sql

CREATE TABLE schema_version (
    version int PRIMARY KEY,
    applied timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE schema_version IS 'Versions of this schema that were applied, by grid-sink postgres migrate.';

-- One row per committed order. PostgreSQL wants the column of the partitioning in every unique key, so received is part
-- of the primary key; that a seq is written once follows from the fence.
CREATE TABLE orders (
    grid        text COLLATE "C" NOT NULL,
    "partition" int NOT NULL,
    seq         bigint NOT NULL,
    epoch       bigint NOT NULL,
    lineage     bigint NOT NULL,
    hash        bigint NOT NULL,
    received    timestamptz NOT NULL,
    cl_ord_id   text COLLATE "C" NOT NULL,
    symbol      text COLLATE "C",
    account     text COLLATE "C",
    side        text COLLATE "C",
    quantity    numeric,
    price       numeric,
    payload     bytea NOT NULL,
    PRIMARY KEY (grid, "partition", seq, received)
) PARTITION BY RANGE (received);
COMMENT ON TABLE orders IS 'Committed orders of OrderGrid, one table per day (UTC) of received.';
COMMENT ON COLUMN orders.seq IS 'Sequence number in the log of the partition. Numbers that are no order are in others.';
COMMENT ON COLUMN orders.hash IS 'Hash of the log entry, as in receipts: lpad(to_hex(hash), 16, ''0'').';
COMMENT ON COLUMN orders.received IS 'Receive time of the primary, cut to microseconds.';
COMMENT ON COLUMN orders.side IS 'FIX tag 54.';
COMMENT ON COLUMN orders.payload IS 'The FIX message as it was received.';

CREATE TABLE orders_default PARTITION OF orders DEFAULT;
COMMENT ON TABLE orders_default IS 'Orders of days without a table of their own.';

-- Runs of log entries that are no orders, so that the sequence can be seen to be dense.
CREATE TABLE others (
    grid        text COLLATE "C" NOT NULL,
    "partition" int NOT NULL,
    seq         bigint NOT NULL,
    through     bigint NOT NULL CHECK (through >= seq),
    PRIMARY KEY (grid, "partition", seq)
);
COMMENT ON TABLE others IS 'Log entries seq to through are no orders: epochs, sessions, positions of readers.';

-- One row per partition of a grid, updated in the transaction of every batch.
CREATE TABLE fence (
    grid          text COLLATE "C" NOT NULL,
    "partition"   int NOT NULL,
    writer        bigint NOT NULL,
    lineage       bigint NOT NULL DEFAULT 0,
    epoch         bigint NOT NULL DEFAULT 0,
    first_seq     bigint NOT NULL DEFAULT 0,
    seq           bigint NOT NULL DEFAULT 0,
    hash          bigint NOT NULL DEFAULT 0,
    orders        bigint NOT NULL DEFAULT 0,
    received      timestamptz,
    written       timestamptz,
    opened        timestamptz NOT NULL,
    backend       int NOT NULL,
    backend_start timestamptz,
    PRIMARY KEY (grid, "partition")
) WITH (fillfactor = 20);
COMMENT ON TABLE fence IS 'Position of each partition, and which writer may move it on.';
COMMENT ON COLUMN fence.writer IS 'Raised by every writer that opens; a batch of an earlier one is refused.';
COMMENT ON COLUMN fence.first_seq IS 'First log entry that the sink was given.';
COMMENT ON COLUMN fence.seq IS 'Last log entry that is held, with everything before it; hash is its hash.';
COMMENT ON COLUMN fence.orders IS 'How many orders were written.';
COMMENT ON COLUMN fence.received IS 'Receive time of the last order that is held; written is when its batch was.';
COMMENT ON COLUMN fence.backend IS 'Process of the server that serves the writer.';

-- make_day makes the table of a day. It returns false if there is one. It runs with the rights of the owner, so that the
-- writer needs none to create tables, and gives up after a short wait for readers.
CREATE FUNCTION make_day(day date) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT SET lock_timeout = '2s' SET timezone = 'UTC'
AS $$
DECLARE
    name text := 'orders_' || to_char(day, 'YYYYMMDD');
BEGIN
    PERFORM pg_advisory_xact_lock('orders'::regclass::oid::bigint);
    IF to_regclass(quote_ident(name)) IS NOT NULL THEN
        RETURN false;
    END IF;
    -- Attaching a finished table lets readers and writers of the other days go on.
    EXECUTE format('CREATE TABLE %I (LIKE orders INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)', name);
    EXECUTE format('ALTER TABLE orders ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, day::timestamptz, (day + 1)::timestamptz);
    RETURN true;
END
$$;
REVOKE ALL ON FUNCTION make_day(date) FROM PUBLIC;
COMMENT ON FUNCTION make_day(date) IS 'Makes the table of a day; false if there is one.';

INSERT INTO schema_version (version) VALUES (1);
