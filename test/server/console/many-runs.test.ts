import { afterAll, beforeAll, expect, test } from 'vitest';
import { sqliteReadCostOf, type ReadCost } from '../../storage/count-statements.ts';
import { newTestApp, type TestApp } from '../in-process.ts';
import { addManyBots, ONE_OF_MANY } from './many-runs.ts';
import { newSignedIn, type Visitor } from './visitor.ts';

const FEW = { bots: 120, runs: 1200, running: 60 };
const TIMES = 5;
const PATHS = [
  '/console',
  '/console?show=all',
  '/console/bots',
  '/console/tasks',
  '/console/tasks?sort=sharpe',
  '/console/halts',
  '/console/halt-all',
  `/console/bots/${ONE_OF_MANY}`,
  `/console/bots/${ONE_OF_MANY}/runs`,
];
const WHOLE_TABLE =
  /^SCAN (bots|bot_versions|bot_deployments|tasks|bot_events|trading_sessions|halts)$/;
const MOST_ROWS = 200;
const MOST_KIB = 64;

interface World {
  readonly server: TestApp;
  readonly visitor: Visitor;
}

let few: World;
let many: World;
beforeAll(async () => {
  few = await fill(1);
  many = await fill(TIMES);
});
afterAll(async () => {
  await few.server.close();
  await many.server.close();
});

async function fill(times: number): Promise<World> {
  const server = await newTestApp();
  const size = { ...FEW, bots: FEW.bots * times, runs: FEW.runs * times };
  await addManyBots(server.services.identity.storage, server.now, size);
  const { visitor } = await newSignedIn(server);
  return { server, visitor };
}

async function costOf({ visitor }: World, path: string): Promise<ReadCost & { bytes: number }> {
  let bytes = 0;
  const cost = await sqliteReadCostOf(async () => {
    const { status, text } = await visitor.open(path);
    expect([path, status]).toEqual([path, 200]);
    bytes = Buffer.byteLength(text);
  });
  return { ...cost, bytes };
}

test.each(PATHS)(
  `the page %s needs the same number of statements for ${TIMES} times as many bots and runs, at most ${MOST_ROWS} rows and ${MOST_KIB} KiB`,
  async (path) => {
    const [one, other] = [await costOf(few, path), await costOf(many, path)];
    expect(other.statements).toBe(one.statements);
    expect(Math.max(one.rows, other.rows)).toBeLessThanOrEqual(MOST_ROWS);
    expect(other.bytes).toBeLessThanOrEqual(MOST_KIB * 1024);
    // Such a step reads the whole table without an index.
    expect(other.plans.filter((step) => WHOLE_TABLE.test(step))).toEqual([]);
  },
);
