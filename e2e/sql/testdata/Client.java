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
        }
        System.out.println("ok");
    }
}
