import { globSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY } from '../../src/base/durations.ts';
import { readChangedSpec, type SpecChanges } from '../../src/bots/hosted.ts';
import { hostedBot } from '../../src/bots/load-bot.ts';
import { prepare } from '../../src/bots/prepare.ts';
import { barsFromRows } from '../../src/market/bars.ts';
import { importBars } from '../../src/market/catalogue.ts';
import { documentOn, fillCatalogue } from '../fleet/tasks/market.ts';

const START = Date.UTC(2000, 0, 1);
/** Start of the last 30 of 300 daily bars. */
const HOLDOUT_START = START + 270 * DAY;

let catalogueDir: string;
beforeAll(async () => {
  catalogueDir = await mkdtemp(join(tmpdir(), 'service-local-holdout-'));
  await fillCatalogue(catalogueDir, 10);
  const rows = Array.from(
    { length: 500 },
    (_, day) => [START + day * DAY, 9, 10, 8, 9, 1000] as const,
  );
  const about = { symbol: 'LATE', timeframe: '1d', hasVolume: true, origin: 'made up' } as const;
  await importBars(catalogueDir, barsFromRows(rows), {
    ...about,
    importedAt: '2026-01-02T00:00:00Z',
  });
});
afterAll(() => rm(catalogueDir, { recursive: true }));

const change = (data: object): SpecChanges => ({ patch: { spec: { data } } });

test.each<[string, SpecChanges]>([
  ['nothing', {}],
  ['a later end', { to: '2001-01-01' }],
  ['an earlier end', { to: '2000-08-01' }],
  ['a patched end', change({ to: '2001-01-01' })],
  ['longer data', change({ source: 'catalog://LATE' })],
  ['longer bars', change({ timeframe: '1w' })],
  ['months', change({ timeframe: '1mo' })],
  ['a shorter holdout', change({ holdout: '1d' })],
  ['no holdout', change({ holdout: null })],
  [
    'another symbol',
    { patch: { spec: { universe: { symbols: ['LATE'] }, data: { source: 'catalog://LATE' } } } },
  ],
])('a run or proposal that changes %s uses no bar of the holdout', async (_, changes) => {
  const document = documentOn('held', 'SPX', '1d') as { spec: { data: object } };
  const { spec } = document;
  const held = { ...document, spec: { ...spec, data: { ...spec.data, holdout: '30d' } } };
  const { job } = await prepare(hostedBot(readChangedSpec(held, changes)), {
    catalogueDir,
    assertions: [],
  });
  const [{ bars }] = job.instruments as [(typeof job.instruments)[0]];
  const last = bars.time[bars.length - 1]!;
  const length = job.barMs > 28 * DAY ? 31 * DAY : job.barMs;
  expect(last + length).toBeLessThanOrEqual(HOLDOUT_START);
  expect(job.holdout).toMatchObject({ period: '30d', is_open: false });
});

/** How each file outside `src/market` that reads bars treats a holdout. */
const READERS = {
  'src/backtest/file-thread.ts': 'reads for the `prepare` of a backtest',
  'src/backtest/file-thread-worker.ts': 'reads for `file-thread.ts`',
  'src/bots/prepare.ts': 'cuts the job before it, unless `opensHoldout` is set',
  'src/bots/check-wake.ts': 'uses `prepare`',
  'src/bots/data-checks.ts': 'reports missing and invalid bars, but runs no bot',
  'src/bots/library.ts': 'uses `prepare`',
  'src/bots/load-benchmark.ts': 'keeps the bars of the window of the job',
  'src/cli/new-bot.ts': 'reads the timeframe of a file',
  'src/cli/prepare-search.ts': 'uses `prepare`',
  'src/cli/verbs/backtest.ts': 'uses `prepare`; --open-holdout adds an entry to the ledger',
  'src/cli/verbs/data/import.ts': 'copies the bars',
  'src/fleet/analyses/analysis-work.ts': 'uses `prepare`',
  'src/fleet/parity/replay-work.ts': 'uses `prepare`',
  'src/fleet/tasks/backtest-work.ts': 'uses `prepare`; open_holdout adds an entry to the ledger',
  'src/trading/host/pod/deployed-bot.ts': 'uses `prepare`',
  'src/trading/host/threads/data-thread.ts': 'reads for the `prepare` of a session',
  'src/trading/host/threads/threaded-session.ts': 'uses `prepare`',
};

test('each file that reads bars states what it does with a holdout', () => {
  const root = join(import.meta.dirname, '../..');
  const files = globSync('{src,daemon}/**/*.ts', { cwd: root }).filter((file) => {
    if (file.startsWith('src/market/')) return false;
    const text = readFileSync(join(root, file), 'utf8');
    const names = [...text.matchAll(/^ *(?:import|const) \{([^}]*)\} *(?:from|= *await)/gm)];
    return (
      /\/(load-dataset|read-bars|read-columns|duckdb)\.ts'|\/prepare\.ts'/.test(text) &&
      names.some(([, list]) => /(?<!type )\b(loadDataset|readBars|prepare)\b/.test(list!))
    );
  });
  expect(files.toSorted()).toEqual(Object.keys(READERS).toSorted());
});
