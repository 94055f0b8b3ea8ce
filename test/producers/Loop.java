// Loop COUNT: COUNT orders that are rolled back, then COUNT that are committed, with the functions of etc/producers/Java.java.
import java.sql.Connection;

public class Loop {
    public static void main(String[] args) throws Exception {
        try (Connection db = Java.connect()) {
            int count = Integer.parseInt(args[0]);
            for (int order = 1; order <= count; order++) {
                Java.run(db, "INSERT INTO shop_order (id, state) VALUES (?, 'new')", order);
                if (Java.dqAdd(db, "order.cancel-unpaid", "order-" + order, "undone".getBytes(), 0) <= 0) {
                    throw new Exception("no id");
                }
                db.rollback();
            }
            byte[] bytes = new byte[256];
            for (int at = 0; at < bytes.length; at++) {
                bytes[at] = (byte) at;
            }
            Java.dqAdd(db, "bytes", null, bytes, 0);
            db.commit();
            for (int order = 1; order <= count; order++) {
                Java.placeOrder(db, order);
            }
        }
    }
}
