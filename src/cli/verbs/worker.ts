import { parseCountIn } from '../count.ts';
import { runUntilStopped } from '../run-until-stopped.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Does the backtests and paper sessions, and looks after the production deployments, of the servers whose PostgreSQL DATABASE_URL names, beside them and beside any number of other workers. Tasks are claimed in that database, without a queue of its own: what a worker is at that is killed, or not heard of for half a minute, is taken by another. Catalogue and settings must be those of the servers. It answers /healthz, /readyz and /metrics to anybody who reaches its port, and logs which that is. Stops on Ctrl-C or SIGTERM, and gives back what it is at.',
  options: {
    host: {
      value: 'host',
      description: 'where it answers with its health and metrics',
      default: '127.0.0.1',
    },
    port: {
      value: 'port',
      description: 'on which port; 0 takes a free one',
      parse: parseCountIn(0, 65_535),
      default: 0,
    },
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
  examples: ['worker --workers 4', 'worker --catalogue-dir /srv/catalogue --port 8788 --log-json'],
  async run({ settings, io }, _args, { host, port, logJson }) {
    const { startWorker } = await import('../../server/worker.ts');
    const { database, url } = await runUntilStopped(io, logJson, (log) =>
      startWorker(settings, { host, port }, io.env, log),
    );
    return { data: { database, url }, show() {} };
  },
});
