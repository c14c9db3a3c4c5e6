/** Changes to a bot that apply only within a stress test. */
import { engineConfig, type BotSpec } from '../../bots/spec.ts';
import type { TriedBot } from '../conformance/tried-session.ts';
import type { Plan } from './stress-plan.ts';
import { findBurst } from './load-schedule.ts';

export interface Changed {
  readonly tried: TriedBot;
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
  const out = findBurst(plan);
  const of = (measure: string): number =>
    plan.volume
      .filter((one) => one.measure === measure && one.window_s !== 86_400)
      .reduce((sum, { amount }) => sum + amount, 0);
  const value = Math.max(out * BEYOND * HIGHEST_PRICE, of('value'), of('quantity') * HIGHEST_PRICE);
  const share = Math.min(1, risk.max_position_pct);
  const factor = Math.max(1, Math.ceil((2 * value) / (cash * share)));
  const { messages_kept_for_cancels: kept, repeated_execution, ...others } = spec.spec.risk ?? {};
  const isKept = latch === 'kept' && repeated_execution !== undefined;
  const changed: BotSpec = {
    ...spec,
    spec: {
      ...spec.spec,
      engine: { ...spec.spec.engine, cash: String(cash * factor) },
      risk: {
        ...others,
        max_messages_per_second: {
          unlimited: 'lifted only in the second pass of a stress test',
        },
        ...(isKept && { repeated_execution }),
      },
    },
  };
  return {
    tried: { ...tried, bot: { ...tried.bot, spec: changed } },
    changes: [
      ...changes,
      'max_messages_per_second',
      ...(kept === undefined ? [] : ['messages_kept_for_cancels']),
      ...(repeated_execution === undefined || isKept ? [] : ['repeated_execution']),
      ...(factor === 1 ? [] : [`cash: ${factor} times as much`]),
    ],
  };
}

/** Adds the instruments of all bots, so that the load of the firm keeps its mix of instruments. */
export function widen(tried: TriedBot, plan: Plan): Changed {
  const { spec } = tried.bot;
  const own = spec.spec.universe.symbols;
  const symbols = [
    ...new Set([
      ...own,
      ...plan.messages.flatMap(({ mix }) => mix.map(({ instrument }) => instrument)),
      ...plan.volume.flatMap(({ measure, of }) => (measure === 'quantity' && of ? [of] : [])),
    ]),
  ].filter(Boolean);
  if (symbols.length === own.length) return { tried, changes: [] };
  const { permitted, max_instruments, ...others } = spec.spec.risk ?? {};
  const changed: BotSpec = {
    ...spec,
    spec: {
      ...spec.spec,
      universe: { ...spec.spec.universe, symbols },
      risk: {
        ...others,
        ...(max_instruments !== undefined && { max_instruments: symbols.length }),
        ...(permitted !== undefined && { permitted: { instruments: symbols } }),
      },
    },
  };
  return {
    tried: { ...tried, bot: { ...tried.bot, spec: changed } },
    changes: [
      `universe: the ${symbols.length} instruments of all bots, including ${own.length} of this bot`,
      ...(max_instruments === undefined ? [] : ['max_instruments']),
      ...(permitted === undefined ? [] : ['permitted']),
    ],
  };
}
