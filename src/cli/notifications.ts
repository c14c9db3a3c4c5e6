import type { Delivery, Rule } from '../api/notifications.ts';
import { formatActor } from '../base/format.ts';
import { formatAmount } from '../base/notifications.ts';
import type { Columns } from './show-items.ts';

export const RULE_COLUMNS: Columns<Rule> = {
  rule: ({ name }) => name,
  condition: ({ condition, amount }) => `${condition} ${formatAmount(condition, amount)}`.trim(),
  bots: ({ bots }) => bots?.map(({ id, slug }) => slug ?? id).join(', ') ?? 'all',
  channel: ({ channel }) => channel,
  by: ({ created_by, created_by_name }) => formatActor(created_by, created_by_name),
  since: ({ created_at }) => created_at,
};

export const DELIVERY_COLUMNS: Columns<Delivery> = {
  created: ({ created_at }) => created_at,
  rule: ({ rule }) => rule,
  channel: ({ channel }) => channel,
  status: ({ status, attempts }) => (attempts > 1 ? `${status} (attempt ${attempts})` : status),
  summary: ({ summary }) => summary,
  error: ({ error }) => error ?? '',
};
