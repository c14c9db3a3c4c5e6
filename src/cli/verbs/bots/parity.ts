import type { BotParity, compareBot } from '../../../api/replay.ts';
import { ServiceError } from '../../../base/errors.ts';
import { formatCountOf } from '../../../base/format.ts';
import { BOT_ARGUMENT, tamperedError } from '../../bots.ts';
import { parseCount } from '../../parse-count.ts';
import { parseParam } from '../../run-options.ts';
import { showComparison } from '../../show-comparison.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'compare a paper session with a backtest and show the first difference',
  description:
    'Compares a paper session with a backtest of the same version, parameters and window over the current data of the server. Exits with code 0 if they are equal, otherwise with code 1, and prints the first difference, its cause and both sides. A running session is compared up to its last bar.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    run: { value: 'task', description: 'task of the paper session; by default the newest' },
    version: {
      value: 'n',
      description: 'version for the backtest; by default that of the session',
      parse: parseCount,
    },
    param: {
      short: 'p',
      value: 'name=value',
      description: 'parameter for the backtest, which overrides that of the session',
      repeat: true,
      parse: parseParam,
    },
  },
  examples: [
    'bots parity sma-crossover',
    'bots parity sma-crossover --run 019b7d0e-0000-7000-8000-000000000000 --json',
    'bots parity sma-crossover -p fast=20',
  ],
  async run(server, { bot: bot_ref }, { run, version, param }) {
    const path = '/bots/{bot_ref}/parity';
    const parity = await server.call<typeof compareBot>('post', path, {
      params: { bot_ref },
      body: { run_id: run, version, params: Object.fromEntries(param) },
    });
    const { running, against, bars, events, first_difference: difference, fault } = parity;
    return {
      data: parity,
      show(out) {
        if (fault !== null) return;
        const counts = `${formatCountOf(bars, 'bar')}, ${formatCountOf(events, 'order event')}`;
        out.line(
          `${difference === null ? 'Equal' : 'Equal until the first difference'}: ${counts}`,
        );
        if (running) out.line('The session is still running and was compared up to its last bar.');
        if (against === 'recorded_bars') {
          out.line(
            'The catalogue has no bars of a live market, so the backtest used the recorded bars.',
          );
        }
        if (difference === null) return;
        out.line();
        showComparison(out, ['session', 'backtest'], difference.recorded, difference.backtest);
      },
      failure: failureOf(bot_ref, parity),
    };
  },
});

function failureOf(
  bot: string,
  { run_id, fault, first_difference: difference }: BotParity,
): ServiceError | undefined {
  if (fault !== null) return tamperedError(bot, fault);
  if (difference === null) return undefined;
  const { cause, time, detail, seq } = difference;
  const place = seq === null ? time : `${time}, event ${seq}`;
  return new ServiceError(
    'failure',
    `session ${run_id} and its backtest differ at ${place}: ${detail}`,
    {
      reason: cause,
    },
  );
}
