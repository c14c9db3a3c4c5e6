import { setImmediate } from 'node:timers/promises';
import * as api from '../api/administrators.ts';
import { formatInstant, formatInstantOrNull } from '../api/http.ts';
import { ServiceError } from '../base/errors.ts';
import { withNames } from '../identity/actor-names.ts';
import { readAudit, searchAudit, verifyWholeAudit } from '../identity/audit.ts';
import { grantStepUp, type StepUpRequest } from '../identity/step-up.ts';
import {
  createToken,
  getToken,
  listTokens,
  revokeToken,
  type TokenState,
} from '../identity/tokens.ts';
import { clientNetwork } from './client-address.ts';
import type { App, Services } from './services.ts';

export function addAdministrators(app: App, services: Services): void {
  const { identity, origins } = services;
  const { read } = identity.storage;

  app.openapi(api.createToken, async (c) => {
    const { administrator: name, password, code, ...terms } = c.req.valid('json');
    const { deployment_ids = null, customer_id = null, max_ttl_seconds = null } = terms;
    const narrowing = { deployment_ids, customer_id, max_ttl_seconds };
    const { token, ...state } = await createToken(
      identity,
      { name, password, code, network: clientNetwork(c, services) },
      { ...terms, narrowing },
    );
    return c.json({ ...serializeToken(state), token }, 201);
  });
  app.openapi(api.listTokens, async (c) => {
    const page = await listTokens(read, c.get('caller')!, c.req.valid('query'));
    return c.json({ ...page, items: page.items.map(serializeToken) }, 200);
  });
  app.openapi(api.getOwnToken, async (c) => {
    const caller = c.get('caller')!;
    if ('token_id' in caller)
      return c.json(serializeToken(await getToken(read, caller.token_id)), 200);
    throw new ServiceError(
      'not_found',
      'the request has no token, because it was sent in a login session',
      {
        remedy: 'Use GET /identity/account instead.',
      },
    );
  });
  app.openapi(api.revokeToken, async (c) => {
    const { token_id } = c.req.valid('param');
    const caller = c.get('caller')!;
    return c.json(serializeToken(await revokeToken(identity, caller, token_id)), 200);
  });

  app.openapi(api.createStepUp, async (c) => {
    const granted = await grantStepUp(
      identity,
      c.get('caller')!,
      { ...(c.req.valid('json') as StepUpRequest), network: clientNetwork(c, services) },
      origins,
    );
    return c.json({ ...granted, expires_at: formatInstant(granted.expires_at) }, 201);
  });

  app.openapi(api.listAudit, async (c) => {
    const { after_seq, limit } = c.req.valid('query');
    const { entries, head } = await readAudit(read, after_seq, limit + 1);
    const items = await withNames(read, entries.slice(0, limit), 'actor');
    const next_cursor = entries.length > limit ? String(items.at(-1)!.seq) : null;
    return c.json({ items, next_cursor, head }, 200);
  });
  app.openapi(api.searchAudit, async (c) => {
    const { before_seq, limit, from, to, ...rest } = c.req.valid('query');
    const ms = (instant: string | undefined) =>
      instant === undefined ? undefined : Date.parse(instant);
    const filter = { ...rest, from: ms(from), to: ms(to) };
    const { entries, head } = await searchAudit(read, filter, before_seq, limit + 1);
    const items = await withNames(read, entries.slice(0, limit), 'actor');
    const next_cursor = entries.length > limit ? String(items.at(-1)!.seq) : null;
    return c.json({ items, next_cursor, head }, 200);
  });
  app.openapi(api.verifyAudit, async (c) => {
    const { last, fault } = await verifyWholeAudit(async (after) => {
      // Lets the process handle other requests in between.
      await setImmediate();
      return readAudit(read, after, VERIFIED_AT_ONCE);
    });
    return c.json({ verified: last.seq, head: last, fault: fault ?? null }, 200);
  });
}

/** Small enough that hashing one batch takes only milliseconds. */
const VERIFIED_AT_ONCE = 500;

function serializeToken({ narrowing, ...state }: TokenState) {
  const { deployment_ids } = narrowing;
  return {
    ...state,
    scopes: [...state.scopes],
    created_at: formatInstant(state.created_at),
    expires_at: formatInstantOrNull(state.expires_at),
    revoked_at: formatInstantOrNull(state.revoked_at),
    ...narrowing,
    deployment_ids: deployment_ids && [...deployment_ids],
  };
}
