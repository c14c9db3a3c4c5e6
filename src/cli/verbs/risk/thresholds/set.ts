import type { setThreshold } from '../../../../api/risk.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { parseAmount, resolveSubject, SUBJECT_OPTIONS, THRESHOLD_COLUMNS } from '../../../risk.ts';
import { defineVerb } from '../../../verb.ts';

const amount = (description: string) => ({ value: 'n', description, parse: parseAmount }) as const;

export const verb = defineVerb({
  summary: 'set a threshold for all sessions of its subject',
  description:
    'Replaces all values of the subject in the currency. Orders must meet the limits of their bot and the thresholds of all five levels; the strictest applies. The field `attribution` in the spec of a bot specifies its client, trader and desk. Running sessions apply a new threshold within two seconds on paper, and with their next report in production; they cancel orders that violate it. While a client, trader or desk has a threshold, bots without that attribution cannot start, and running ones cannot submit new orders.',
  options: {
    ...SUBJECT_OPTIONS,
    'max-order-value': amount('account currency per order'),
    'max-order-qty': amount('units per order; for instruments only'),
    'max-gross-exposure': amount('account currency; divided among sessions'),
    'max-daily-loss': amount('account currency; divided among sessions'),
    'max-messages': amount('orders and cancels per second; divided among sessions'),
  },
  settings: ['server_url'],
  examples: [
    'risk thresholds set --level firm --currency USD --max-gross-exposure 5000000 --max-daily-loss 50000 --rationale "1 % of capital"',
    'risk thresholds set --level desk --subject index --currency USD --max-order-value 50000 --rationale "as agreed in March"',
  ],
  async run(context, _args, options) {
    const { level, currency, rationale } = options;
    const subject = resolveSubject(level, options.subject);
    const limits = {
      max_order_value: options['max-order-value'],
      max_order_qty: options['max-order-qty'],
      max_gross_exposure: options['max-gross-exposure'],
      max_daily_loss: options['max-daily-loss'],
      max_messages_per_second: options['max-messages'],
    };
    const server = await connect(context);
    const data = await server.call<typeof setThreshold>('put', '/risk/thresholds', {
      body: { level, subject, currency, limits, rationale },
    });
    return { data, show: (out) => showItems(out, [data], THRESHOLD_COLUMNS) };
  },
});
