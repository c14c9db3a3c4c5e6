/**
 * Runs of generated bots, which must stay the same, event for event.
 * `node test/engine/bot-runs.ts N` prints everything that is hashed of bot N, one JSON value per
 * line. `node test/engine/bot-runs.ts --record` writes the hashes of all bots.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EngineConfig } from '../../src/engine/config.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { SharedComputations } from '../../src/engine/series/shared-computations.ts';
import { stepsOf } from '../../src/engine/steps.ts';
import type { Fill, Strategy } from '../../src/engine/strategy.ts';
import { allocateBars } from '../../src/market/bars.ts';
import { generatedBots } from './generated-bots.ts';
import type { GeneratedBot, Intervention } from './generated-bots.ts';
import { scripted } from './market.ts';
import type { Scene } from './market.ts';
import { namedMarkets, scriptOf } from './scenario.ts';
import { SimulatedVenue } from './simulated-venue.ts';

const FILE = join(import.meta.dirname, 'generated-bots.txt');

export interface BotRun {
  readonly engine: Engine;
  readonly venue: SimulatedVenue | undefined;
  /** View of the strategy at each bar and fill. */
  readonly seen: readonly unknown[];
}

export function runBot(drawn: GeneratedBot): BotRun {
  const seen: unknown[] = [];
  const strategy = scripted(scriptOf(drawn, (scene, fill) => seen.push(viewOf(scene, fill))));
  return { ...runWith(drawn, strategy), seen };
}

/** Runs a strategy on the markets, account, venue and interventions of a bot. */
export function runWith(
  drawn: GeneratedBot,
  strategy: Strategy,
  computations?: SharedComputations,
): Omit<BotRun, 'seen'> {
  const markets = Object.entries(namedMarkets(drawn.markets));
  const histories = markets.map(([name, bars]) => ({ symbol: name, bars }));
  const engine = new Engine({
    instruments: drawn.isLive
      ? histories.map(({ symbol: name }) => ({ symbol: name, bars: allocateBars(0) }))
      : histories,
    strategy,
    params: {},
    config: drawn.config as EngineConfig,
    opening: drawn.opening,
    venue: drawn.venue?.rules,
    computations,
  });
  const venue = drawn.venue && new SimulatedVenue(engine, drawn.venue.replies);
  if (!drawn.isLive && drawn.between.length === 0) while (engine.advance(7));
  let step = 0;
  for (const bars of stepsOf(histories)) {
    for (const intervention of drawn.between[step] ?? []) intervene(engine, intervention);
    if (drawn.isLive) engine.append(bars);
    engine.advance(1);
    venue?.work(bars.time);
    step += 1;
  }
  return { engine, venue };
}

function intervene(engine: Engine, intervention: Intervention): void {
  switch (intervention.call) {
    case 'setThresholds':
      return engine.setThresholds(intervention.thresholds);
    case 'grant':
      return engine.risk.permits.grant(intervention.permit);
    case 'endPermit':
      return engine.risk.permits.end(intervention.id);
    case 'deny':
      return engine.risk.deny(intervention.reason);
    case 'revise':
      return engine.venue!.revise(intervention.rules);
    case 'halt':
      return engine.halt();
    case 'reEnable':
      return engine.risk.reEnable();
    default:
      return intervention satisfies never;
  }
}

function viewOf({ step, broker, instruments }: Scene, fill: Fill | undefined): unknown {
  return {
    step,
    ...(fill !== undefined && {
      fill: { ...fill, order: fill.order.id, instrument: fill.instrument.symbol },
    }),
    cash: broker.cash,
    equity: broker.equity,
    positions: instruments.map((one) => [broker.position(one), broker.entryPrice(one)]),
    working: broker.working(),
  };
}

/** Everything that must stay the same of a run; the events come first. */
export function linesOf({ engine, seen }: Pick<BotRun, 'engine' | 'seen'>): string[] {
  const { journal, time, equity, trades, openTrades, ...rest } = engine.result();
  // They follow from the events, the equity, the trades and the targets.
  const derived = {
    orders: { ...rest.orders, limited: undefined },
    drawdown: undefined,
    tradeOutcomes: undefined,
    cappedTargets: undefined,
  };
  const { done } = engine;
  const { marks, isRuined } = engine.run;
  const { state: risk, permits, latches } = engine.risk;
  const { open, used } = permits;
  return [
    ...journal.events(),
    ...Array.from(equity, (value, step) => ({ time: time[step], equity: value })),
    ...trades,
    ...openTrades,
    { ...rest, ...derived, risk, marks, permits: { open, used }, latches, isRuined, done },
    ...seen,
  ].map((line) => JSON.stringify(line));
}

export function hashOf(lines: readonly string[]): string {
  return createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 8);
}

/** The recorded hashes, in order of the bots. */
export function recordedHashes(): string[] {
  return readFileSync(FILE, 'utf8').trim().split(/\s+/);
}

if (import.meta.main) {
  const [what] = process.argv.slice(2);
  const bots = generatedBots();
  if (what === '--record') {
    const hashes = bots.map((one) => hashOf(linesOf(runBot(one))));
    const rows = Array.from({ length: hashes.length / 10 }, (_, row) =>
      hashes.slice(10 * row, 10 * row + 10),
    );
    writeFileSync(FILE, `${rows.map((row) => row.join(' ')).join('\n')}\n`);
  } else {
    process.stdout.write(`${linesOf(runBot(bots[Number(what)]!)).join('\n')}\n`);
  }
}
