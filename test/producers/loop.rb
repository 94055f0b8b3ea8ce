# loop.rb COUNT: COUNT orders that are rolled back, then COUNT that are committed, with the functions of etc/producers/ruby.rb.
load "#{ENV['DQ_TOP']}/etc/producers/ruby.rb"
db = connect_db
1.upto(ARGV[0].to_i) do |order|
  db.query('START TRANSACTION')
  db.prepare("INSERT INTO shop_order (id, state) VALUES (?, 'new')").execute(order)
  exit 1 unless dq_add(db, 'order.cancel-unpaid', "order-#{order}", 'undone', 0) > 0
  db.query('ROLLBACK')
end
dq_add(db, 'bytes', nil, (0..255).to_a.pack('C*'), 0)
1.upto(ARGV[0].to_i) { |order| place_order(db, order) }
