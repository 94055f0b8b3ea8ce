// bullmq.mjs - BullMQ at the Redis of $BENCH_REDIS; tasks are removed when they are done. IN_FLIGHT is its concurrency.
import { Queue, Worker } from 'bullmq';
import IORedis from 'ioredis';
import { compute, counter, main, shell } from './peer.mjs';

const connection = new IORedis({ path: process.env.BENCH_REDIS, maxRetriesPerRequest: null });
const queue = new Queue('bench', { connection });
const options = { removeOnComplete: true, removeOnFail: true };

function work(count, concurrency, command) {
  const counts = counter(count, () => worker.close(true));
  const handle = async (job) => {
    counts.begin();
    if (command) await shell(command, job.data.text);
    else compute();
  };
  const worker = new Worker('bench', handle, { connection, concurrency, autorun: false });
  worker.on('completed', () => counts.end());
  worker.run();
}

main({
  init: () => queue.obliterate({ force: true }),
  addOne: (text) => queue.add('task', { text }, options),
  addMany: (tasks) =>
    queue.addBulk(
      tasks.map(({ text, at }) => {
        const timestamp = Date.now();
        return { name: 'task', data: { text }, opts: { ...options, timestamp, delay: Math.max(0, at - timestamp) } };
      }),
    ),
  work,
  close: () => queue.close(),
});
