// worker.js - a process that stays, see dq-handlers(5): keep: 2, run: [/usr/bin/node, /srv/worker.js]. Replace work.
const fs = require('fs');

async function work(tag, body) { console.log(body.toString()); }

const say = (answer) => fs.writeSync(Number(process.env.DQ_REPLY_FD), JSON.stringify(answer) + '\n');
(async () => {
    say({ready: true});
    for await (const line of require('readline').createInterface({input: process.stdin})) {
        const id = /"id":(\d+)/.exec(line)[1], task = JSON.parse(line);    // an id may be above 2^53
        try {
            await work(task.tag, 'body' in task ? Buffer.from(task.body) : Buffer.from(task.body_base64, 'base64'));
            fs.writeSync(Number(process.env.DQ_REPLY_FD), `{"id":${id},"result":"done"}\n`);
        } catch (e) {
            fs.writeSync(Number(process.env.DQ_REPLY_FD), `{"id":${id},"result":"retry","error":${JSON.stringify(String(e && e.message || e))}}\n`);
        }
    }
})();
