// pgboss.mjs - pg-boss at the PostgreSQL of $BENCH_PG. Batches of 1,000, of which the handler runs IN_FLIGHT at a time.
// Without a command they are fetched and completed in a loop, which is faster than its own worker.
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { compute, counter, main, shell } from './peer.mjs';

const database = { host: process.env.BENCH_PG, user: 'postgres', database: 'postgres' };
const verb = process.argv[2];
if (verb === 'init') {
  const client = new pg.Client(database);
  await client.connect();
  await client.query('DROP SCHEMA IF EXISTS pgboss CASCADE');
  await client.end();
}
const produces = ['add', 'fill', 'plan'].includes(verb);
const nothingElse = { supervise: false, schedule: false, migrate: false };
const boss = new PgBoss({ ...database, max: 10, ...(produces ? nothingElse : {}) });
boss.on('error', (error) => console.error(error.message));
await boss.start();

async function work(count, inFlight, command) {
  const counts = counter(count, () => {});
  while (!command) {
    counts.begin();
    const jobs = await boss.fetch('bench', { batchSize: 1000 });
    if (!jobs.length) continue;
    jobs.forEach(compute);
    await boss.complete('bench', jobs.map((job) => job.id));
    await counts.end(jobs.length);
  }
  const options = { batchSize: 1000, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true };
  await boss.work('bench', options, async (jobs) => {
    counts.begin();
    const rest = jobs.values();
    const crew = async () => {
      for (const job of rest) await shell(command, job.data.text);
    };
    await Promise.all(Array.from({ length: inFlight }, crew));
    await counts.end(jobs.length);
  });
}

main({
  init: () => boss.createQueue('bench'),
  addOne: (text) => boss.send('bench', { text }),
  addMany: (tasks) => boss.insert('bench', tasks.map(({ text, at }) => ({ data: { text }, startAfter: at }))),
  work,
  close: () => boss.stop({ graceful: false }),
});
