/** At least this share of the speed of the floor, or at most this multiple of its time. */
export type Goal = { readonly atLeast: number } | { readonly atMost: number };

/** One line of the table. */
export interface Row {
  readonly what: string;
  /** Name of the least that does the same work, measured in the same run. */
  readonly floor: string;
  readonly goal: Goal;
  /** Script of this folder that measures it in a process of its own, and its arguments. */
  readonly script: readonly [file: string, ...args: string[]];
}

const LOOP = 'hand-written loop over typed arrays';
const READING = 'reading the file into columns with DuckDB';
const FROM_MEMORY = 'the same bytes from memory';
const STATEMENTS = 'prepared statements of better-sqlite3';

export const ROWS: Readonly<Record<string, Row>> = {
  backtest: {
    what: 'backtest, SMA crossover, 1 M bars, settled',
    floor: LOOP,
    goal: { atLeast: 0.5 },
    script: ['backtest.ts', '1000000', '7'],
  },
  sweep: {
    what: 'sweep, 174 pairs × 100 k bars, 1 worker, settled',
    floor: LOOP,
    goal: { atLeast: 0.8 },
    script: ['sweep.ts', '100000', '1'],
  },
  'sweep-2': {
    what: 'the same sweep on 2 workers',
    floor: 'on 1 worker',
    goal: { atLeast: 1.8 },
    script: ['sweep.ts', '100000', '2'],
  },
  csv: {
    what: '1 M bars, CSV to result files, whole process',
    floor: READING,
    goal: { atMost: 3.5 },
    script: ['result-files.ts', 'csv', '1000000', '5'],
  },
  'csv-equity': {
    what: 'the same with --equity csv',
    floor: READING,
    goal: { atMost: 5 },
    script: ['result-files.ts', 'csv', '1000000', '5', '--equity', 'csv'],
  },
  parquet: {
    what: '5 M bars, Parquet to result files, whole process',
    floor: READING,
    goal: { atMost: 4 },
    script: ['result-files.ts', 'parquet', '5000000', '3'],
  },
  'issuance-sqlite': {
    what: 'lease issuance over HTTP, durable, SQLite',
    floor: 'Hono route that only signs',
    goal: { atLeast: 0.5 },
    script: ['issuance.ts', 'sqlite'],
  },
  'issuance-postgres': {
    what: 'lease issuance over HTTP, durable, PostgreSQL',
    floor: 'Hono route that only signs',
    goal: { atLeast: 0.25 },
    script: ['issuance.ts', 'postgres'],
  },
  gate: {
    what: 'gated route',
    floor: 'the same route ungated',
    goal: { atLeast: 0.97 },
    script: ['gate.ts'],
  },
  'append-1': {
    what: 'event append, 1 at once, settled',
    floor: STATEMENTS,
    goal: { atLeast: 0.5 },
    script: ['events.ts', 'append', '1', '4000'],
  },
  'append-10': {
    what: 'event append, 10 at once, settled',
    floor: STATEMENTS,
    goal: { atLeast: 0.5 },
    script: ['events.ts', 'append', '10', '1500'],
  },
  'append-1000': {
    what: 'event append, 1000 at once',
    floor: STATEMENTS,
    goal: { atLeast: 0.5 },
    script: ['events.ts', 'append', '1000', '10'],
  },
  read: {
    what: 'event read, in pages of 500',
    floor: STATEMENTS,
    goal: { atLeast: 0.5 },
    script: ['events.ts', 'read'],
  },
  replay: {
    what: 'event replay, with each hash verified',
    floor: STATEMENTS,
    goal: { atLeast: 0.5 },
    script: ['events.ts', 'replay'],
  },
  'halt-sqlite': {
    what: 'halt-all of 10,000 paper deployments, SQLite',
    floor: 'one SQL update of 10,000 rows',
    goal: { atMost: 30 },
    script: ['halt.ts', 'sqlite'],
  },
  'halt-postgres': {
    what: 'halt-all of 10,000 paper deployments, PostgreSQL',
    floor: 'one SQL update of 10,000 rows',
    goal: { atMost: 10 },
    script: ['halt.ts', 'postgres'],
  },
  'paint-overview': {
    what: 'first paint of the start page, 10,000 bots and 100,000 runs',
    floor: FROM_MEMORY,
    goal: { atMost: 3 },
    script: ['first-paint.ts', 'overview'],
  },
  'paint-bots': {
    what: 'first paint of the list of 10,000 bots',
    floor: FROM_MEMORY,
    goal: { atMost: 3 },
    script: ['first-paint.ts', 'bots'],
  },
  'paint-runs': {
    what: 'first paint of the list of 100,000 runs by Sharpe ratio',
    floor: FROM_MEMORY,
    goal: { atMost: 3 },
    script: ['first-paint.ts', 'runs'],
  },
  'paint-bot': {
    what: 'first paint of one of 10,000 bots',
    floor: FROM_MEMORY,
    goal: { atMost: 3 },
    script: ['first-paint.ts', 'bot'],
  },
  'paint-run': {
    what: 'first paint of a run of 1 M bars, with its report',
    floor: FROM_MEMORY,
    goal: { atMost: 3 },
    script: ['first-paint.ts', 'run'],
  },
  'paint-trades': {
    what: 'first paint of the trades of a run of 1 M bars',
    floor: FROM_MEMORY,
    goal: { atMost: 3 },
    script: ['first-paint.ts', 'trades'],
  },
  start: {
    what: 'service-local --version',
    floor: 'node -e 0',
    goal: { atMost: 1.5 },
    script: ['start.ts'],
  },
};
