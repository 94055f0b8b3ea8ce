// graphile.mjs - graphile-worker at the PostgreSQL of $BENCH_PG, which deletes finished tasks. IN_FLIGHT is the number
// of concurrent jobs. Its local queue takes up to 500 jobs per query, and completions are written together.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';
import { compute, counter, main, shell } from './peer.mjs';

const pgPool = new pg.Pool({ host: process.env.BENCH_PG, user: 'postgres', database: 'postgres', max: 10 });
pgPool.on('error', () => {});
const logger = new Logger(() => () => {});
const works = ['drain', 'serve'].includes(process.argv[2]);
const utils = works ? null : await makeWorkerUtils({ pgPool, logger });

async function work(count, concurrentJobs, command) {
  const counts = counter(count, () => runner.stop());
  const task = async ({ text }) => {
    counts.begin();
    if (command) await shell(command, text);
    else compute();
  };
  const worker = {
    concurrentJobs,
    maxPoolSize: 10,
    pollInterval: 50,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  };
  const runner = await run({ pgPool, preset: { worker }, taskList: { task }, logger });
  runner.events.on('job:complete', () => counts.end());
}

main({
  init: async () => {
    await pgPool.query('DROP SCHEMA IF EXISTS graphile_worker CASCADE');
    await utils.migrate();
  },
  addOne: (text) => utils.addJob('task', { text }),
  addMany: (tasks) =>
    utils.addJobs(tasks.map(({ text, at }) => ({ identifier: 'task', payload: { text }, runAt: at }))),
  work,
  close: () => utils.release(),
});
