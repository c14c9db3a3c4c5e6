import type { requestOverride } from '../../../../api/risk.ts';
import { OVERRIDABLE_LIMITS } from '../../../../base/overridable-limits.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { connect } from '../../../connect.ts';
import { parseCount } from '../../../parse-count.ts';
import { showItems } from '../../../show-items.ts';
import { OVERRIDE_COLUMNS, parseAmount } from '../../../risk.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'ask that one order of a bot may pass a limit',
  description:
    'Nothing passes by asking: risk verifies it, another person authorises it, and all three are different. Then one order of the session that is as it says passes these limits, once. No limit is changed, and no halt, latch, lease, permission, loss limit or rate of messages can be passed so.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    symbol: { value: 'symbol', description: 'of the order', required: true },
    side: { value: 'side', description: 'of the order', required: true, choices: ['buy', 'sell'] },
    quantity: {
      value: 'n',
      description: 'units; the order may be for fewer',
      required: true,
      parse: parseAmount,
    },
    'worst-price': { value: 'n', description: 'not worse than that', parse: parseAmount },
    control: {
      value: 'limit',
      description: 'that it may pass; may be given again',
      required: true,
      repeat: true,
      choices: OVERRIDABLE_LIMITS,
    },
    run: { value: 'task', description: 'the session, where there are several' },
    minutes: { value: 'n', description: 'how long it is good', parse: parseCount, default: 15 },
    reason: {
      value: 'text',
      description: 'why; it is kept with the override and in the audit log',
      required: true,
    },
  },
  settings: ['server_url'],
  examples: [
    'bots overrides request paper --symbol SPX --side sell --quantity 500 --control max_order_qty --reason "a client leaves at the close"',
  ],
  async run(context, { bot: bot_ref }, { symbol, side, quantity, control, run, ...rest }) {
    const server = await connect(context);
    const data = await server.call<typeof requestOverride>('post', '/bots/{bot_ref}/overrides', {
      params: { bot_ref },
      body: {
        run_id: run,
        symbol,
        side,
        max_quantity: quantity,
        worst_price: rest['worst-price'] ?? null,
        controls: [...control],
        reason: rest.reason,
        valid_minutes: rest.minutes,
      },
    });
    return { data, show: (out) => showItems(out, [data], OVERRIDE_COLUMNS) };
  },
});
