// Adds tasks in the application's own transaction, with JDBC (Debian: default-jdk-headless libmariadb-java).
// java -cp /usr/share/java/mariadb-java-client.jar Java.java ORDER   places an order;  ... ORDER paid   pays it
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;

public class Java {
    /** Adds a task to the open transaction and returns its id. key null: without one; a live task with that key is kept. */
    static long dqAdd(Connection db, String tag, String key, byte[] body, long delayMs) throws SQLException {
        try (CallableStatement call = db.prepareCall("{CALL dq_add(?, ?, ?, ?, ?)}")) {
            call.setString(1, tag);
            call.setString(2, key);
            call.setBytes(3, body);
            call.setLong(4, delayMs);
            call.registerOutParameter(5, Types.BIGINT);
            call.execute();
            return call.getLong(5);
        }
    }

    /** Cancels the pending or running task with that key. 1, or 0 if there is none. */
    static int dqCancelKey(Connection db, String tag, String key) throws SQLException {
        try (CallableStatement call = db.prepareCall("{CALL dq_cancel_key(?, ?, ?)}")) {
            call.setString(1, tag);
            call.setString(2, key);
            call.registerOutParameter(3, Types.INTEGER);
            call.execute();
            return call.getInt(3);
        }
    }

    /** The first login of an account after a start of MySQL needs TLS, or the public key of the server, which is safe only on this
     * host. Elsewhere: DB_OPTIONS='sslMode=verify-full&serverSslCert=/etc/ssl/ca.pem'. */
    static Connection connect() throws SQLException {
        String options = System.getenv().getOrDefault("DB_OPTIONS", "allowPublicKeyRetrieval=true");
        String url = "jdbc:mariadb://" + System.getenv("DB_HOST") + "/" + System.getenv("DB_NAME") + "?" + options;
        Connection db = DriverManager.getConnection(url, System.getenv("DB_USER"), System.getenv("DB_PASSWORD"));
        db.setAutoCommit(false);
        return db;
    }

    static void run(Connection db, String sql, long order) throws SQLException {
        try (PreparedStatement statement = db.prepareStatement(sql)) {
            statement.setLong(1, order);
            statement.executeUpdate();
        }
    }

    static void placeOrder(Connection db, long order) throws SQLException {
        run(db, "INSERT INTO shop_order (id, state) VALUES (?, 'new')", order);
        dqAdd(db, "order.cancel-unpaid", "order-" + order, Long.toString(order).getBytes(), 30 * 60 * 1000);
        db.commit();
    }

    static void payOrder(Connection db, long order) throws SQLException {
        run(db, "UPDATE shop_order SET state = 'paid' WHERE id = ?", order);
        dqCancelKey(db, "order.cancel-unpaid", "order-" + order);
        db.commit();
    }

    public static void main(String[] args) throws SQLException {
        try (Connection db = connect()) {
            try {
                if (args.length > 1) {
                    payOrder(db, Long.parseLong(args[0]));
                } else {
                    placeOrder(db, Long.parseLong(args[0]));
                }
            } catch (SQLException error) {
                db.rollback(); // neither an order nor a task
                throw error;
            }
        }
    }
}
