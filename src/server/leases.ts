import type { Context } from 'hono';
import { formatInstant, formatInstantOrNull } from '../api/http.ts';
import * as api from '../api/leases.ts';
import { ServiceError } from '../base/errors.ts';
import { withNames, type WithNames } from '../identity/actor-names.ts';
import type { CheckedProof } from '../identity/device-proof.ts';
import { issueForRequest, issueLease, previewLease } from '../identity/issue.ts';
import { getLease, listLeases, type LeaseRecord } from '../identity/leases.ts';
import { refuseOutside } from '../identity/narrowing.ts';
import { dryRunRenewal, renewLease, type Renewed } from '../identity/renew-lease.ts';
import {
  previewRevocation,
  revoke,
  type Revocation,
  type RevokeTarget,
} from '../identity/revoke.ts';
import type { Caller } from '../identity/tokens.ts';
import type { App, AppEnv, Services } from './services.ts';

export function addLeases(app: App, { identity, metrics }: Services): void {
  const { storage, clock } = identity;
  const named = (leases: readonly LeaseRecord[]): Promise<NamedLease[]> =>
    withNames(storage.read, leases, 'issued_by', 'revoked_by');

  const counted = ({ body, fresh, warnings }: Renewed, given: typeof metrics.issued): string => {
    (fresh ? given : metrics.repeated).inc();
    if (warnings.some(({ code }) => code === 'credential_cloned')) metrics.clonesSuspected.inc();
    return body;
  };
  const issued = async (caller: Caller, request: api.LeaseRequest): Promise<string> => {
    if (!('deployment_id' in request)) throw wrongCaller('an administrator', 'deployment_id');
    const { offline_request: offline, issue_id, ...wanted } = request;
    if (offline === undefined) {
      const body = await issueLease(identity, caller, { ...wanted, issue_id });
      metrics.issued.inc();
      return body;
    }
    return counted(await issueForRequest(identity, caller, wanted, offline), metrics.issued);
  };
  const renewed = async (proof: CheckedProof, request: api.LeaseRequest): Promise<string> => {
    if (!('renewal_id' in request)) throw wrongCaller('a device', 'renewal_id');
    return counted(await renewLease(identity, proof, request), metrics.renewed);
  };
  app.openapi(api.createLease, async (c) => {
    const request = c.req.valid('json');
    const proof = c.get('device');
    const body = await (proof === undefined
      ? issued(c.get('caller')!, request)
      : renewed(proof, request));
    // Sent as stored, so that a repeated response has the same bytes.
    return c.body(body, 201, { 'Content-Type': 'application/json' }) as never;
  });

  app.openapi(api.dryRunRenewal, async (c) => {
    const request = c.req.valid('json');
    const proof = c.get('device');
    if (proof === undefined && !('deployment_id' in request)) {
      throw wrongCaller('an administrator', 'deployment_id');
    }
    if (proof !== undefined && !('renewal_id' in request)) {
      throw wrongCaller('a device', 'renewal_id');
    }
    const { entitlements, limits, warnings, ...rest } =
      'deployment_id' in request
        ? await previewLease(identity, c.get('caller')!, request)
        : await dryRunRenewal(identity, proof!, request);
    const lists = { entitlements: [...entitlements], limits: [...limits], warnings: [...warnings] };
    return c.json({ ...rest, ...lists }, 200);
  });

  app.openapi(api.listLeases, async (c) => {
    const { limit, cursor, ...filter } = c.req.valid('query');
    const within = c.get('caller')!.narrowing;
    const { items, next_cursor } = await listLeases(
      storage.read,
      clock(),
      { ...filter, within },
      {
        limit,
        cursor,
      },
    );
    return c.json({ items: (await named(items)).map(serializeLease), next_cursor }, 200);
  });

  app.openapi(api.getLease, async (c) => {
    const { lease_id } = c.req.valid('param');
    await refuseOutside(storage.read, c.get('caller')!, { lease_id });
    const [lease] = await named([await getLease(storage.read, clock(), lease_id)]);
    return c.json(serializeLease(lease!), 200);
  });

  const previewed = async (caller: Caller, target: RevokeTarget): Promise<api.Revocation> => {
    await refuseOutside(storage.read, caller, target);
    return serializeRevocation(await previewRevocation(identity, target));
  };
  app.openapi(api.previewLeaseRevocation, async (c) =>
    c.json(await previewed(c.get('caller')!, c.req.valid('param')), 200),
  );
  app.openapi(api.previewInstallationRevocation, async (c) =>
    c.json(await previewed(c.get('caller')!, c.req.valid('param')), 200),
  );

  const revoked = async (
    c: Context<AppEnv>,
    target: RevokeTarget,
    request: { readonly reason: string; readonly confirm: string },
  ): Promise<api.Revoked> => {
    const step_up_token = c.req.header('service-step-up');
    await refuseOutside(storage.read, c.get('caller')!, target);
    const answer = await revoke(identity, c.get('caller')!, target, { ...request, step_up_token });
    return {
      ...answer,
      revoked_at: formatInstant(answer.revoked_at),
      effective_at: formatInstantOrNull(answer.effective_at),
    };
  };
  app.openapi(api.revokeLease, async (c) =>
    c.json(await revoked(c, c.req.valid('param'), c.req.valid('json')), 200),
  );
  app.openapi(api.revokeInstallation, async (c) =>
    c.json(await revoked(c, c.req.valid('param'), c.req.valid('json')), 200),
  );
}

function wrongCaller(who: string, member: string): ServiceError {
  const message = `a request of ${who} must have the member ${member}`;
  return new ServiceError('invalid_request', message, {
    problems: [{ code: 'missing_field', pointer: `/${member}`, message }],
    remedy: 'createLease in /openapi.json describes the request of each caller.',
  });
}

type NamedLease = WithNames<LeaseRecord, 'issued_by' | 'revoked_by'>;

function serializeLease(lease: NamedLease): api.LeaseRecord {
  return {
    ...lease,
    entitlements: [...lease.entitlements],
    issued_at: formatInstant(lease.issued_at),
    expires_at: formatInstant(lease.expires_at),
    grace_ends_at: formatInstant(lease.grace_ends_at),
    revoked_at: formatInstantOrNull(lease.revoked_at),
  };
}

function serializeRevocation({ device_ids, ...revocation }: Revocation): api.Revocation {
  const effective_at = formatInstantOrNull(revocation.effective_at);
  return { ...revocation, device_ids: [...device_ids], effective_at };
}
