import java.math.BigDecimal;
import java.sql.*;

/** pgjdbc against a listener: data, cursors by fetch size, metadata, errors. */
public class Client {
    static int count(ResultSet r) throws SQLException {
        int n = 0;
        while (r.next()) n++;
        r.close();
        return n;
    }

    static void check(Object got, Object want) {
        if (!got.equals(want)) throw new AssertionError(got + ", expected " + want);
    }

    public static void main(String[] args) throws Exception {
        int orders = Integer.parseInt(args[1]);
        try (Connection c = DriverManager.getConnection(args[0])) {
            DatabaseMetaData m = c.getMetaData();
            check(count(m.getTables(null, null, "%", new String[] {"TABLE"})), 1);
            check(count(m.getTables(null, "public", "others", null)), 0);
            check(count(m.getColumns(null, "public", "orders", "%")), 16);
            check(count(m.getColumns(null, "public", "orders", "pri%")), 1);
            check(count(m.getPrimaryKeys(null, "public", "orders")), 0);
            check(count(m.getIndexInfo(null, "public", "orders", false, false)), 0);
            check(count(m.getImportedKeys(null, "public", "orders")), 0);
            check(count(m.getSchemas()), 3);
            check(c.getSchema(), "public");
            PreparedStatement s = c.prepareStatement("select price, seq, received, clordid from orders where price > ? and seq < ? and symbol = ? order by price, clordid");
            for (int i = 0; i < 8; i++) { // from the fifth time on a prepared statement, with binary answers
                s.setBigDecimal(1, new BigDecimal("1.5"));
                s.setLong(2, 1000);
                s.setString(3, "IBM");
                ResultSet r = s.executeQuery();
                if (!r.next() || r.getBigDecimal(1).compareTo(new BigDecimal("1.5")) <= 0 || r.getTimestamp(3).getTime() <= 0) throw new AssertionError("row");
                check(r.getMetaData().getColumnTypeName(1), "numeric");
                check(r.getMetaData().isNullable(4), ResultSetMetaData.columnNoNulls);
            }
            c.setAutoCommit(false);
            Statement all = c.createStatement();
            all.setFetchSize(100);
            check(count(all.executeQuery("select * from orders")), orders);
            c.commit();
            try {
                all.executeQuery("select * from orders where price = symbol");
                throw new AssertionError("columns of two types were compared");
            } catch (SQLException e) {
                check(e.getSQLState(), "0A000");
            }
            c.rollback();
            check(count(all.executeQuery("select 1")), 1);
            try {
                all.executeUpdate("insert into regions.positions values ('jdbc', '1')");
                throw new AssertionError("a change in a transaction block");
            } catch (SQLException e) {
                check(e.getSQLState(), "25001");
            }
            c.rollback();
            c.setAutoCommit(true);
            PreparedStatement put = c.prepareStatement("insert into regions.positions (key, value) values (?, ?)");
            for (int i = 0; i < 8; i++) {
                put.setString(1, "jdbc" + i);
                put.setString(2, "{\"qty\": " + i + "}");
                check(put.executeUpdate(), 1);
            }
            try {
                put.executeUpdate();
                throw new AssertionError("a key that is there was inserted");
            } catch (SQLException e) {
                check(e.getSQLState(), "23505");
            }
            put.addBatch();
            put.setString(1, "batch");
            put.addBatch();
            try { // of a batch PostgreSQL would undo the first one if the second fails
                put.executeBatch();
                throw new AssertionError("a batch was made");
            } catch (BatchUpdateException e) {
                check(e.getSQLState(), "25001");
            }
            check(count(all.executeQuery("select key from regions.positions where key = 'batch'")), 0);
            PreparedStatement set = c.prepareStatement("update regions.positions set value = ? where key = ? and (value->>'qty')::bigint = ?");
            set.setString(1, "{\"qty\": 70}");
            set.setString(2, "jdbc7");
            set.setLong(3, 7);
            check(set.executeUpdate(), 1);
            check(set.executeUpdate(), 0);
            PreparedStatement take = c.prepareStatement("delete from regions.positions where key = ? returning value");
            for (int i = 0; i < 8; i++) {
                take.setString(1, "jdbc" + i);
                ResultSet taken = take.executeQuery();
                if (!taken.next()) throw new AssertionError("jdbc" + i + " is not there");
                check(taken.getString(1), "{\"qty\": " + (i == 7 ? 70 : i) + "}");
            }
            all.execute("set session characteristics as transaction read only");
            try {
                put.executeUpdate();
                throw new AssertionError("a change of a connection for reading");
            } catch (SQLException e) {
                check(e.getSQLState(), "25006");
            }
        }
        System.out.println("ok");
    }
}
