/** Creates the load of each bar from the plan; the result does not depend on the machine. */
import type { EngineConfig } from '../../engine/config.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Sizes } from '../conformance/sizes.ts';
import { findMessages, type Mix, type WindowSeconds } from './peaks.ts';
import { sum } from './samples.ts';
import type { Load, Lot, Shares } from './stress-load.ts';
import type { Plan, VolumeTarget } from './stress-plan.ts';

type Phase = 'warm-up' | 'ramp' | 'hold' | 'pulse' | 'volume' | 'volume-day' | 'soak' | 'recovery';

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
  const [second, minute, day] = [countOut(plan, 1), countOut(plan, 60), countOut(plan, 86_400)];
  const repeat = (phase: Phase, bars: number, load: (bar: number) => Load): Scheduled[] =>
    Array.from({ length: bars }, (_, bar) => ({ phase, load: load(bar) }));
  const share = (part: number): Load => createLoad(plan, symbols, Math.ceil(minute * part), 60);
  const short = [
    ...repeat('warm-up', WARM_UP_BARS, () => share(1 / multiplier)),
    ...repeat('ramp', RAMP_BARS, (bar) =>
      share((1 + (bar / (RAMP_BARS - 1)) * (multiplier - 1)) / multiplier),
    ),
    // A strategy sends all messages of a minute at the close of its bar.
    ...repeat('hold', holdBars, () => createLoad(plan, symbols, Math.max(minute, second), 60)),
    ...repeat('pulse', PULSES, () => createLoad(plan, symbols, second, 1)),
    ...planVolumeBars(plan, options),
  ];
  const left = Math.min(day, mostMessages) - sum(short, ({ load }) => load.out);
  const bars = Math.min(DAY_BARS, Math.max(0, Math.ceil(left / Math.max(1, minute))));
  return [
    ...short,
    ...repeat('soak', bars, () => createLoad(plan, symbols, minute, 86_400)),
    ...repeat('recovery', RECOVERY_BARS, () => share(0.5 / multiplier)),
  ];
}

/** Counts the outgoing messages of a target. */
export function countOut({ messages }: Plan, window_s: WindowSeconds): number {
  return findMessages(messages, 'out', window_s)?.count ?? 0;
}

/** Returns the largest number of outgoing messages of a second or a minute. */
export function findBurst(plan: Plan): number {
  return Math.max(countOut(plan, 1), countOut(plan, 60));
}

/** Creates the load of one bar with `out` messages, in the mix of the peak, with matching market data. */
export function createLoad(
  plan: Plan,
  symbols: readonly string[],
  out: number,
  window_s: WindowSeconds,
): Load {
  const { mix = [] } = findMessages(plan.messages, 'out', window_s) ?? {};
  const ordered = mix.filter(({ kind }) => kind === 'order.submitted');
  const others = mix.filter(({ kind }) => kind !== 'order.submitted');
  const all = sumCounts(mix);
  const cancels = Math.floor(out * (all === 0 ? 0.5 : Math.min(0.5, sumCounts(others) / all)));
  const market = findMessages(plan.messages, 'in_md', 60) ?? { count: 0, mix: [] };
  const minute = countOut(plan, 60);
  return {
    out,
    cancels,
    // The remaining orders rest until the next bar cancels them.
    fills: Math.max(0, out - 2 * cancels),
    trades: minute === 0 ? market.count : Math.ceil(market.count * (out / minute)),
    mix: {
      orders: toShares(ordered, symbols),
      cancels: toShares(others, symbols),
      trades: toShares(market.mix, symbols),
    },
  };
}

function sumCounts(mix: readonly Mix[]): number {
  return sum(mix, ({ count }) => count);
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
function planVolumeBars(plan: Plan, options: ScheduleOptions): Scheduled[] {
  if (plan.volume.length === 0) return [];
  const { symbols, sizes, mostMessages } = options;
  const lots = createLots(getVolume(plan, [1, 60]), options);
  const fills = sum(lots, ({ orders }) => orders);
  const traded = new Map(
    lots.map(({ symbol, orders, quantity }) => [symbol, orders * quantity] as const),
  );
  const value = sum(symbols, (symbol) => (traded.get(symbol) ?? 0) * sizes.price);
  const long = getVolume(plan, [86_400]);
  const days = [
    long.fills / fills,
    value === 0 ? 0 : long.value / value,
    ...[...traded].map(([symbol, units]) => (long.quantity.get(symbol) ?? 0) / units),
  ];
  // The first bar buys, and the second one sells what the first bought.
  const firstBars = 2;
  const needed = Math.min(
    Math.ceil(Math.max(...days)) - firstBars,
    DAY_BARS,
    Math.floor(mostMessages / Math.max(1, fills)),
  );
  const load = { out: fills, cancels: 0, fills, trades: 0, lots };
  return Array.from({ length: firstBars + Math.max(0, needed) }, (_, bar) => ({
    phase: bar < firstBars ? 'volume' : 'volume-day',
    load,
  }));
}

/** Returns the target volume in some windows: of each instrument, and the total value of all currencies. */
function getVolume({ volume }: Plan, windows: readonly WindowSeconds[]) {
  const largest = (measure: VolumeTarget['measure']): ReadonlyMap<string | null, number> => {
    const own = volume.filter((one) => one.measure === measure && windows.includes(one.window_s));
    return new Map(
      [...Map.groupBy(own, ({ of }) => of)].map(([of, all]) => [
        of,
        Math.max(...all.map(({ amount }) => amount)),
      ]),
    );
  };
  const total = (measure: VolumeTarget['measure']): number =>
    sum([...largest(measure).values()], (amount) => amount);
  return { fills: total('fills'), value: total('value'), quantity: largest('quantity') };
}

/** Creates orders that reach the quantity of each instrument, and the total value and number of fills. */
function createLots(
  { fills, value, quantity }: ReturnType<typeof getVolume>,
  { symbols, sizes, config }: ScheduleOptions,
): Lot[] {
  const { unit, price } = sizes;
  const most = getLargestQuantity(sizes, config);
  const asked = symbols.filter((symbol) => (quantity.get(symbol) ?? 0) > 0);
  const traded = asked.length === 0 ? symbols.slice(0, 1) : asked;
  const known = sum(asked, (symbol) => quantity.get(symbol)!);
  // Prices of the test differ from the market's, so quantities are raised to reach the value.
  const factor = known === 0 ? 0 : Math.max(1, value / (known * price));
  return traded.map((symbol) => {
    const units = quantity.get(symbol) ?? 0;
    const wanted = known === 0 ? value / price / traded.length : units * factor;
    const share = known === 0 ? 1 / traded.length : units / known;
    const orders = Math.max(1, Math.ceil(fills * share - 1e-9), Math.ceil(wanted / most - 1e-9));
    const each = Math.max(unit, Math.ceil(wanted / orders / unit - 1e-9) * unit);
    return { symbol, orders, quantity: roundToGrid(Math.min(each, most)) };
  });
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

/** Removes the binary rounding error of a product of decimal numbers. */
function roundToGrid(value: number): number {
  return Number(value.toFixed(9));
}
