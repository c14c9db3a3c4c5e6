import * as api from '../api/deployments.ts';
import { formatInstant, formatInstantOrNull } from '../api/http.ts';
import { licenseInvalid } from '../gate/decide.ts';
import { deploy } from '../fleet/deployments/deploy.ts';
import {
  diffDeployment,
  planDeployment,
  renderManifests,
} from '../fleet/deployments/plan-deployment.ts';
import { stopDeployment } from '../fleet/deployments/stop-deployment.ts';
import type { ProductionService } from '../fleet/deployments/production-service.ts';
import {
  readProductionStatus,
  type ProductionStatus,
} from '../fleet/deployments/production-status.ts';
import { actorOf } from './authentication.ts';
import type { App, Services } from './services.ts';
import { requireTaskOfBot, startOnce, serializeDeployment, serializeNamedTask } from './tasks.ts';

export function addDeployments(app: App, { tasks, production, gate }: Services): void {
  const { storage, clock } = tasks;
  const { read } = storage;

  app.openapi(api.deployBot, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const { mode = 'apply', replace, reset_losses, ...request } = c.req.valid('json');
    const planned = await planDeployment(production, bot_ref, request);
    if (planned.definition.owner === 'customer') {
      const decision = gate.check('byoc_deployments');
      if (!decision.allowed) throw licenseInvalid('byoc_deployments', decision);
    }
    if (mode === 'render') {
      return c.json({ mode, yaml: await renderManifests(production, planned) }, 200);
    }
    if (mode === 'dry_run') {
      const changes = await diffDeployment(production, planned);
      return c.json(
        { mode, changes: changes.map((one) => ({ ...one, lines: [...one.lines] })) },
        200,
      );
    }
    const start = (service: ProductionService) =>
      deploy(service, actorOf(c), planned, request, { replace, reset_losses });
    return c.json(await startOnce(c, tasks.wake, production, start), 202);
  });
  app.openapi(api.stopDeployment, async (c) => {
    const { bot_ref, task_id } = c.req.valid('param');
    await requireTaskOfBot(read, bot_ref, task_id, `service-local bots deployments ${bot_ref}`);
    const stopped = await stopDeployment(tasks, actorOf(c), task_id, c.req.valid('query').abandon);
    tasks.wake();
    return c.json(await serializeNamedTask(read, stopped), 200);
  });
  app.openapi(api.getProductionDeployment, async (c) => {
    const { bot_ref, deployment_id } = c.req.valid('param');
    return c.json(
      serializeStatus(await readProductionStatus(read, bot_ref, deployment_id), clock()),
      200,
    );
  });
}

function serializeStatus(
  { deployment, runner, cluster_state: state, ...known }: ProductionStatus,
  now: number,
): api.ProductionDeployment {
  const { ended } = runner ?? {};
  return {
    ...serializeDeployment(deployment),
    ...known,
    applied_at: formatInstantOrNull(known.applied_at),
    scaled_down_at: formatInstantOrNull(known.scaled_down_at),
    cluster_state: state && {
      ...state,
      pods: state.pods.map((pod) => ({ ...pod })),
      observed_at: formatInstant(state.observed_at),
    },
    runner: {
      status: runner?.report?.status ?? null,
      denying: runner?.report?.denying ?? null,
      venue: runner?.report?.venue ?? null,
      reported_at: formatInstantOrNull(runner?.reported_at ?? null),
      version: runner?.version ?? null,
      epoch: runner?.epoch ?? 0,
      claimed: runner !== null && runner.claimed_until > now,
      ended: ended
        ? { outcome: ended.outcome, verified: ended.verified, orders: [...ended.orders] }
        : null,
    },
  };
}
