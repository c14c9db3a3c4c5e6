/** What the verbs `identity customers|plans|contracts|installations …` have in common. */
import type { Contract, Customer, Installation, Plan } from '../api/registry.ts';
import { ServiceError } from '../base/errors.ts';
import { NO_VALUE } from '../base/format.ts';
import { BINDINGS } from '../lease/claims.ts';
import { formatTime, parseTime } from '../lease/time.ts';
import type { Columns } from './show-items.ts';
import { formatSeconds, parseSeconds } from '../base/seconds.ts';
import type { OptionValues } from './verb.ts';

/** Of what is created. */
export const ID_OPTION = {
  value: 'id',
  description: 'what to call it for good; made when absent',
} as const;

/** Of plans and contracts. */
export const CONDITION_OPTIONS = {
  entitlement: {
    value: 'name',
    description: 'a feature such as live_trading; repeat it for several',
    repeat: true,
  },
  ttl: {
    value: 'length',
    description: 'how long leases last: 7d, 12h, or default',
    parse: parseCondition,
  },
  grace: {
    value: 'length',
    description: 'how long they then still work: 3d, 0s, or default',
    parse: parseCondition,
  },
} as const;

/** Of plans. */
export const PURPOSE_OPTIONS = {
  product: {
    value: 'name',
    description:
      'the product that its leases license (default: the setting license_product of the server)',
    parse: (text: string): string | null => (text === 'default' ? null : text),
  },
  binding: {
    value: 'what',
    description: 'what its leases are bound to: nothing, the key of the device, or the machine',
    choices: BINDINGS,
  },
} as const;

/** Null for what others decide. */
function parseCondition(text: string): number | null {
  return text === 'default' ? null : parseSeconds(text);
}

/** The options as the server takes them: those that were given. */
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

export const NO_ENTITLEMENTS_OPTION = { description: 'take all of its entitlements away' } as const;

/**
 * The same of a change, in which the entitlements given take the place of those before.
 * @throws ServiceError `usage` when nothing is to change, or one thing in two ways.
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
  throw new ServiceError('usage', 'nothing is said of what to change', {
    remedy: 'Give at least one option; see --help.',
  });
}

/**
 * A time as the server takes it.
 * @throws ServiceError `usage`
 */
export function parseEnd(text: string): string {
  if (parseTime(text) !== undefined) return text;
  throw new ServiceError('usage', `'${text}' is no time`, {
    remedy: 'Write it as 2027-01-01T00:00:00Z.',
  });
}

/** The same, or `now`. */
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

/** @param other who decides on what is not said. */
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
