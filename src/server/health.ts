import { getHealth, getMetrics, getReadiness } from '../api/health.ts';
import type { Identity } from '../identity/context.ts';
import { usableSigner } from '../identity/keys.ts';
import { tradingHold } from '../storage/database-identity.ts';
import { asServiceError } from './failure.ts';
import type { App, Services } from './services.ts';

export function addHealth(app: App, { identity, metrics }: Services): void {
  app.openapi(getHealth, (c) => c.json({ status: 'ok' as const }, 200));

  app.openapi(getReadiness, async (c) => {
    const { storage, signer } = identity;
    try {
      if (!(await metrics.process.askStorage())) return c.json(UNAVAILABLE, 503);
      const missing = [...(await heldTrading(storage)), ...(await missingSigner(storage, signer))];
      const status = missing.length === 0 ? ('ready' as const) : ('degraded' as const);
      return c.json({ status, missing }, 200);
    } catch {
      return c.json(UNAVAILABLE, 503);
    }
  });
}

const UNAVAILABLE = {
  status: 'unavailable' as const,
  missing: [{ part: 'storage' as const, detail: 'the database does not answer' }],
};

async function heldTrading({ read }: Identity['storage']) {
  const hold = await tradingHold(read);
  if (hold === undefined) return [];
  const detail = 'nothing trades by the database until it is adopted';
  return [{ part: 'trading' as const, detail, reason: hold.reason }];
}

async function missingSigner({ read }: Identity['storage'], signer: Identity['signer']) {
  try {
    await usableSigner(read, signer);
    return [];
  } catch (error) {
    const { code, reason } = asServiceError(error);
    if (code !== 'license_lease_unavailable') throw error;
    return [noSigner(reason)];
  }
}

/** Anybody may ask, so it does not say more, such as the path of the key. */
function noSigner(reason: string | undefined) {
  const part = { part: 'signing_key' as const, detail: 'no leases are issued' };
  return { ...part, ...(reason !== undefined && { reason }) };
}

export function addMetrics(app: App, { metrics }: Services): void {
  app.openapi(getMetrics, async (c) =>
    c.text(await metrics.text(), 200, { 'Content-Type': metrics.contentType }),
  );
}
