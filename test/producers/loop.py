# loop.py COUNT: COUNT orders are rolled back, then COUNT committed, with the functions of etc/producers/python.py.
import importlib.util
import os
import sys

spec = importlib.util.spec_from_file_location("page", os.environ["DQ_TOP"] + "/etc/producers/python.py")
page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(page)

db = page.connect()
count = int(sys.argv[1])
for order in range(1, count + 1):
    with db.cursor() as cursor:
        cursor.execute("INSERT INTO shop_order (id, state) VALUES (%s, 'new')", (order,))
        assert page.dq_add(cursor, "order.cancel-unpaid", f"order-{order}", "undone", 0) > 0
    db.rollback()
with db.cursor() as cursor:
    page.dq_add(cursor, "bytes", None, bytes(range(256)), 0)
db.commit()
for order in range(1, count + 1):
    page.place_order(db, order)
