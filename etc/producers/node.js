// Adds tasks in the application's own transaction, with mysql2 (npm install mysql2).
// node node.js ORDER   places an order;  node node.js ORDER paid   pays it
const mysql = require('mysql2/promise');

// Adds a task to the open transaction and returns its id. key null: without one; a live task with that key is kept.
async function dqAdd(db, tag, key, body, delayMs) {
  await db.query('CALL dq_add(?, ?, ?, ?, @dq_id)', [tag, key, body, delayMs]);
  const [rows] = await db.query('SELECT @dq_id AS id');
  return rows[0].id;
}

// Cancels the pending or running task with that key. 1, or 0 if there is none.
async function dqCancelKey(db, tag, key) {
  await db.query('CALL dq_cancel_key(?, ?, @dq_n)', [tag, key]);
  const [rows] = await db.query('SELECT @dq_n AS n');
  return rows[0].n;
}

// All statements of a transaction need the same connection: from a pool, take one with getConnection().
function connect() {
  return mysql.createConnection({
    socketPath: process.env.DB_SOCKET, user: process.env.DB_USER, password: process.env.DB_PASSWORD,
    database: process.env.DB_NAME, charset: 'utf8mb4',
  });
}

async function placeOrder(db, order) {
  await db.beginTransaction();
  await db.query("INSERT INTO shop_order (id, state) VALUES (?, 'new')", [order]);
  await dqAdd(db, 'order.cancel-unpaid', `order-${order}`, String(order), 30 * 60 * 1000);
  await db.commit();
}

async function payOrder(db, order) {
  await db.beginTransaction();
  await db.query("UPDATE shop_order SET state = 'paid' WHERE id = ?", [order]);
  await dqCancelKey(db, 'order.cancel-unpaid', `order-${order}`);
  await db.commit();
}

async function main() {
  const [order, paid] = process.argv.slice(2);
  const db = await connect();
  try {
    await (paid ? payOrder : placeOrder)(db, Number(order));
  } catch (error) {
    await db.rollback(); // neither an order nor a task
    throw error;
  } finally {
    await db.end();
  }
}

module.exports = { dqAdd, dqCancelKey, connect, placeOrder };
if (require.main === module) main();
