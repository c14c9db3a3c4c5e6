import { getHealth, getMetrics, getReadiness } from '../api/health.ts';
import { ServiceError } from '../errors.ts';
import type { App, Services } from './services.ts';

export function addHealth(app: App, { identity }: Services): void {
  app.openapi(getHealth, (c) => c.json({ status: 'ok' as const }, 200));

  app.openapi(getReadiness, async (c) => {
    const { storage, signer } = identity;
    const missing = signer instanceof ServiceError ? [noSigner(signer)] : [];
    try {
      await storage.check();
    } catch {
      const part = { part: 'storage' as const, detail: 'the database does not answer' };
      return c.json({ status: 'unavailable' as const, missing: [part, ...missing] }, 503);
    }
    const status = missing.length > 0 ? ('degraded' as const) : ('ready' as const);
    return c.json({ status, missing }, 200);
  });
}

/** Anybody may ask, so it does not say more, such as the path of the key. */
function noSigner({ reason }: ServiceError) {
  const part = { part: 'signing_key' as const, detail: 'no leases are issued' };
  return { ...part, ...(reason !== undefined && { reason }) };
}

export function addMetrics(app: App, { metrics }: Services): void {
  app.openapi(getMetrics, async (c) =>
    c.text(await metrics.text(), 200, { 'Content-Type': metrics.contentType }),
  );
}
