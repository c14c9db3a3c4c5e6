/**
 * Counts the faults that the tests find in the engine, in trading, in halts and in the daemon. Each of
 * 200 mutants, chosen by a fixed seed, is put into a copy of the project. There, the nearest tests run
 * until one fails.
 *
 * `npm run mutate`, or `npm run mutate PATH…` for mutants below these paths only. A run that was
 * stopped continues when it is started again. A result is used again until the file of the mutant or
 * one of its tests changes.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, globSync, mkdirSync, readFileSync } from 'node:fs';
import { availableParallelism, homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { listMutants, type Mutant } from './mutation/operators.ts';
import { reaches, readImporters, selectTests } from './mutation/related.ts';
import { SURVIVORS } from './mutation/survivors.ts';
import { Workspace } from './mutation/workspace.ts';

const SHIPPED = '{daemon,src/engine,src/trading,src/fleet/halts}/**/*.ts';
const DATABASES = 'test/storage/databases.ts';
const SEED = 'service-local';
const COUNT = 200;
const LEAST_SHARE = 0.9;

/** Time limit of the tests of a mutant, in multiples of their time without it. */
const SLOWDOWN = 4;
/** Added to the limit, for the start of the test runner and of a database. */
const START_MS = 60_000;

/** `compiler`: only the type check fails. */
type Outcome = 'caught' | 'timeout' | 'compiler' | 'survived';

interface Result {
  readonly name: string;
  /** Digest of everything that the outcome depends on. */
  readonly key: string;
  readonly outcome: Outcome;
  /** First test that failed, and its error. */
  readonly by?: string;
  readonly ms: number;
}

/** Time of a test without a mutant; `undefined` if it fails. */
interface Measurement {
  readonly key: string;
  readonly ms?: number;
}

const root = resolve(import.meta.dirname, '..');
const cache = join(
  process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
  'service-local-mutants',
  digest(root).slice(0, 8),
);
mkdirSync(cache, { recursive: true });
const resultFile = join(cache, 'results.jsonl');
const measurementFile = join(cache, 'measurements.jsonl');

const importers = readImporters(root);
const results = new Map(readLines<Result>(resultFile).map((result) => [result.key, result]));
const measurements = new Map(readLines<Measurement>(measurementFile).map((one) => [one.key, one]));

const all = globSync(SHIPPED, { cwd: root }).flatMap((path) => listMutants(path, read(path)));
const names = new Set(all.map(({ name }) => name));
const gone = Object.keys(SURVIVORS).filter((name) => !names.has(name));
const sample = chooseMutants(all, process.argv.slice(2));
if (gone.length > 0) {
  console.error(`test/mutation/survivors.ts lists what no longer exists:\n${gone.join('\n')}`);
  process.exitCode = 1;
} else {
  await runAll();
  process.exitCode = summarize();
}

/** Chooses at most one mutant of a line. A change elsewhere does not change the choice. */
function chooseMutants(mutants: readonly Mutant[], paths: readonly string[]): Mutant[] {
  const below = mutants.filter(
    ({ path }) => paths.length === 0 || paths.some((prefix) => path.startsWith(prefix)),
  );
  const ranked = below
    .map((mutant) => ({ mutant, rank: digest(SEED + mutant.name) }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1));
  const lines = new Map<string, Mutant>();
  for (const { mutant } of ranked) {
    const line = `${mutant.path}:${mutant.line}`;
    if (!lines.has(line)) lines.set(line, mutant);
  }
  return [...lines.values()].slice(0, COUNT);
}

async function runAll(): Promise<void> {
  const waiting = sample.filter((mutant) => !results.has(keyOf(mutant)));
  console.log(
    `${sample.length} mutants, ${waiting.length} of them to run; results in ${resultFile}`,
  );
  const work = async (index: number): Promise<void> => {
    if (waiting.length === 0) return;
    const workspace = await Workspace.open(root, join(cache, `tree-${index}`));
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const begun = performance.now();
      const found = await tryMutant(workspace, mutant);
      const ms = Math.round(performance.now() - begun);
      const result: Result = { name: mutant.name, key: keyOf(mutant), ...found, ms };
      append(resultFile, result);
      results.set(result.key, result);
      console.log(`${found.outcome} ${mutant.name} (line ${mutant.line}, ${seconds(ms)})`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, (_, index) => work(index)));
}

async function tryMutant(
  workspace: Workspace,
  mutant: Mutant,
): Promise<Pick<Result, 'outcome' | 'by'>> {
  const selected = selectTests(mutant.path, importers, root);
  await measure(workspace, selected);
  const msOf = (test: string): number | undefined => measurements.get(digest(read(test)))?.ms;
  const tests = selected
    .filter((test) => msOf(test) !== undefined)
    .toSorted((a, b) => msOf(a)! - msOf(b)!);
  const limit = START_MS + SLOWDOWN * tests.reduce((sum, test) => sum + msOf(test)!, 0);
  return workspace.during(mutant, async () => {
    const { reports, isLate } = await workspace.runTests(tests, needDatabase(tests), limit);
    const failed = reports.find(({ failure }) => failure !== undefined);
    if (failed) return { outcome: 'caught', by: `${failed.test} ${failed.failure}` };
    if (isLate) return { outcome: 'timeout' };
    if (reports.length < tests.length) throw new Error(`the tests of ${mutant.path} did not run`);
    return { outcome: (await workspace.compiles()) ? 'survived' : 'compiler' };
  });
}

/** Runs tests without a mutant that have not been measured yet. Those that fail are not used. */
async function measure(workspace: Workspace, tests: readonly string[]): Promise<void> {
  let unknown = tests.filter((test) => !measurements.has(digest(read(test))));
  while (unknown.length > 0) {
    const limit = unknown.length * START_MS * SLOWDOWN;
    const { reports } = await workspace.runTests(unknown, needDatabase(unknown), limit);
    if (reports.length === 0) throw new Error(`${unknown.join(', ')} did not run`);
    for (const { test, ms, failure } of reports.filter((one) => one.test !== '')) {
      if (failure !== undefined) console.log(`${test} fails without a mutant: ${failure}`);
      const key = digest(read(test));
      const measured: Measurement = { key, ...(failure === undefined && { ms }) };
      append(measurementFile, measured);
      measurements.set(key, measured);
    }
    unknown = unknown.filter((test) => !reports.some((one) => one.test === test));
  }
}

function needDatabase(tests: readonly string[]): boolean {
  return tests.some((test) => reaches(test, DATABASES, importers));
}

/** @returns the exit code. */
function summarize(): number {
  const outcomes = sample.map((mutant) => ({ mutant, ...results.get(keyOf(mutant))! }));
  const count = (outcome: Outcome, of = outcomes): number =>
    of.filter((one) => one.outcome === outcome).length;
  const survived = outcomes.filter(({ outcome }) => outcome === 'survived');
  for (const { mutant } of survived) {
    const reason = SURVIVORS[mutant.name] ?? 'NO REASON LISTED';
    console.log(`survived at ${mutant.path}:${mutant.line}: ${mutant.name}: ${reason}`);
  }
  const caught = outcomes.filter(({ name, outcome }) => outcome !== 'survived' && SURVIVORS[name]);
  for (const { name } of caught) console.log(`listed as a survivor, but caught: ${name}`);
  for (const [folder, of] of Map.groupBy(outcomes, ({ mutant }) => folderOf(mutant.path))) {
    console.log(`${folder}: ${of.length - count('survived', of)} of ${of.length} caught`);
  }
  const share = 1 - survived.length / outcomes.length;
  const time = outcomes.reduce((sum, { ms }) => sum + ms, 0);
  console.log(
    `${outcomes.length - survived.length} of ${outcomes.length} caught (${(100 * share).toFixed(1)} %), ` +
      `${count('timeout')} by a timeout, ${count('compiler')} by the compiler, in ${seconds(time)} of one workspace`,
  );
  const isExplained = survived.every(({ name }) => SURVIVORS[name]);
  return share >= LEAST_SHARE && isExplained && caught.length === 0 ? 0 : 1;
}

function folderOf(path: string): string {
  const [top, folder, part, file] = path.split('/');
  if (top === 'daemon') return top;
  return folder === 'engine' || file === undefined ? `src/${folder}` : `src/${folder}/${part}`;
}

function keyOf(mutant: Mutant): string {
  const tests = selectTests(mutant.path, importers, root).map((test) => `${test} ${read(test)}`);
  return digest([mutant.name, read(mutant.path), ...tests].join('\n'));
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

function readLines<T>(file: string): T[] {
  const isThere = globSync(file).length > 0;
  const lines = isThere ? readFileSync(file, 'utf8').split('\n') : [];
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as T);
}

function append(file: string, value: Result | Measurement): void {
  appendFileSync(file, `${JSON.stringify(value)}\n`);
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
