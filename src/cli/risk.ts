/** What the verbs of thresholds and overrides have in common. */
import type { Override, Threshold } from '../api/risk.ts';
import { ServiceError } from '../base/errors.ts';
import { formatActor } from '../base/format.ts';
import type { Columns } from './show-items.ts';

export const LEVELS = ['client', 'instrument', 'trader', 'desk', 'firm'] as const;

/** Of a threshold: whose it is. */
export const SUBJECT_OPTIONS = {
  level: { value: 'level', description: 'whose it is', required: true, choices: LEVELS },
  subject: {
    value: 'name',
    description: 'who or which; of the firm alone there is one',
  },
  currency: {
    value: 'code',
    description: 'of the accounts that it is for: USD',
    required: true,
  },
  rationale: { value: 'text', description: 'why; it is kept with it', required: true },
} as const;

/** Whose a threshold is. @throws ServiceError `usage` where nobody is named but the firm could be meant. */
export function resolveSubject(
  level: (typeof LEVELS)[number],
  subject: string | undefined,
): string {
  if (subject !== undefined) return subject;
  if (level === 'firm') return 'firm';
  throw new ServiceError('usage', '--subject is missing', {
    remedy: `Say which ${level} it is for: \`--subject NAME\`.`,
  });
}

export const THRESHOLD_COLUMNS: Columns<Threshold> = {
  level: ({ level }) => level,
  subject: ({ subject }) => subject,
  currency: ({ currency }) => currency,
  version: ({ version }) => String(version),
  limits: ({ limits }) =>
    limits === null
      ? 'none any more'
      : Object.entries(limits)
          .map(([name, value]) => `${name} ${value}`)
          .join(', '),
  sessions: ({ sessions: { paper, production } }) => `${paper} on paper, ${production} live`,
  by: ({ set_by, set_by_name }) => formatActor(set_by, set_by_name),
  since: ({ set_at }) => set_at,
};

export const OVERRIDE_COLUMNS: Columns<Override> = {
  override: ({ override_id }) => override_id,
  status: ({ status }) => status,
  order: ({ side, max_quantity, symbol, worst_price }) =>
    `${side} up to ${max_quantity} ${symbol}${worst_price === null ? '' : ` at ${worst_price}`}`,
  passes: ({ controls }) => controls.join(', '),
  reason: ({ reason }) => reason,
  expires: ({ expires_at }) => expires_at,
  'used by order': ({ used_order }) => (used_order === null ? '' : String(used_order)),
};

/** A number above 0. */
export function parseAmount(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value > 0 && value < Infinity) return value;
  throw new ServiceError('usage', `must be a number above 0, not ${text}`);
}
