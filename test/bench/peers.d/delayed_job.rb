# delayed_job.rb - delayed_job, with ActiveRecord, at the MariaDB of $BENCH_SOCKET, a task at a time.
#
# usage: ruby delayed_job.rb init | fill COUNT | plan | add | drain COUNT IN_FLIGHT [COMMAND] | serve IN_FLIGHT COMMAND
# As ../peers describes them, which starts IN_FLIGHT of these processes.
require 'active_record'
require 'delayed_job'
require 'delayed_job_active_record'
require 'logger'
require 'open3'

BODY = '12345678901234567890'.freeze
ActiveRecord::Base.establish_connection(
  adapter: 'mysql2', username: 'dq', socket: ENV.fetch('BENCH_SOCKET'), database: 'dq', pool: 5
)
ActiveRecord::Base.logger = nil
ActiveRecord::Base.default_timezone = :utc
Delayed::Worker.backend = :active_record
Delayed::Worker.logger = Logger.new(nil)
Delayed::Worker.sleep_delay = 0.05

Task = Struct.new(:text) do
  def perform
    $first ||= Time.now.to_f
    Open3.capture2('/bin/sh', '-c', $command, stdin_data: text) if $command
    $last = Time.now.to_f
    $count = $count.to_i + 1
  end
end

def init
  ActiveRecord::Schema.verbose = false
  ActiveRecord::Schema.define do
    drop_table :delayed_jobs, if_exists: true
    create_table :delayed_jobs do |t|
      t.integer :priority, :attempts, default: 0, null: false
      t.text :handler, null: false
      t.text :last_error
      t.datetime :run_at, :locked_at, :failed_at, precision: 6
      t.string :locked_by, :queue
      t.timestamps null: true
    end
    add_index :delayed_jobs, %i[priority run_at], name: 'delayed_jobs_priority'
  end
end

def add(texts, planned)
  texts.each_slice(1000) do |part|
    Delayed::Job.transaction do
      part.each do |text|
        Delayed::Job.enqueue(Task.new(text), run_at: planned ? Time.at(text.to_i / 1_000_000r) : Time.now)
      end
    end
  end
end

verb, *arguments = ARGV
case verb
when 'init' then init
when 'fill' then add([BODY] * arguments[0].to_i, false)
when 'plan' then add($stdin.map(&:chomp), true)
when 'add' then Delayed::Job.enqueue(Task.new(BODY))
when 'drain'
  $command = arguments[2]
  worker = Delayed::Worker.new(quiet: true)
  worker.name = "worker #{$$}"
  nil while worker.work_off(200).sum.positive?
  printf("%<first>.6f %<last>.6f %<count>d\n", first: $first, last: $last, count: $count) if $count
when 'serve'
  $command = arguments[1]
  worker = Delayed::Worker.new(quiet: true)
  worker.name = "worker #{$$}"
  worker.start
else abort "what is #{verb}?"
end
