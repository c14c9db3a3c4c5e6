/** A runner in this process at a venue that is a script: everything it waits for can be held, fail or be the last. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { onTestFinished, vi } from 'vitest';
import type { RunnerAnswer } from '../../../../src/client/runner.ts';
import type { Step } from '../../../../src/engine/steps.ts';
import { ServiceError } from '../../../../src/base/errors.ts';
import { createLog } from '../../../../src/base/log.ts';
import { MINUTE } from '../../../../src/base/durations.ts';
import { openBot, type RunningBot } from '../../../../src/trading/host/pod/deployed-bot.ts';
import { readRunConfig, type RunConfig } from '../../../../src/trading/host/pod/run-config.ts';
import { eventOfAnswer } from '../../../../src/trading/host/pod/server-connection.ts';
import type { LifeEvent } from '../../../../src/trading/session-lifecycle.ts';
import { openJournal, type Journal } from '../../../../src/trading/host/pod/runner-journal.ts';
import type { SessionBatch } from '../../../../src/trading/session-events.ts';
import { createRunnerMetrics } from '../../../../src/trading/host/pod/runner-metrics.ts';
import { trade } from '../../../../src/trading/host/pod/trade.ts';
import type {
  Connections,
  RunEnd,
  VenueTimes,
  RunnerView,
} from '../../../../src/trading/host/pod/trade-options.ts';
import { engineConfig } from '../../../../src/bots/spec.ts';
import type { SessionState } from '../../../../src/events/session-state.ts';
import { TradingSession } from '../../../../src/trading/trading-session.ts';
import type {
  Venue,
  VenueOrder,
  VenueOrderId,
  VenueReport,
  VenueRules,
} from '../../../../src/trading/venue.ts';
import { SCRATCH } from '../../../scratch.ts';
import { BTC, DEPLOYMENT, SPEC, STRATEGY } from './world.ts';

const RULES: VenueRules = {
  types: ['market', 'limit', 'stop', 'stop_limit'],
  instruments: { [BTC]: { step: 1, min_quantity: 1, min_value: 1, tick: 1 } },
};
const PRICE = 100;
const NOTHING = { filled: 0, cost: 0, fee: 0, fee_units: 0 };

/** Called before and after each effect that a runner waits for. */
export type Moment = (what: string, when: 'before' | 'after') => Promise<void>;

export interface Script {
  readonly directory: string;
  /** Orders of the venue, by client order id. */
  readonly orders: Map<string, VenueReport & { readonly made: VenueOrder }>;
  /** Closes of the bars. */
  readonly closes: number[];
  readonly holdings: { cash: number; units: number };
  /** Opening time of the first bar. */
  begin: number;
  command: RunnerAnswer['command'];
  controls: RunnerAnswer['controls'];
  mayTrade: boolean;
  hasClaim: boolean;
  moment: Moment;
  /** Batches as first reported, by number. */
  readonly batches: Map<number, SessionBatch>;
  /** Violations by a runner. */
  readonly wrongs: string[];
  /** A part of the market's orders that rest is filled. */
  readonly fillOne: () => void;
  /** Sends a report to the runner. */
  readonly send: (report: VenueReport) => void;
  readonly start: (times?: VenueTimes) => Promise<Life>;
  readonly replayed: () => Promise<SessionState>;
}

export interface Life {
  readonly done: Promise<RunEnd>;
  readonly view: RunnerView;
  readonly log: readonly string[];
  readonly stop: () => void;
  readonly post: (event: LifeEvent) => void;
  /** Whether all bars were taken, and are on disk. */
  readonly hasTakenAll: () => boolean;
  /** The state on disk. */
  readonly state: () => SessionState | undefined;
  /** Nothing that it does has an effect from now on. */
  readonly kill: () => Promise<void>;
}

let opened: Promise<{ readonly bot: RunningBot; readonly config: RunConfig }> | undefined;

/** The same for all, as it takes longer than a session. */
function openOnce() {
  opened ??= (async () => {
    const directory = mkdtempSync(join(SCRATCH, 'service-local-told-'));
    const write = (name: string, text: string): void => writeFileSync(join(directory, name), text);
    write('told.mjs', STRATEGY);
    write('bot.json', JSON.stringify(SPEC));
    write(
      'run.json',
      JSON.stringify({
        apiVersion: 'run/v1',
        kind: 'Run',
        bot: './bot.json',
        deployment_id: DEPLOYMENT,
        state_dir: '.',
        exchange: { name: 'script', ccxt: 'binance' },
        venue: { type: 'exchange', credentials_dir: '.' },
        control: { url: 'http://script.example', token_file: './token' },
      }),
    );
    const config = readRunConfig(join(directory, 'run.json'));
    const limits = { memoryMb: 64, timeoutMs: 30_000 };
    const bot = await openBot(config, limits, new AbortController().signal);
    rmSync(directory, { recursive: true });
    return { bot, config };
  })();
  return opened;
}

export function unavailable(): ServiceError {
  return new ServiceError('exchange_unavailable', 'the script says so');
}

export async function newScript(): Promise<Script> {
  const { bot, config } = await openOnce();
  const directory = mkdtempSync(join(SCRATCH, 'service-local-script-'));
  const owner = { deployment_id: DEPLOYMENT, version: 1, spec_hash: bot.hash, venue: 'exchange' };
  const orders: Script['orders'] = new Map();
  const withdrawn = new Set<string>();
  const holdings = { cash: 1000, units: 0 };
  const batches = new Map<number, SessionBatch>();
  const listeners = new Set<(report: VenueReport) => void>();
  const lives: Life[] = [];
  onTestFinished(async () => {
    for (const life of lives) await life.kill();
    assert.deepEqual(script.wrongs, []);
    rmSync(directory, { recursive: true });
  });

  const send = (report: VenueReport): void => {
    for (const listener of listeners) listener(report);
  };
  const change = (id: string, what: Partial<VenueReport>): VenueReport => {
    const report = { ...orders.get(id)!, ...what, time: Date.now() };
    orders.set(id, report);
    const { made: _made, ...sent } = report;
    send(sent);
    return sent;
  };
  const fill = (id: string): VenueReport => {
    const { made } = orders.get(id)!;
    const cost = made.quantity * (made.limit ?? PRICE);
    const sign = made.side === 'buy' ? 1 : -1;
    holdings.cash -= sign * cost;
    holdings.units += sign * made.quantity;
    return change(id, { status: 'filled', filled: made.quantity, cost });
  };
  const reportOf = (id: string): VenueReport | undefined => {
    const order = orders.get(id);
    if (order === undefined) return undefined;
    const { made: _made, ...sent } = order;
    return sent;
  };
  const absent = ({ order, client_order_id }: VenueOrderId): VenueReport => ({
    order,
    client_order_id,
    status: 'canceled',
    ...NOTHING,
    time: Date.now(),
    reason: 'not_at_venue',
  });

  const script: Script = {
    directory,
    orders,
    closes: [],
    holdings,
    // The next bar closes while the test runs in no case: this one would be stale then.
    begin: Math.floor((Date.now() + MINUTE / 3) / MINUTE) * MINUTE - MINUTE,
    command: 'trade',
    controls: { thresholds: {}, permits: [], latches_lifted: 0 },
    mayTrade: true,
    hasClaim: true,
    moment: async () => {},
    batches,
    wrongs: [],
    fillOne() {
      const open = [...orders.values()].find(({ status }) => status === 'open');
      if (open !== undefined) fill(open.client_order_id);
    },
    send,
    async start(venueTimes = {}) {
      const real = await openJournal(join(directory, 'runner'), owner);
      const stop = new AbortController();
      let isDead = false;
      let post: (event: LifeEvent) => void = () => {};
      let view: RunnerView | undefined;
      let steps = real.steps;
      /** Numbers of orders of which the log has it. */
      const onDisk = new Set<number>();
      for (const { order } of real.state?.working ?? []) onDisk.add(order);
      const log: string[] = [];

      const at = async <T>(what: string, effect: () => T | Promise<T>): Promise<T> => {
        const go = async (when: 'before' | 'after'): Promise<void> => {
          if (!isDead) await script.moment(what, when);
          if (isDead) throw unavailable();
        };
        await go('before');
        const result = await effect();
        await go('after');
        return result;
      };
      const venue: Venue = {
        name: 'script',
        rules: () => at('rules', () => RULES),
        place: (order) =>
          at('place', () => {
            const { client_order_id: id } = order;
            if (!onDisk.has(order.order)) script.wrongs.push(`${id} is not on disk`);
            const known = orders.get(id);
            if (known !== undefined) {
              if (JSON.stringify(known.made) !== JSON.stringify(order)) {
                script.wrongs.push(`${id} is another order than before`);
              }
              return reportOf(id)!;
            }
            if (withdrawn.has(id)) return absent(order);
            if (!script.mayTrade) script.wrongs.push(`${id} is placed without a claim`);
            const report = { order: order.order, client_order_id: id, ...NOTHING };
            orders.set(id, { ...report, status: 'open', time: Date.now(), made: order });
            return order.type === 'market' ? fill(id) : change(id, {});
          }),
        cancel: (order) =>
          at('cancel', () => {
            const { client_order_id: id } = order;
            const known = orders.get(id);
            if (known === undefined) {
              withdrawn.add(id);
              return absent(order);
            }
            return known.status === 'open' ? change(id, { status: 'canceled' }) : reportOf(id)!;
          }),
        find: (order) =>
          at('find', () => {
            const found = reportOf(order.client_order_id);
            if (found === undefined) withdrawn.add(order.client_order_id);
            return found;
          }),
        openOrders: () =>
          at('openOrders', () =>
            [...orders.values()]
              .filter(({ status }) => status === 'open')
              .map(({ client_order_id }) => ({ client_order_id, symbol: BTC })),
          ),
        account: () =>
          at('account', () => ({ balances: { [BTC]: holdings.units }, cash: holdings.cash })),
        async *reports(signal) {
          const waiting: VenueReport[] = [];
          let news = Promise.withResolvers<void>();
          const listen = (report: VenueReport): void => {
            waiting.push(report);
            news.resolve();
          };
          listeners.add(listen);
          signal.addEventListener('abort', () => news.resolve());
          while (!signal.aborted) {
            await news.promise;
            news = Promise.withResolvers();
            for (const report of waiting.splice(0)) {
              await at('report', () => {});
              yield report;
            }
          }
          listeners.delete(listen);
        },
        async *terms() {},
        close: async () => {},
      };
      const journal: Journal = {
        get state() {
          return real.state;
        },
        get steps() {
          return real.steps;
        },
        get rules() {
          return real.rules;
        },
        get latches() {
          return real.latches;
        },
        get end() {
          return real.end;
        },
        inputs: () => real.inputs(),
        append: (events, state, taken) =>
          at('append', async () => {
            await real.append(events, state, taken);
            steps = taken;
            for (const { kind, payload } of events) {
              if (kind === 'order.submitted') onDisk.add((payload as { order: number }).order);
            }
          }),
        keepRules: (rules) => at('keepRules', () => real.keepRules(rules)),
        keepEnd: (end) => at('keepEnd', () => real.keepEnd(end)),
        nextBatch: (recorded) => at('nextBatch', () => real.nextBatch(recorded)),
        close: () => real.close(),
      };
      const tellServer = async (): Promise<SessionBatch | undefined> => {
        const batch = await journal.nextBatch(batches.size);
        if (batch === undefined) return undefined;
        const text = JSON.stringify(batch);
        // It may have been heard of though the runner does not know.
        await at('report of a batch', () => {
          const known = batches.get(batch.number);
          if (known !== undefined && text !== JSON.stringify(known)) {
            script.wrongs.push(`batch ${batch.number} is another than before`);
          }
          batches.set(batch.number, batch);
        });
        return batch;
      };
      const connections: Connections = {
        openExchangeVenue: () => at('open the venue', () => venue),
        openFeed: async () => ({
          async *items(after = -Infinity, signal) {
            for (let i = 0; ; i += 1) {
              while (script.closes.length <= i) {
                signal.throwIfAborted();
                await nextTurn();
              }
              const time = script.begin + i * MINUTE;
              if (time <= after) continue;
              await at('bar', () => {});
              const close = script.closes[i]!;
              const bar = { open: close, high: close, low: close, close, volume: 1 };
              yield { kind: 'data.bars', step: { time, bars: { [BTC]: bar } } satisfies Step };
            }
          },
          close: async () => {},
        }),
        connectToServer({ onEvent, signal }) {
          post = onEvent;
          const answer = (): RunnerAnswer => ({
            epoch: 1,
            claim_seconds: 30,
            report_seconds: 5,
            command: script.command,
            halt: null,
            recorded: batches.size,
            controls: script.controls,
          });
          const report = async (): Promise<void> => {
            while (!signal.aborted) {
              await at('report', () => {}).catch(() => {});
              if (script.hasClaim) {
                await tellServer().catch(() => {});
                if (!isDead) onEvent(eventOfAnswer(answer()));
              }
              await new Promise((resolve) => setTimeout(resolve, 5));
            }
          };
          void report();
          return {
            mayTrade: () => script.mayTrade,
            answeredAt: undefined,
            get hasClaim() {
              return script.hasClaim;
            },
            report() {},
            async end() {
              try {
                while ((await tellServer()) !== undefined);
                return answer();
              } catch {
                return undefined;
              }
            },
          };
        },
      };
      const done = trade({
        config,
        bot,
        journal,
        gate: undefined,
        metrics: createRunnerMetrics(() => ({
          bar: undefined,
          report: undefined,
          venue: undefined,
        })),
        log: createLog((line) => log.push(line), true),
        stop: stop.signal,
        instanceId: 'script',
        catalogueDir: '',
        timeoutMs: Infinity,
        venueTimes,
        connections,
        onView: (its) => (view = its),
      });
      done.catch(() => {});
      let killed: Promise<void> | undefined;
      const life: Life = {
        done,
        log,
        get view() {
          return view!;
        },
        stop: () => stop.abort(),
        post: (event) => post(event),
        hasTakenAll: () => steps === script.closes.length,
        state: () => real.state,
        kill: () =>
          (killed ??= (async () => {
            isDead = true;
            stop.abort();
            post({ kind: 'fenced' });
            await done.catch(() => {});
            await real.close();
          })()),
      };
      lives.push(life);
      return life;
    },
    async replayed() {
      const journal = await openJournal(join(directory, 'runner'), owner);
      const setup = {
        symbols: [BTC],
        strategy: bot.bot.strategy,
        params: bot.bot.params,
        config: engineConfig(bot.bot.spec),
        timeoutMs: Infinity,
        venue: { deployment_id: DEPLOYMENT, rules: RULES },
      };
      const session = await TradingSession.resume(setup, journal.inputs());
      await journal.close();
      return session.state();
    },
  };
  return script;
}

export async function until(isSo: () => boolean): Promise<void> {
  await vi.waitFor(() => assert(isSo()), { timeout: 30_000, interval: 2 });
}
