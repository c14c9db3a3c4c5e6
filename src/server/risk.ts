import { formatInstant, formatInstantOrNull } from '../api/http.ts';
import * as api from '../api/risk.ts';
import { withNames } from '../identity/actor-names.ts';
import {
  authorizeOverride,
  listOverrides,
  requestOverride,
  verifyOverride,
  type Override,
} from '../fleet/thresholds/overrides.ts';
import {
  countSharers,
  listThresholds,
  listSessionGroups,
  setThreshold,
  type KnownThreshold,
} from '../fleet/thresholds/thresholds.ts';
import { actorOf } from './authentication.ts';
import { createOnce } from './idempotency.ts';
import { serializePage } from './serialize-page.ts';
import type { App, Services } from './services.ts';

export function addRisk(app: App, { tasks }: Services): void {
  const { read } = tasks.storage;
  const answers = async (all: readonly KnownThreshold[]): Promise<api.Threshold[]> => {
    const groups = await listSessionGroups(read);
    const named = await withNames(read, all, 'set_by');
    return named.map((one) => ({
      ...one,
      set_at: formatInstant(one.set_at),
      sessions: {
        paper: countSharers(one, 'paper', groups),
        production: countSharers(one, 'k8s', groups),
      },
    }));
  };

  app.openapi(api.listThresholds, async (c) => {
    const history = c.req.valid('query').history === 'true';
    const thresholds = await answers(await listThresholds(read, { history }));
    return c.json({ thresholds }, 200);
  });
  app.openapi(api.setThreshold, async (c) => {
    const known = await setThreshold(tasks, actorOf(c), c.req.valid('json'));
    return c.json((await answers([known]))[0]!, 200);
  });
  app.openapi(api.requestOverride, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const request = c.req.valid('json');
    const made = await createOnce(
      c,
      tasks,
      (service) => requestOverride(service, actorOf(c), bot_ref, request),
      serializeOverride,
    );
    return c.json(made, 201);
  });
  app.openapi(api.listOverrides, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const found = await listOverrides(read, bot_ref, c.req.valid('query'), tasks.clock());
    return c.json(serializePage(found, serializeOverride), 200);
  });
  app.openapi(api.verifyOverride, async (c) => {
    const { override_id } = c.req.valid('param');
    const { reason } = c.req.valid('json');
    const done = await verifyOverride(tasks, actorOf(c), override_id, reason);
    return c.json(serializeOverride(done), 200);
  });
  app.openapi(api.authorizeOverride, async (c) => {
    const { override_id } = c.req.valid('param');
    const { reason } = c.req.valid('json');
    const done = await authorizeOverride(tasks, actorOf(c), override_id, reason);
    return c.json(serializeOverride(done), 200);
  });
}

function serializeOverride(override: Override): api.Override {
  return {
    ...override,
    controls: [...override.controls],
    requested_at: formatInstant(override.requested_at),
    expires_at: formatInstant(override.expires_at),
    verified_at: formatInstantOrNull(override.verified_at),
    authorized_at: formatInstantOrNull(override.authorized_at),
    used_at: formatInstantOrNull(override.used_at),
  };
}
