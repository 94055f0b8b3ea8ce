# worker.rb - a process that stays, see dq-handlers(5): keep: 2, run: [/usr/bin/ruby, /srv/worker.rb]. Replace work.
require 'json'
require 'base64'

def work(tag, body)
  puts body
end

$stdout.sync = true
reply = IO.for_fd(Integer(ENV['DQ_REPLY_FD']), 'w')
reply.sync = true
reply.puts '{"ready":true}'
$stdin.set_encoding('UTF-8')    # whatever the locale
$stdin.each_line do |line|
  task = JSON.parse(line)
  answer = { id: task['id'], result: 'done' }
  begin
    work(task['tag'], task['body'] || Base64.decode64(task['body_base64']))
  rescue StandardError, SystemExit => e
    # exit is no failure
    answer.update(result: 'retry', error: e.message.scrub) unless e.is_a?(SystemExit) && e.success?
  end
  reply.puts JSON.generate(answer)
end
