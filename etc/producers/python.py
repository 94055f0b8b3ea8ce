# Adds tasks in the application's own transaction, with PyMySQL (Debian: python3-pymysql). MySQLdb and mysql-connector are alike.
# python3 python.py ORDER   places an order;  python3 python.py ORDER paid   pays it
import os
import sys

import pymysql


def dq_add(cursor, tag, key, body, delay_ms):
    """Adds a task to the open transaction and returns its id. key None: without one; a live task with that key is kept."""
    cursor.execute("CALL dq_add(%s, %s, %s, %s, @dq_id)", (tag, key, body, delay_ms))
    cursor.execute("SELECT @dq_id")
    return cursor.fetchone()[0]


def dq_cancel_key(cursor, tag, key):
    """Cancels the pending or running task with that key. 1, or 0 if there is none."""
    cursor.execute("CALL dq_cancel_key(%s, %s, @dq_n)", (tag, key))
    cursor.execute("SELECT @dq_n")
    return cursor.fetchone()[0]


def connect():
    return pymysql.connect(
        unix_socket=os.environ["DB_SOCKET"], user=os.environ["DB_USER"], password=os.environ.get("DB_PASSWORD", ""),
        database=os.environ["DB_NAME"], charset="utf8mb4"
    )  # autocommit is off


def place_order(db, order):
    with db.cursor() as cursor:
        cursor.execute("INSERT INTO shop_order (id, state) VALUES (%s, 'new')", (order,))
        dq_add(cursor, "order.cancel-unpaid", f"order-{order}", str(order), 30 * 60 * 1000)
    db.commit()


def pay_order(db, order):
    with db.cursor() as cursor:
        cursor.execute("UPDATE shop_order SET state = 'paid' WHERE id = %s", (order,))
        dq_cancel_key(cursor, "order.cancel-unpaid", f"order-{order}")
    db.commit()


if __name__ == "__main__":
    db = connect()
    try:
        (pay_order if "paid" in sys.argv else place_order)(db, int(sys.argv[1]))
    except Exception:
        db.rollback()  # neither an order nor a task
        raise
