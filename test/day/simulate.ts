import { limitEndpoints } from '../../src/compliance/venue/in-process.ts';
import { databaseTemplate } from './database-template.ts';
import { Faults } from './faults.ts';
import { Invariants } from './invariants.ts';
import { onMachine } from './machine.ts';
import { Operators } from './operators.ts';
import { BOTS } from './setup.ts';
import { World, type Violation } from './world.ts';

export interface Day {
  readonly traceHash: string;
  readonly lines: readonly string[];
  readonly violations: readonly Violation[];
  readonly orders: number;
}

const TRADING_MS = 150_000;
/** Longest time until everything is at rest after the last fault, ms. */
const REST_WITHIN_MS = 10 * 60_000;

/** Simulates the day of a seed. @throws the reason of the signal */
export async function simulateDay(
  seed: number,
  signal = new AbortController().signal,
): Promise<Day> {
  const template = await databaseTemplate();
  // It loads ccxt, which keeps the clock that it finds.
  const restore = limitEndpoints();
  return onMachine(seed, signal, async (machine) => {
    const world = new World(machine, template);
    const invariants = new Invariants(world);
    const removeThreads = world.threads.install();
    try {
      await machine.complete(world.begin());
      await trade(world, invariants);
      const { traceHash, lines, violations } = world;
      return { traceHash, lines, violations, orders: world.exchange.orders.length };
    } finally {
      removeThreads();
      invariants.close();
      world.end();
    }
  }).finally(restore);
}

async function trade(world: World, invariants: Invariants): Promise<void> {
  const { machine } = world;
  const operators = new Operators(world, invariants);
  await machine.complete(operators.begin());
  await machine.pass(10_000);
  const faults = new Faults(world);
  faults.begin();
  let isOver = false;
  const working = operators.work(() => isOver);
  await machine.pass(TRADING_MS);
  isOver = true;
  faults.end();
  world.note('the faults end');
  await machine.complete(working);
  await rest(world, 'all is recorded', () => invariants.restless());
  await machine.complete(haltAll(world, operators));
  await rest(world, 'all have ended', () => invariants.unended());
  await machine.complete(invariants.checkEnd());
}

/** Lets time pass until nothing is left. */
async function rest(world: World, what: string, left: () => readonly string[]): Promise<void> {
  const until = world.machine.now + REST_WITHIN_MS;
  while (left().length > 0 && world.machine.now < until) await world.machine.pass(2000);
  const still = left();
  if (still.length > 0) world.violate(`not so that ${what}: ${still.join(', ')}`);
  world.note(what);
}

async function haltAll(world: World, operators: Operators): Promise<void> {
  const until = world.machine.now + REST_WITHIN_MS;
  while (!(await operators.halt(BOTS))) {
    if (world.machine.now > until) return world.violate('a halt of all bots is not verified');
    await world.machine.sleep(2000);
  }
}
