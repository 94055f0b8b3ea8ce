// peer.mjs - what the queues of Node have in common; a queue's file says how it adds and works.
//
// usage: node QUEUE.mjs init | fill COUNT | plan | add | drain COUNT IN_FLIGHT [COMMAND] | serve IN_FLIGHT COMMAND
// As ../peers describes them.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export const body = '12345678901234567890';
const now = () => performance.timeOrigin + performance.now();

// A shell for one task, with this text as its standard input.
export const shell = (command, text) =>
  new Promise((resolve) => {
    const child = spawn('/bin/sh', ['-c', command], { stdio: ['pipe', 'ignore', 'ignore'] });
    child.stdin.on('error', () => {}); // a command need not read it
    child.stdin.end(text);
    child.on('close', resolve);
  });

// What is done for a task without a command.
const workMs = Number(process.env.BENCH_WORK_MS ?? 0);
export const compute = () => {
  if (workMs) for (const until = now() + workMs; now() < until; );
};

// Counts what is done and, after `count`, prints when the first task began and when the last one ended.
export const counter = (count, stop) => {
  let first = 0;
  let done = 0;
  return {
    begin: () => (first ||= now()),
    end: async (n = 1) => {
      done += n;
      if (done < count || !count) return;
      const last = now();
      count = 0;
      console.log(`${first / 1000} ${last / 1000} ${done}`);
      await stop();
      process.exit(0);
    },
  };
};

// Planned instants from standard input, microseconds, a line each, as they are.
async function planned() {
  const list = [];
  for await (const line of createInterface({ input: process.stdin })) list.push(line);
  return list;
}

function* slices(list, size) {
  for (let i = 0; i < list.length; i += size) yield list.slice(i, i + size);
}

// queue: { init(), addMany([{ text, at }]), addOne(text), work(count, inFlight, command), close() }
export async function main(queue) {
  const [verb, ...args] = process.argv.slice(2);
  if (verb === 'init') await queue.init();
  else if (verb === 'add') await queue.addOne(body);
  else if (verb === 'fill' || verb === 'plan') {
    const list =
      verb === 'plan'
        ? (await planned()).map((text) => ({ text, at: new Date(Number(text) / 1000) }))
        : Array.from({ length: Number(args[0]) }, () => ({ text: body, at: new Date() }));
    for (const part of slices(list, 1000)) await queue.addMany(part);
  } else if (verb === 'drain') return queue.work(Number(args[0]), Number(args[1]), args[2]);
  else if (verb === 'serve') return queue.work(0, Number(args[0]), args[1]);
  else {
    console.error(`what is "${verb}"?`);
    process.exit(64);
  }
  await queue.close();
  process.exit(0);
}
