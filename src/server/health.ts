import { getHealth, getReadiness } from '../api/health.ts';
import { ServiceError } from '../errors.ts';
import type { App, Services } from './services.ts';

export function addHealth(app: App, { identity }: Services): void {
  app.openapi(getHealth, (c) => c.json({ status: 'ok' as const }, 200));

  app.openapi(getReadiness, async (c) => {
    const storage = await identity.storage.check().then(
      () => undefined,
      (error: unknown) => error,
    );
    const missing = [
      ...missingPart('storage', storage),
      ...missingPart('signing_key', identity.signer),
    ];
    if (storage !== undefined) return c.json({ status: 'unavailable' as const, missing }, 503);
    const status = missing.length > 0 ? ('degraded' as const) : ('ready' as const);
    return c.json({ status, missing }, 200);
  });
}

function missingPart<P extends string>(part: P, why: unknown) {
  if (!(why instanceof ServiceError)) return [];
  const { message, remedy } = why;
  return [{ part, detail: message, ...(remedy !== undefined && { remedy }) }];
}

export function addMetrics(app: App, { metrics }: Services): void {
  app.get('/metrics', async (c) =>
    c.body(await metrics.text(), 200, { 'Content-Type': metrics.contentType }),
  );
}
