/** Creates the load of each bar from the plan; the result does not depend on the machine. */
import type { EngineConfig } from '../../engine/config.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Sizes } from '../conformance/sizes.ts';
import type { Load, Lot, Shares } from './stress-load.ts';
import type { MessageClass, Mix, WindowSeconds } from './peaks.ts';
import type { MessageTarget, Plan } from './stress-plan.ts';

export type Phase =
  | 'warm-up'
  | 'ramp'
  | 'hold'
  | 'pulse'
  | 'volume'
  | 'volume-day'
  | 'soak'
  | 'recovery';

export interface Scheduled {
  readonly phase: Phase;
  readonly load: Load;
}

export interface ScheduleOptions {
  readonly symbols: readonly string[];
  readonly sizes: Sizes;
  readonly config: Pick<EngineConfig, 'risk' | 'units'>;
  /** Length of the hold in bars. */
  readonly holdBars: number;
  /** Maximum number of messages, and of fills, in the schedule. */
  readonly mostMessages: number;
}

const WARM_UP_BARS = 5;
const RAMP_BARS = 4;
const PULSES = 3;
const RECOVERY_BARS = 5;
const DAY_BARS = 1440;

/** Maximum number of messages per bar (an internal threshold), since all are in memory at once. */
export const MOST_AT_ONCE = 20_000;

/** @throws ServiceError `invalid_request` with the reason `too_much_load`. */
export function requirePlayable(schedule: readonly Scheduled[]): void {
  const most = Math.max(...schedule.map(({ load }) => Math.max(load.out, load.trades)));
  if (most <= MOST_AT_ONCE) return;
  throw new ServiceError(
    'invalid_request',
    `the peaks, limits and multiplier require ${most} messages at one bar; a test can send at most ${MOST_AT_ONCE}`,
    {
      reason: 'too_much_load',
      remedy:
        'Lower the multiplier or the declared peak. For a bot without production history, also lower spec.risk.max_messages_per_second to what the bot needs.',
    },
  );
}

/** Plans warm-up at the peak, ramp to the target, hold, pulses, volume, soak and recovery at half the peak. */
export function planSchedule(plan: Plan, options: ScheduleOptions): Scheduled[] {
  const { symbols, holdBars, mostMessages } = options;
  const { multiplier } = plan;
  const second = findTarget(plan, 'out', 1)?.count ?? 0;
  const minute = findTarget(plan, 'out', 60)?.count ?? 0;
  const day = findTarget(plan, 'out', 86_400)?.count ?? 0;
  const all: Scheduled[] = [];
  const add = (phase: Phase, bars: number, load: (bar: number) => Load): void => {
    for (let bar = 0; bar < bars; bar += 1) all.push({ phase, load: load(bar) });
  };
  const share = (part: number): Load => createLoad(plan, symbols, Math.ceil(minute * part), 60);
  add('warm-up', WARM_UP_BARS, () => share(1 / multiplier));
  add('ramp', RAMP_BARS, (bar) =>
    share((1 + (bar / (RAMP_BARS - 1)) * (multiplier - 1)) / multiplier),
  );
  // A strategy sends all messages of a minute at the close of its bar.
  add('hold', holdBars, () => createLoad(plan, symbols, Math.max(minute, second), 60));
  add('pulse', PULSES, () => createLoad(plan, symbols, second, 1));
  for (const { phase, lots } of planVolumeBars(plan, options)) {
    const out = lots.reduce((sum, { orders }) => sum + orders, 0);
    all.push({ phase, load: { out, cancels: 0, fills: out, trades: 0, lots } });
  }
  const planned = all.reduce((sum, { load }) => sum + load.out, 0);
  const left = Math.max(0, Math.min(day, mostMessages) - planned);
  const bars = Math.min(DAY_BARS, Math.ceil(left / Math.max(1, minute)));
  add('soak', bars, () => createLoad(plan, symbols, minute, 86_400));
  add('recovery', RECOVERY_BARS, () => share(0.5 / multiplier));
  return all;
}

export function findTarget(
  plan: Plan,
  of: MessageClass,
  window_s: WindowSeconds,
): MessageTarget | undefined {
  return plan.messages.find((one) => one.class === of && one.window_s === window_s);
}

/** The largest number of outgoing messages of a second or a minute. */
export function findBurst(plan: Plan): number {
  return Math.max(...([1, 60] as const).map((one) => findTarget(plan, 'out', one)?.count ?? 0));
}

/** Creates the load of one bar with `out` messages, in the mix of the peak, with matching market data. */
export function createLoad(
  plan: Plan,
  symbols: readonly string[],
  out: number,
  window_s: WindowSeconds,
): Load {
  const mix = findTarget(plan, 'out', window_s)?.mix ?? [];
  const ordered = mix.filter(({ kind }) => kind === 'order.submitted');
  const others = mix.filter(({ kind }) => kind !== 'order.submitted');
  const all = sumCounts(mix);
  const cancelShare = all === 0 ? 0.5 : Math.min(0.5, sumCounts(others) / all);
  const cancels = Math.floor(out * cancelShare);
  const market = findTarget(plan, 'in_md', 60);
  const md = market?.count ?? 0;
  const minute = findTarget(plan, 'out', 60)?.count ?? 0;
  return {
    out,
    cancels,
    // The remaining orders rest until the next bar cancels them.
    fills: Math.max(0, out - 2 * cancels),
    trades: minute === 0 ? md : Math.ceil(md * (out / minute)),
    mix: {
      orders: toShares(ordered, symbols),
      cancels: toShares(others, symbols),
      trades: toShares(market?.mix ?? [], symbols),
    },
  };
}

function sumCounts(mix: readonly Mix[]): number {
  return mix.reduce((sum, { count }) => sum + count, 0);
}

/** Returns the shares of the peak; messages of other or unknown instruments are spread evenly. */
function toShares(mix: readonly Mix[], symbols: readonly string[]): Shares {
  const own = mix.filter(({ instrument }) => symbols.includes(instrument));
  const others = sumCounts(mix) - sumCounts(own);
  const evenly = mix.length === 0 ? 1 : others / symbols.length;
  return symbols.map((symbol) => [
    symbol,
    evenly + sumCounts(own.filter(({ instrument }) => instrument === symbol)),
  ]);
}

/** Plans bars that trade the target volume of a second and of a minute, and then of a day. */
function planVolumeBars(
  plan: Plan,
  { symbols, sizes, config, mostMessages }: ScheduleOptions,
): { readonly phase: 'volume' | 'volume-day'; readonly lots: readonly Lot[] }[] {
  if (plan.volume.length === 0) return [];
  const most = getLargestQuantity(sizes, config);
  const short = getVolume(plan, [1, 60]);
  const lots = createLots(short, symbols, sizes, most);
  // The first bar buys, and the second one sells what the first bought.
  const bars: { phase: 'volume' | 'volume-day'; lots: readonly Lot[] }[] = [
    { phase: 'volume', lots },
    { phase: 'volume', lots },
  ];
  const fills = lots.reduce((sum, { orders }) => sum + orders, 0);
  const traded = (of: string): number =>
    lots.reduce(
      (sum, { symbol, orders, quantity }) => sum + (symbol === of ? orders * quantity : 0),
      0,
    );
  const long = getVolume(plan, [86_400]);
  const value = symbols.reduce((sum, symbol) => sum + traded(symbol) * sizes.price, 0);
  const days = [
    long.fills / fills,
    value === 0 ? 0 : long.value / value,
    ...symbols.map((symbol) =>
      traded(symbol) === 0 ? 0 : (long.quantity.get(symbol) ?? 0) / traded(symbol),
    ),
  ];
  const needed = Math.min(
    Math.ceil(Math.max(...days)) - bars.length,
    DAY_BARS,
    Math.floor(mostMessages / Math.max(1, fills)),
  );
  for (let bar = 0; bar < needed; bar += 1) bars.push({ phase: 'volume-day', lots });
  return bars;
}

/** Returns the maximum quantity of one order. */
function getLargestQuantity(sizes: Sizes, { risk, units }: ScheduleOptions['config']): number {
  const limit = Math.min(
    sizes.quantity,
    risk.max_order_qty * 0.99,
    (risk.max_order_value * 0.99) / sizes.price,
  );
  const step = units === 'whole' ? 1 : sizes.unit;
  return Math.max(step, roundToGrid(Math.floor(limit / step + 1e-9) * step));
}

interface Volume {
  readonly fills: number;
  /** Sum over all currencies. */
  readonly value: number;
  /** Keys are instruments. */
  readonly quantity: ReadonlyMap<string, number>;
}

function getVolume({ volume }: Plan, windows: readonly WindowSeconds[]): Volume {
  const own = volume.filter(({ window_s }) => windows.includes(window_s));
  const most = (measure: string): Map<string, number> => {
    const amounts = new Map<string, number>();
    for (const one of own) {
      if (one.measure !== measure) continue;
      const of = one.of ?? '';
      amounts.set(of, Math.max(amounts.get(of) ?? 0, one.amount));
    }
    return amounts;
  };
  const sum = (amounts: Map<string, number>): number =>
    [...amounts.values()].reduce((all, amount) => all + amount, 0);
  return { fills: sum(most('fills')), value: sum(most('value')), quantity: most('quantity') };
}

/** Creates orders that reach the quantity of each instrument, and the total value and number of fills. */
function createLots(
  { fills, value, quantity }: Volume,
  symbols: readonly string[],
  { unit, price }: Sizes,
  most: number,
): Lot[] {
  const asked = symbols.filter((symbol) => (quantity.get(symbol) ?? 0) > 0);
  const those = asked.length === 0 ? symbols.slice(0, 1) : asked;
  const units = those.map((symbol) => quantity.get(symbol) ?? 0);
  const known = units.reduce((sum, one) => sum + one, 0);
  // Prices of the test differ from the market's, so quantities are raised to reach the value.
  const factor = known === 0 ? 0 : Math.max(1, value / (known * price));
  return those.map((symbol, at) => {
    const wanted = known === 0 ? value / price / those.length : units[at]! * factor;
    const share = known === 0 ? 1 / those.length : units[at]! / known;
    const orders = Math.max(1, Math.ceil(fills * share - 1e-9), Math.ceil(wanted / most - 1e-9));
    const each = Math.max(unit, Math.ceil(wanted / orders / unit - 1e-9) * unit);
    return { symbol, orders, quantity: roundToGrid(Math.min(each, most)) };
  });
}

/** Removes the binary rounding error of a product of decimal numbers. */
function roundToGrid(value: number): number {
  return Number(value.toFixed(9));
}
