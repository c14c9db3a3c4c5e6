/**
 * One rule for every change of the registry: a change that gives a customer more than before needs a
 * fresh second factor, as revoking does. Narrowing does not. A stolen token alone can therefore not
 * extend a contract, add a feature or undo a revocation.
 */
import { ServiceError } from '../base/errors.ts';
import { BINDINGS, type Binding } from '../lease/claims.ts';
import { formatTime } from '../lease/time.ts';
import { formatSeconds } from '../base/seconds.ts';
import type { Db } from '../storage/tables.ts';
import type { Actor } from './audit.ts';
import type { LeasePurpose } from './binding.ts';
import type { LeasePolicy } from './context.ts';
import { entitlementSet, type Conditions } from './registry.ts';
import { consumeStepUp } from './step-up.ts';
import { checkCaller, callerDetails, type Caller } from './tokens.ts';

export const GIVE_ACTION = 'identity.license.give';

/**
 * An administrator with an optional step-up, or a program on the server's machine, which needs no
 * step-up.
 */
export type Registrar =
  | Extract<Actor, 'operator' | 'server'>
  | { readonly caller: Caller; readonly step_up_token: string | undefined };

/** Bounds of the next lease of an installation. */
export interface Grant {
  readonly entitlements: readonly string[];
  readonly ttl_seconds: number;
  readonly grace_period_seconds: number;
  /** Milliseconds since the Unix epoch; absent for a plan, which has no end. */
  readonly ends_at?: number;
  readonly product: string;
  readonly binding: Binding;
}

export function grantOfPlan(policy: LeasePolicy, plan: Conditions & LeasePurpose): Grant {
  const ttl = plan.ttl_seconds ?? policy.ttl_seconds;
  const grace = plan.grace_period_seconds ?? policy.grace_period_seconds;
  return {
    entitlements: entitlementSet(plan.entitlements),
    ttl_seconds: Math.min(ttl, policy.ttl_max_seconds),
    grace_period_seconds: Math.min(grace, policy.grace_period_max_seconds),
    product: plan.product ?? policy.product,
    binding: plan.binding,
  };
}

export function grantOfContract(
  policy: LeasePolicy,
  contract: Conditions & { readonly ends_at: number },
  plan: Conditions & LeasePurpose,
): Grant {
  const grant = grantOfPlan(policy, {
    ...plan,
    entitlements: [...plan.entitlements, ...contract.entitlements],
    ttl_seconds: contract.ttl_seconds ?? plan.ttl_seconds,
    grace_period_seconds: contract.grace_period_seconds ?? plan.grace_period_seconds,
  });
  return { ...grant, ends_at: contract.ends_at };
}

/**
 * Returns phrases that name what `after` gives beyond `before`; none if it gives the same or less.
 * @param before undefined for a new grant.
 */
export function listGains(before: Grant | undefined, after: Grant): readonly string[] {
  const had = new Set(before?.entitlements);
  const added = after.entitlements.filter((name) => !had.has(name));
  const { ends_at } = after;
  return [
    ...(added.length > 0 ? [`adds ${added.join(', ')}`] : []),
    ...(ends_at !== undefined && ends_at > (before?.ends_at ?? 0)
      ? [`ends at ${formatTime(ends_at)}`]
      : []),
    ...(before && after.ttl_seconds > before.ttl_seconds
      ? [`raises the TTL of leases to ${formatSeconds(after.ttl_seconds)}`]
      : []),
    ...(before && after.grace_period_seconds > before.grace_period_seconds
      ? [`raises their grace period to ${formatSeconds(after.grace_period_seconds)}`]
      : []),
    ...(before && after.product !== before.product
      ? [`licenses the product ${after.product}`]
      : []),
    ...(before && BINDINGS.indexOf(after.binding) < BINDINGS.indexOf(before.binding)
      ? [`loosens the binding to ${after.binding}`]
      : []),
  ];
}

export function registrarActor(by: Registrar): Actor {
  return typeof by === 'string' ? by : `administrator:${by.caller.administrator_id}`;
}

/** Details for the audit log: the credential with which the registrar acted. */
export function registrarDetails(by: Registrar): object {
  return typeof by === 'string' ? {} : callerDetails(by.caller);
}

/**
 * Uses up the step-up of a change that gives more, in the write of the change.
 *
 * @param target `contract:ID`, `plan:ID`, `deployment:ID`, or `customer:ID` for a new contract.
 * @param gained see `listGains`.
 * @throws ServiceError `step_up_required`; `not_authenticated` for a caller whose access has ended.
 */
export async function authorizeGain(
  tx: Db,
  now: number,
  by: Registrar,
  target: string,
  gained: readonly string[],
): Promise<void> {
  if (typeof by === 'string') return;
  const { caller, step_up_token } = by;
  await checkCaller(tx, now, caller);
  if (gained.length === 0) return;
  if (step_up_token === undefined) {
    throw new ServiceError(
      'step_up_required',
      `this change requires a step-up, because it ${gained.join(', ')}`,
      {
        reason: 'missing',
        remedy: `Get a step-up for ${GIVE_ACTION} and ${target} with POST /identity/step-ups.`,
      },
    );
  }
  await consumeStepUp(tx, now, caller.administrator_id, step_up_token, GIVE_ACTION, target);
}
