import { parseCountIn } from '../parse-count.ts';
import { runUntilStopped } from '../run-until-stopped.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  summary: 'run the backtests and paper sessions of servers that share a PostgreSQL database',
  description:
    'Runs backtests and paper sessions, and supervises production deployments, for the servers that share the PostgreSQL database in DATABASE_URL. Any number of workers and servers run side by side. Workers claim tasks in that database, without a separate queue; another worker reclaims the tasks of a worker that was killed or has sent no heartbeat for 30 seconds. Catalogue and settings must match those of the servers. The worker serves /healthz, /readyz and /metrics without authentication on a port that it logs. It stops on Ctrl-C or SIGTERM and releases its tasks.',
  options: {
    host: {
      value: 'host',
      description: 'address to serve health and metrics on',
      default: '127.0.0.1',
    },
    port: {
      value: 'port',
      description: 'port for health and metrics; 0 chooses a free one',
      parse: parseCountIn(0, 65_535),
      default: 0,
    },
    logJson: { description: 'log in JSON, one object per line' },
  },
  settings: [
    'catalogue_dir',
    'event_archive_dir',
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
