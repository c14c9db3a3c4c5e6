import { runUntilStopped } from '../run-until-stopped.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Does the backtests and paper sessions, and looks after the production deployments, of the servers whose PostgreSQL DATABASE_URL names, beside them and beside any number of other workers. Tasks are claimed in that database, without a queue of its own: what a worker is at that is killed, or not heard of for half a minute, is taken by another. Catalogue and settings must be those of the servers. Stops on Ctrl-C or SIGTERM, and gives back what it is at.',
  options: {
    logJson: { description: 'log JSON, one object a line' },
  },
  settings: [
    'catalogue_dir',
    'exchanges_file',
    'clusters_file',
    'workers',
    'paper_sessions',
    'production_deployments',
    'strategy_timeout_seconds',
    'custom_code',
    'custom_code_memory_mb',
  ],
  examples: ['worker --workers 4', 'worker --catalogue-dir /srv/catalogue --log-json'],
  async run({ settings, io }, _args, { logJson }) {
    const { startWorker } = await import('../../server/work.ts');
    const { database } = await runUntilStopped(io, logJson, (log) =>
      startWorker(settings, io.env, log),
    );
    return { data: { database }, show() {} };
  },
});
