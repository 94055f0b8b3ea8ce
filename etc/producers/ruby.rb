# Adds tasks in the application's own transaction, with mysql2 (Debian: ruby-mysql2).
# ruby ruby.rb ORDER   places an order;  ruby ruby.rb ORDER paid   pays it
require 'mysql2'

# Adds a task to the open transaction and returns its id. key nil: without one; a live task with that key is kept.
def dq_add(db, tag, key, body, delay_ms)
  db.prepare('CALL dq_add(?, ?, ?, ?, @dq_id)').execute(tag, key, body, delay_ms)
  db.query('SELECT @dq_id AS id').first['id']
end

# Cancels the pending or running task with that key. 1, or 0 if there is none.
def dq_cancel_key(db, tag, key)
  db.prepare('CALL dq_cancel_key(?, ?, @dq_n)').execute(tag, key)
  db.query('SELECT @dq_n AS n').first['n']
end

def connect_db
  Mysql2::Client.new(socket: ENV['DB_SOCKET'], username: ENV['DB_USER'], password: ENV['DB_PASSWORD'],
                     database: ENV['DB_NAME'], encoding: 'utf8mb4')
end

def transaction(db)
  db.query('START TRANSACTION')
  yield
  db.query('COMMIT')
rescue StandardError
  db.query('ROLLBACK') # neither an order nor a task
  raise
end

def place_order(db, order)
  transaction(db) do
    db.prepare("INSERT INTO shop_order (id, state) VALUES (?, 'new')").execute(order)
    dq_add(db, 'order.cancel-unpaid', "order-#{order}", order.to_s, 30 * 60 * 1000)
  end
end

def pay_order(db, order)
  transaction(db) do
    db.prepare("UPDATE shop_order SET state = 'paid' WHERE id = ?").execute(order)
    dq_cancel_key(db, 'order.cancel-unpaid', "order-#{order}")
  end
end

if $PROGRAM_NAME == __FILE__
  order, paid = ARGV
  paid ? pay_order(connect_db, order.to_i) : place_order(connect_db, order.to_i)
end
