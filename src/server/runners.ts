import type { MiddlewareHandler } from 'hono';
import * as api from '../api/runners.ts';
import { RUNNER_PROTOCOL_HEADER, RUNNER_VERSION_HEADER } from '../base/runner-protocol.ts';
import { requireRunner, takeReport, type Report } from '../fleet/deployments/runner-reports.ts';
import type { App, AppEnv, Services } from './services.ts';

/** Rejects a report without the token of its deployment. */
export function admitRunner({ tasks }: Services): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const { read } = tasks.storage;
    await requireRunner(read, c.req.param('deployment_id')!, c.var.runner_token!);
    await next();
  };
}

export function addRunners(app: App, { tasks, production }: Services): void {
  app.openapi(api.reportRunner, async (c) => {
    const { deployment_id } = c.req.valid('param');
    const report = c.req.valid('json') as Report;
    const headers = c.req.valid('header');
    const { halt, controls, ...orders } = await takeReport(
      { ...tasks, reportSeconds: production.reportSeconds },
      deployment_id,
      c.var.runner_token!,
      report,
      { version: headers[RUNNER_VERSION_HEADER], protocol: headers[RUNNER_PROTOCOL_HEADER] },
    );
    if (report.ended !== null) tasks.wake();
    const runnerControls = controls as api.RunnerAnswer['controls'];
    return c.json({ ...orders, controls: runnerControls, halt: halt && serializeHalt(halt) }, 200);
  });
}

function serializeHalt({
  halt_id,
  scope,
  reason,
  requested_by: by,
}: NonNullable<Awaited<ReturnType<typeof takeReport>>['halt']>): api.RunnerAnswer['halt'] {
  return { halt_id, scope, reason, by };
}
