// dq.mjs - a handler in Node that does for a task what the workers of the other queues do: dq.mjs stay, or dq.mjs for
// a single one.
import { readFileSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { compute } from './peer.mjs';

if (process.argv[2] === 'stay') {
  writeSync(3, '{"ready":true}\n');
  createInterface({ input: process.stdin }).on('line', (line) => {
    compute(JSON.parse(line).body);
    writeSync(3, `{"id":${/"id":(\d+)/.exec(line)[1]},"result":"done"}\n`);
  });
} else {
  readFileSync(0);
  compute();
}
