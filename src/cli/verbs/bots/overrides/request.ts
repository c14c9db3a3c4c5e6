import type { requestOverride } from '../../../../api/risk.ts';
import { OVERRIDABLE_LIMITS } from '../../../../base/risk-limits.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { parseCount } from '../../../parse-count.ts';
import { showItems } from '../../../show-items.ts';
import { OVERRIDE_COLUMNS, parseAmount } from '../../../risk.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'request that one order of a bot may pass limits',
  description:
    'Requests an override, which does not take effect until risk verifies it and another person authorizes it. All three people must be different. Then one matching order of the session passes these limits, once. The limits themselves do not change. Halts, latches, leases, permissions, loss limits and message rates cannot be overridden.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    symbol: { value: 'symbol', description: 'symbol of the order', required: true },
    side: {
      value: 'side',
      description: 'side of the order',
      required: true,
      choices: ['buy', 'sell'],
    },
    quantity: {
      value: 'n',
      description: 'maximum quantity of the order',
      required: true,
      parse: parseAmount,
    },
    'worst-price': { value: 'n', description: 'worst price of the order', parse: parseAmount },
    control: {
      value: 'limit',
      description: 'limit that the order may pass; repeat it for several',
      required: true,
      repeat: true,
      choices: OVERRIDABLE_LIMITS,
    },
    run: { value: 'task', description: 'task of the session; required if the bot has several' },
    minutes: {
      value: 'n',
      description: 'how long the override is valid',
      parse: parseCount,
      default: 15,
    },
    reason: {
      value: 'text',
      description: 'why; recorded with the override and in the audit log',
      required: true,
    },
  },
  examples: [
    'bots overrides request paper --symbol SPX --side sell --quantity 500 --control max_order_qty --reason "a client leaves at the close"',
  ],
  async run(server, { bot: bot_ref }, { symbol, side, quantity, control, run, ...rest }) {
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
