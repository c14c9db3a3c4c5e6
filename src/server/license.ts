import type { RouteConfig } from '@hono/zod-openapi';
import type { MiddlewareHandler } from 'hono';
import { FEATURE_EXTENSION } from '../api/http.ts';
import { licenseInvalid, type GateStatus } from '../gate/decide.ts';
import { openLicenseGate, type LicenseGate } from '../gate/gate.ts';
import { requireFeature } from '../gate/hono.ts';
import { LEASE_REASONS } from '../lease/reasons.ts';
import { licenseFiles } from '../gate/license-files.ts';
import type { Log } from '../base/log.ts';
import type { Settings } from '../base/settings.ts';
import type { Metrics } from './metrics.ts';
import type { Services } from './services.ts';

/** Opens the gate of this server's own license, and keeps log and metrics up to date with it. */
export async function openOwnGate(
  settings: Settings,
  env: NodeJS.ProcessEnv,
  log: Log,
  metrics: Metrics,
): Promise<LicenseGate> {
  const tell = (status: GateStatus): void => {
    metrics.license.reset();
    metrics.license.set({ state: status.state }, 1);
    logStatus(status, log);
  };
  const gate = await openLicenseGate({
    files: licenseFiles(settings.home, env),
    product: settings.license_product,
    enforced: settings.license_enforcement_enabled || settings.license_registry_enforced,
    onChange: tell,
    warn: (text) => log.warn(text),
  });
  tell(gate.status());
  return gate;
}

function logStatus({ state, reason, lease, refused }: GateStatus, log: Log): void {
  for (const { path, detail } of refused.filter((one) => one.reason !== 'missing')) {
    log.warn(`${path} was rejected: ${detail}`);
  }
  if (lease !== null) {
    const { lease_id, expires_at, grace_ends_at } = lease;
    const text = `license ${lease_id} is valid until ${expires_at}, with a grace period until ${grace_ends_at}`;
    if (reason === null) log.info(text);
    else log.warn(`${text}. ${LEASE_REASONS[reason]}`);
  } else if (state === 'none' && reason === 'missing') {
    // Normal for most servers, because issuing leases needs no license.
    log.debug('this server has no license');
  }
}

/** Middleware that requires a license for the feature of the route, if it has one. */
export function requireLicense(
  route: RouteConfig,
  { gate }: Pick<Services, 'gate'>,
): readonly MiddlewareHandler[] {
  const feature: unknown = route[FEATURE_EXTENSION];
  if (typeof feature !== 'string') return [];
  // Thrown instead of sent, so that the error is logged and counted.
  const refuse = (...refused: Parameters<typeof licenseInvalid>): never => {
    throw licenseInvalid(...refused);
  };
  return [requireFeature((name) => gate.check(name), feature, refuse)];
}
