// loop.js COUNT: COUNT orders that are rolled back, then COUNT that are committed, with the functions of etc/producers/node.js.
const page = require(`${process.env.DQ_TOP}/etc/producers/node.js`);

(async () => {
  const db = await page.connect();
  const count = Number(process.argv[2]);
  for (let order = 1; order <= count; order++) {
    await db.beginTransaction();
    await db.query("INSERT INTO shop_order (id, state) VALUES (?, 'new')", [order]);
    if (!(await page.dqAdd(db, 'order.cancel-unpaid', `order-${order}`, 'undone', 0) > 0)) process.exit(1);
    await db.rollback();
  }
  await page.dqAdd(db, 'bytes', null, Buffer.from([...Array(256).keys()]), 0);
  for (let order = 1; order <= count; order++) await page.placeOrder(db, order);
  await db.end();
})();
