import { serveProbes, type ProbeServer } from '../../../base/probe-server.ts';
import type { RunnerMetrics } from './runner-metrics.ts';
import type { Missing } from './trade-options.ts';

/**
 * Serves liveness, readiness and metrics of a runner over HTTP.
 *
 * @throws ServiceError `invalid_setting` when it cannot listen there.
 */
export function serveHealth(
  place: { readonly host: string; readonly port: number },
  missing: () => Missing,
  metrics: RunnerMetrics,
): Promise<ProbeServer> {
  return serveProbes(
    place,
    {
      '/livez': () => ({ status: 200, body: { status: 'ok' } }),
      '/readyz': () => {
        const why = missing();
        const isReady = Object.keys(why).length === 0;
        const body = { status: isReady ? 'ready' : 'not_ready', missing: why };
        return { status: isReady ? 200 : 503, body };
      },
      '/metrics': async () => ({
        status: 200,
        body: await metrics.text(),
        contentType: metrics.contentType,
      }),
    },
    'Set another health.port in the configuration; 0 chooses a free port.',
  );
}
