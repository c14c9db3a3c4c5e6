import { StrategyBroker } from './broker.ts';
import type { EngineSetup } from './engine-setup.ts';
import { allowsLoneTargets, LoneTargets } from './execution/lone-targets.ts';
import type { OrderExecution } from './execution/order-execution.ts';
import { SimulatedExecution } from './execution/simulated-execution.ts';
import { VenueExecution } from './execution/venue-execution.ts';
import { VenueTerms } from './execution/venue-terms.ts';
import { MarginCalls } from './margin.ts';
import { OrderBook } from './orders/order-book.ts';
import { Exposure } from './risk/exposure.ts';
import { RiskGate } from './risk/risk-gate.ts';
import { RunState } from './run-state.ts';
import { Sizing } from './sizing.ts';

/** The parts of an engine, which share the state of its run. */
export interface EngineParts {
  readonly run: RunState;
  readonly gate: RiskGate;
  readonly book: OrderBook;
  readonly execution: OrderExecution;
  /** Undefined if bars fill the orders. */
  readonly venue: VenueExecution | undefined;
  /** Undefined in a cash account. */
  readonly margin: MarginCalls | undefined;
  /** Undefined if other orders, instruments, credit or volume affect a fill. */
  readonly lone: LoneTargets | undefined;
  readonly broker: StrategyBroker;
}

/** @throws RangeError for a venue without a cash account. */
export function createParts(setup: EngineSetup): EngineParts {
  const { config, opening } = setup;
  if (setup.venue !== undefined && config.account.model !== 'cash') {
    throw new RangeError('a venue needs a cash account');
  }
  const run = new RunState(setup);
  const terms = setup.venue && new VenueTerms(setup.venue, run.symbols);
  const exposure = new Exposure(run, terms);
  const sizing = new Sizing(run, exposure);
  const gate = new RiskGate(run, exposure, opening?.risk);
  const book = new OrderBook(run, gate);
  const venue = terms && new VenueExecution(run, book, gate, exposure, sizing, terms);
  const execution = venue ?? new SimulatedExecution(run, book, gate, sizing);
  const margin = config.account.model === 'margin' ? new MarginCalls(run, book) : undefined;
  const isSimple = venue === undefined && allowsLoneTargets(config, run.instruments.length);
  const lone = isSimple ? new LoneTargets(run, book, gate) : undefined;
  const broker = new StrategyBroker(run, book, gate, margin, execution, lone);
  return { run, gate, book, execution, venue, margin, lone, broker };
}
