/** Shared parts of the verbs `identity customers|plans|contracts|installations …`. */
import type { Contract, Customer, Installation, Plan } from '../api/registry.ts';
import { ServiceError } from '../base/errors.ts';
import { NO_VALUE } from '../base/format.ts';
import { BINDINGS } from '../lease/claims.ts';
import { formatTime, parseTime } from '../lease/time.ts';
import type { Columns } from './show-items.ts';
import { formatSeconds, parseSeconds } from '../base/seconds.ts';
import type { OptionValues } from './verb.ts';

export const ID_OPTION = {
  value: 'id',
  description: 'permanent id; generated if absent',
} as const;

export const CONDITION_OPTIONS = {
  entitlement: {
    value: 'name',
    description: 'a feature such as live_trading; repeat it for several',
    repeat: true,
  },
  ttl: {
    value: 'length',
    description: 'lifetime of leases: 7d, 12h, or default',
    parse: parseCondition,
  },
  grace: {
    value: 'length',
    description: 'grace period of expired leases: 3d, 0s, or default',
    parse: parseCondition,
  },
} as const;

export const PURPOSE_OPTIONS = {
  product: {
    value: 'name',
    description:
      'product that its leases license; default means the server setting license_product',
    parse: (text: string): string | null => (text === 'default' ? null : text),
  },
  binding: {
    value: 'binding',
    description: 'what its leases are bound to: nothing, the device key or the machine',
    choices: BINDINGS,
  },
} as const;

/** Null means that the plan or the server decides. */
function parseCondition(text: string): number | null {
  return text === 'default' ? null : parseSeconds(text);
}

/** Converts the given options to fields of a request. */
export function pickConditions({
  entitlement: entitlements,
  ttl: ttl_seconds,
  grace: grace_period_seconds,
}: OptionValues<typeof CONDITION_OPTIONS>) {
  return {
    ...(entitlements.length > 0 && { entitlements: [...entitlements] }),
    ttl_seconds,
    grace_period_seconds,
  };
}

export const NO_ENTITLEMENTS_OPTION = { description: 'remove all entitlements' } as const;

/**
 * Converts the options of an update, in which given entitlements replace the previous ones.
 * @throws ServiceError `usage` if nothing changes or two options contradict each other
 */
export function pickChanges<T extends object>(
  options: OptionValues<typeof CONDITION_OPTIONS> & { readonly noEntitlements: boolean },
  others: T,
) {
  const conditions = pickConditions(options);
  if (options.noEntitlements && conditions.entitlements) {
    throw new ServiceError('usage', '--entitlement and --no-entitlements exclude each other');
  }
  const changes = { ...others, ...conditions, ...(options.noEntitlements && { entitlements: [] }) };
  if (Object.values(changes).some((value) => value !== undefined)) return changes;
  throw new ServiceError('usage', 'no change was given', {
    remedy: 'Give at least one option; see --help for all of them.',
  });
}

/** @throws ServiceError `usage` */
export function parseEnd(text: string): string {
  if (parseTime(text) !== undefined) return text;
  throw new ServiceError('usage', `'${text}' is not a time`, {
    remedy: 'Write it as 2027-01-01T00:00:00Z.',
  });
}

/** Like `parseEnd`, but also accepts `now`. */
export function parseEndOrNow(text: string): string {
  return text === 'now' ? formatTime(Date.now()) : parseEnd(text);
}

export const CUSTOMER_COLUMNS: Columns<Customer> = {
  customer: ({ customer_id }) => customer_id,
  name: ({ name }) => name,
  created: ({ created_at }) => created_at,
};

export const PLAN_COLUMNS: Columns<Plan> = {
  plan: ({ plan_id }) => plan_id,
  name: ({ name }) => name,
  product: ({ product }) => product ?? 'server default',
  binding: ({ binding }) => binding,
  ...conditionColumns('server'),
};

export const CONTRACT_COLUMNS: Columns<Contract> = {
  contract: ({ contract_id }) => contract_id,
  customer: ({ customer_id }) => customer_id,
  plan: ({ plan_id }) => plan_id,
  ends: ({ ends_at }) => ends_at,
  ...conditionColumns('plan'),
};

export const INSTALLATION_COLUMNS: Columns<Installation> = {
  installation: ({ deployment_id }) => deployment_id,
  contract: ({ contract_id }) => contract_id,
  name: ({ name }) => name,
  created: ({ created_at }) => created_at,
  revoked: ({ revoked_at, revoked_reason }) =>
    revoked_at === null ? NO_VALUE : `${revoked_at} ${revoked_reason}`,
};

/** @param other decides where a condition is absent. */
function conditionColumns(other: 'server' | 'plan'): Columns<Plan | Contract> {
  const named = (entitlements: readonly string[]): string => {
    const own = entitlements.join(' ');
    // A contract adds to the entitlements of its plan.
    if (other === 'plan') return own === '' ? 'as plan' : `as plan, and ${own}`;
    return own || NO_VALUE;
  };
  const length = (seconds: number | null): string =>
    seconds === null ? `as ${other}` : formatSeconds(seconds);
  return {
    ttl: ({ ttl_seconds }) => length(ttl_seconds),
    grace: ({ grace_period_seconds }) => length(grace_period_seconds),
    entitlements: ({ entitlements }) => named(entitlements),
  };
}
