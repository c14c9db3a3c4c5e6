import { getHealth, getMetrics, getReadiness, getSizes } from '../api/health.ts';
import type { ServiceError } from '../base/errors.ts';
import type { Identity } from '../identity/context.ts';
import { usableSigner } from '../identity/signing-keys.ts';
import { expiryWarnings, SIGN_COMMAND } from '../identity/published-trust.ts';
import { databaseSize } from '../storage/database-size.ts';
import { countEvents, readSizes } from '../storage/table-sizes.ts';
import { tradingHold } from '../storage/database-identity.ts';
import { asServiceError } from './service-error.ts';
import type { App, Services } from './services.ts';

export function addHealth(app: App, { identity, metrics }: Services): void {
  app.openapi(getHealth, (c) => c.json({ status: 'ok' as const }, 200));

  app.openapi(getReadiness, async (c) => {
    const { storage, signer } = identity;
    try {
      if (!(await metrics.process.checkStorage())) return c.json(UNAVAILABLE, 503);
      const fault = await storage.schemaFault();
      if (fault !== undefined) return c.json(outdated(fault), 503);
      const trust = await expiryParts(identity);
      const warnings = trust.filter(({ reason }) => !reason.endsWith('_expired'));
      const missing = [
        ...(await heldTrading(storage)),
        ...(await missingSigner(storage, signer)),
        ...trust.filter((part) => !warnings.includes(part)),
      ];
      const status = missing.length === 0 ? ('ready' as const) : ('degraded' as const);
      return c.json({ status, missing, ...(warnings.length > 0 && { warnings }) }, 200);
    } catch {
      return c.json(UNAVAILABLE, 503);
    }
  });
}

const UNAVAILABLE = {
  status: 'unavailable' as const,
  missing: [{ part: 'storage' as const, detail: 'the database does not respond' }],
};

/** A load balancer must send no requests to a server that cannot use the schema. */
function outdated({ reason }: ServiceError) {
  const detail = 'a newer version has migrated the database; this version cannot use it';
  const missing = [{ part: 'storage' as const, detail, ...(reason !== undefined && { reason }) }];
  return { status: 'unavailable' as const, missing };
}

async function heldTrading({ read }: Identity['storage']) {
  const hold = await tradingHold(read);
  if (hold === undefined) return [];
  const detail = 'trading is blocked until the database is adopted';
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

/** The route is public, so the text reveals nothing else, such as the path of the key. */
function noSigner(reason: string | undefined) {
  const detail =
    reason === 'unsigned_key'
      ? `no leases are issued: the signed keyset lacks the signing key; run \`${SIGN_COMMAND}\` on the machine with the root key`
      : 'no leases are issued';
  return { part: 'signing_key' as const, detail, ...(reason !== undefined && { reason }) };
}

async function expiryParts({ storage, clock }: Identity) {
  const warnings = await expiryWarnings(storage.read, clock());
  return warnings.map((warning) => ({ part: 'trust_root' as const, ...warning }));
}

export function addMetrics(app: App, { metrics }: Services): void {
  app.openapi(getMetrics, async (c) =>
    c.text(await metrics.text(), 200, { 'Content-Type': metrics.contentType }),
  );
}

export function addSizes(app: App, { identity: { storage } }: Services): void {
  app.openapi(getSizes, async (c) => {
    const sizes = await readSizes(storage.read);
    const measured = sizes[0]?.measured_at;
    return c.json(
      {
        database_bytes: (await databaseSize(storage)).total,
        measured_at: measured === undefined ? null : new Date(measured).toISOString(),
        tables: sizes.map(({ name: table, bytes, bytes_per_day }) => ({
          table,
          bytes,
          bytes_per_day,
        })),
        events: await countEvents(storage.read),
      },
      200,
    );
  });
}
