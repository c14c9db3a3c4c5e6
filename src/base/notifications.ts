/** Names that the database, the API and the commands of notifications share. */

export const NOTIFICATION_CONDITIONS = ['halted', 'error', 'drawdown', 'no_bars', 'lease'] as const;

export type NotificationCondition = (typeof NOTIFICATION_CONDITIONS)[number];

const UNITS: Partial<Readonly<Record<NotificationCondition, string>>> = {
  no_bars: ' s',
  lease: ' h',
};

/** Formats the amount of a rule with its unit; empty for conditions without an amount. */
export function formatAmount(condition: NotificationCondition, amount: number | null): string {
  return amount === null ? '' : `${amount}${UNITS[condition] ?? ''}`;
}

/** `grouped`: another delivery reports it together with others. */
export const DELIVERY_STATUSES = ['pending', 'sent', 'failed', 'grouped'] as const;

export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export const CHANNEL_TYPES = ['webhook', 'email', 'telegram'] as const;
