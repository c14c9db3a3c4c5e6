/** Changes to a bot that apply only within a stress test. */
import { engineConfig, type BotSpec } from '../../bots/spec.ts';
import type { TriedBot } from '../conformance/tried-session.ts';
import type { Plan } from './stress-plan.ts';
import { findBurst } from './load-schedule.ts';
import { sum } from './samples.ts';

export interface Changed {
  readonly tried: TriedBot;
  /** Every difference from production. */
  readonly changes: readonly string[];
}

/** Upper bound of prices in the test, in units of the currency. */
const HIGHEST_PRICE = 100;
/** Largest multiple of the target that the search for the headroom may reach. */
const BEYOND = 2 ** 5;

/**
 * Removes the limits on message rates and, with `latch` `lifted`, on repeated executions. Adds enough cash
 * that no other limit restricts the load.
 */
export function lift({ tried, changes }: Changed, plan: Plan, latch: 'lifted' | 'kept'): Changed {
  const { spec } = tried.bot;
  const { cash, risk } = engineConfig(spec);
  const factor = Math.max(
    1,
    Math.ceil((2 * findValue(plan)) / (cash * Math.min(1, risk.max_position_pct))),
  );
  const lifted = [
    'messages_kept_for_cancels',
    ...(latch === 'lifted' ? ['repeated_execution'] : []),
  ];
  const limits = Object.entries(spec.spec.risk ?? {});
  const unlimited = 'lifted only in the second pass of a stress test';
  return {
    tried: changeSpec(tried, {
      engine: { ...spec.spec.engine, cash: String(cash * factor) },
      risk: {
        ...Object.fromEntries(limits.filter(([name]) => !lifted.includes(name))),
        max_messages_per_second: { unlimited },
      },
    }),
    changes: [
      ...changes,
      'max_messages_per_second',
      ...lifted.filter((name) => limits.some(([limit]) => limit === name)),
      ...(factor === 1 ? [] : [`cash: ${factor} times as much`]),
    ],
  };
}

/** Returns the largest value that the test may trade within a minute. */
function findValue(plan: Plan): number {
  const amountOf = (measure: string): number =>
    sum(
      plan.volume.filter((one) => one.measure === measure && one.window_s !== 86_400),
      ({ amount }) => amount,
    );
  return Math.max(
    findBurst(plan) * BEYOND * HIGHEST_PRICE,
    amountOf('value'),
    amountOf('quantity') * HIGHEST_PRICE,
  );
}

/** Adds the instruments of all bots, so that the load of the firm keeps its mix of instruments. */
export function widen(tried: TriedBot, plan: Plan): Changed {
  const { universe, risk = {} } = tried.bot.spec.spec;
  const { length } = universe.symbols;
  const traded = [
    ...plan.messages.flatMap(({ mix }) => mix.map(({ instrument }) => instrument)),
    ...plan.volume.map(({ measure, of }) => (measure === 'quantity' ? (of ?? '') : '')),
  ];
  const symbols = [...new Set([...universe.symbols, ...traded])].filter(Boolean);
  if (symbols.length === length) return { tried, changes: [] };
  const widened = {
    ...(risk.max_instruments !== undefined && { max_instruments: symbols.length }),
    ...(risk.permitted !== undefined && { permitted: { instruments: symbols } }),
  };
  return {
    tried: changeSpec(tried, {
      universe: { ...universe, symbols },
      risk: { ...risk, ...widened },
    }),
    changes: [
      `universe: the ${symbols.length} instruments of all bots, including ${length} of this bot`,
      ...Object.keys(widened),
    ],
  };
}

function changeSpec(tried: TriedBot, changes: Partial<BotSpec['spec']>): TriedBot {
  const { spec } = tried.bot;
  return { ...tried, bot: { ...tried.bot, spec: { ...spec, spec: { ...spec.spec, ...changes } } } };
}
