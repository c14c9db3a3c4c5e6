import type { BotSpec } from '../../../src/bots/spec.ts';
import type { TriedBot } from '../../../src/compliance/conformance/tried-session.ts';
import type { Meters } from '../../../src/compliance/stress/meters.ts';
import { planStress, type Plan } from '../../../src/compliance/stress/stress-plan.ts';
import type { History } from '../../../src/compliance/stress/history.ts';
import type { MessagePeak, Peaks } from '../../../src/compliance/stress/peaks.ts';

const NONE: Peaks = { messages: [], volume: [] };
/** History of a bot without production runs. */
export const HISTORY: History = {
  scope: 'bot',
  window: { from: '2026-01-05T00:00:00.000Z', to: '2026-07-05T00:00:00.000Z' },
  production: NONE,
  paper: NONE,
  coverage_days: 0,
  days: 181,
  since: null,
  gaps: [],
  counted: '',
  query: { name: 'stress.peaks', params: {}, hash: '' },
};

/** History of a bot that sent `orders` orders per bar, canceled half of them and traded a little. */
export const busyHistory = (orders: number): History => ({
  ...HISTORY,
  since: HISTORY.window.from,
  coverage_days: 181,
  production: {
    messages: (['out', 'in_order', 'in_md'] as const).flatMap((one) =>
      ([1, 60, 86_400] as const).map((window_s): MessagePeak => {
        const instrument = 'SPX';
        const mix = [
          { kind: 'order.submitted', instrument, count: orders },
          { kind: 'order.pending_cancel', instrument, count: orders / 2 },
        ];
        const M = (one === 'in_md' ? 1 : orders * 1.5) * (window_s === 86_400 ? 4 : 1);
        return { class: one, window_s, M, peak_ts: null, instruments: [instrument], mix };
      }),
    ),
    volume: [
      { measure: 'fills', of: null, window_s: 60, M: 2, peak_ts: null, instruments: ['SPX'] },
      { measure: 'value', of: 'USD', window_s: 60, M: 500, peak_ts: null, instruments: ['SPX'] },
    ],
  },
});

/** Meters of a machine on which every step takes 0.01 ms. */
export const idleMeters = (): Meters => {
  let now = 0;
  return {
    now: () => (now += 0.01),
    rss: () => 1e6,
    heap: () => 1e6,
    gc: () => ({ total: 0, longest: 0 }),
    cpu: () => 0,
    withheld: () => 0,
    slowdown: () => 1,
  };
};

/** Returns the spec of a bot that decides every minute, with changed limits. */
export const minuteSpec = ({ bot: { spec } }: TriedBot, risk = {}): BotSpec => ({
  ...spec,
  spec: {
    ...spec.spec,
    data: { ...spec.spec.data, timeframe: '1m' },
    risk: { ...spec.spec.risk, ...risk },
  },
});

export const planFor = (history: History, tried: TriedBot): Plan =>
  planStress(history, minuteSpec(tried));
