"""psycopg 3, psycopg2 and SQLAlchemy's reflection against a listener: host, port and number of orders are arguments."""

import sys
from decimal import Decimal

import psycopg
import psycopg2
from sqlalchemy import MetaData, Table, create_engine, func, inspect, select

host, port, orders = sys.argv[1], sys.argv[2], int(sys.argv[3])
dsn = f"host={host} port={port} dbname=grid user=desk sslmode=disable"


def check(got, want):
    assert got == want, f"{got!r}, expected {want!r}"


with psycopg.connect(dsn) as db:
    check(db.execute("select count(*) from orders").fetchone()[0], orders)
    row = db.execute("select seq, clordid, price, received, state from orders where clordid = %s", ("C000001",)).fetchone()
    check([type(v).__name__ for v in row[:2]], ["int", "str"])
    for binary in False, True:
        cur = db.cursor(binary=binary)
        rows = cur.execute("select price from orders where price > %s and symbol = any(%s) order by price, clordid limit %s", (Decimal("125"), ["IBM", "AAPL"], 5)).fetchall()
        assert all(r[0] > 125 for r in rows) and rows, rows
    try:
        db.execute("select nothing from orders")
        raise SystemExit("a column that is not there was answered")
    except psycopg.errors.UndefinedColumn as e:
        check(e.diag.statement_position, "8")
    db.rollback()
    check(db.execute("select 1").fetchone(), (1,))

old = psycopg2.connect(dsn)
cur = old.cursor()
cur.execute("select symbol, count(*) from orders where account in %s group by symbol order by 1", (("ACC1", "ACC2"),))
assert len(cur.fetchall()) > 3
old.close()

for driver in "psycopg", "psycopg2":
    engine = create_engine(f"postgresql+{driver}://desk@{host}:{port}/grid")
    i = inspect(engine)
    check(i.get_table_names(), ["orders"])
    check((i.get_view_names(), i.has_table("orders"), i.has_table("others")), ([], True, False))
    columns = {c["name"]: (str(c["type"]), c["nullable"]) for c in i.get_columns("orders")}
    check((columns["seq"], columns["price"], columns["received"], columns["desk"]), (("BIGINT", False), ("NUMERIC", True), ("TIMESTAMP", False), ("TEXT", True)))
    check((i.get_pk_constraint("orders")["constrained_columns"], i.get_foreign_keys("orders"), i.get_indexes("orders")), ([], [], []))
    check((i.get_unique_constraints("orders"), i.get_check_constraints("orders"), i.get_table_comment("orders")), ([], [], {"text": None}))
    meta = MetaData()
    meta.reflect(bind=engine)
    t = Table("orders", MetaData(), autoload_with=engine)
    check(sorted(c.name for c in meta.tables["orders"].columns), sorted(columns))
    with engine.connect() as c:
        check(c.execute(select(func.count()).select_from(t)).scalar(), orders)
        assert c.execute(select(t.c.clordid, t.c.price).where(t.c.symbol == "IBM", t.c.price.between(1, 1000)).order_by(t.c.clordid).limit(3)).fetchall()
    engine.dispose()
print("ok")
