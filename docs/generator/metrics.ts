import { createMetrics } from '../../src/server/metrics.ts';
import { createRunnerMetrics } from '../../src/trading/host/pod/runner-metrics.ts';
import { blocks, code, prose, table } from './markdown.ts';
import type { Page } from './page.ts';

/** Every metric of servers and runners. */
export async function metricsPage(): Promise<Page> {
  // Without a database, a server still exports the names of the figures that it reads from there.
  const storage = {
    check: () => Promise.reject(new Error('no database')),
    connections: () => undefined,
  };
  const server = createMetrics({ storage, clock: Date.now } as never);
  const runner = createRunnerMetrics(() => ({
    bar: undefined,
    report: undefined,
    venue: undefined,
  }));
  const text = blocks(
    '# Metrics',
    'Besides these, every process exports the usual metrics of a Node process.',
    '## Servers and workers',
    '`/metrics` of a server needs a token with the scope `read`; that of a worker needs none. A worker exports only those of tasks, sessions, alerts, the database and the clock. Figures of all workers come from the database, and are the same on each process.',
    metricsTable(await server.text()),
    '## Runners',
    'The pod of a deployment exports these at its port for health checks.',
    metricsTable(await runner.text()),
  );
  server.process.close();
  return { path: 'metrics.md', text };
}

/** @param exported the text for Prometheus. */
function metricsTable(exported: string): string {
  const metrics = exported.matchAll(/^# HELP (service_local_\S+) (.*)\n# TYPE \S+ (\S+)$/gm);
  return table(
    ['metric', 'type', 'meaning'],
    [...metrics].map(([, name, help, type]) => [code(name!), type!, prose(help!)]),
  );
}
