/**
 * Counts the faults that the tests find in the engine, in trading, in halts and in the daemon. Each of
 * 200 mutants, chosen by a fixed seed among those without a type error, is put into a copy of the
 * project. There, the nearest tests run until one fails.
 *
 * `npm run mutate`, or `npm run mutate PATH…` for mutants below these paths only. A run that was
 * stopped continues when it is started again. A result is used again until the file of the mutant
 * changes, or a test that decided it.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, globSync, mkdirSync, readFileSync } from 'node:fs';
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

/** Time limit of a test with a mutant, in multiples of its time without. */
const SLOWDOWN = 4;
/** Added to the limit, for the start of the test runner and of a database. */
const START_MS = 30_000;
/** Time limit of a test that was not measured. */
const FIRST_RUN_MS = 240_000;

/** `compiler`: it has a type error, so that it does not count. */
type Outcome = 'caught' | 'timeout' | 'compiler' | 'survived';

interface Result {
  readonly name: string;
  readonly outcome: Outcome;
  /** Tests that decided the outcome: the one that failed, or all that were selected. */
  readonly tests: readonly string[];
  /** Digest of the mutant, its file and these tests. */
  readonly key: string;
  /** Title of the test that failed, and its error. */
  readonly failure?: string;
  readonly ms: number;
}

/** Time of a test without a mutant. */
interface Measurement {
  /** Digest of the test. */
  readonly key: string;
  readonly ms: number;
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

/** Texts of files at the start: a change during the run does not disturb it. */
const texts = new Map<string, string>();
const importers = readImporters(root);
const all = globSync(SHIPPED, { cwd: root }).flatMap((path) => listMutants(path, read(path)));
const names = new Set(all.map(({ name }) => name));
const gone = Object.keys(SURVIVORS).filter((name) => !names.has(name));
const ranked = rankMutants(all, process.argv.slice(2));
const results = readResults();
const measurements = new Map(
  readLines<Measurement>(measurementFile).map(({ key, ms }) => [key, ms]),
);
const failing = new Set<string>();
if (gone.length > 0) {
  console.error(`test/mutation/survivors.ts lists what no longer exists:\n${gone.join('\n')}`);
  process.exitCode = 1;
} else if (ranked.length === 0) {
  console.error('none of these paths has mutants');
  process.exitCode = 1;
} else {
  const workspace = await openWorkspace(0);
  const sample = await chooseSample(workspace);
  await runAll(sample, workspace);
  process.exitCode = summarize(sample);
}

function openWorkspace(index: number): Promise<Workspace> {
  return Workspace.open(root, join(cache, `tree-${index}`));
}

/** Orders mutants at random, with at most one of a line. A change elsewhere does not change the order. */
function rankMutants(mutants: readonly Mutant[], paths: readonly string[]): Mutant[] {
  const below = mutants.filter(
    ({ path }) => paths.length === 0 || paths.some((prefix) => path.startsWith(prefix)),
  );
  const shuffled = below
    .map((mutant) => ({ mutant, rank: digest(SEED + mutant.name) }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1));
  const lines = new Map<string, Mutant>();
  for (const { mutant } of shuffled) {
    const line = `${mutant.path}:${mutant.line}`;
    if (!lines.has(line)) lines.set(line, mutant);
  }
  return [...lines.values()];
}

/** Chooses the first mutants without a type error. */
async function chooseSample(workspace: Workspace): Promise<Mutant[]> {
  const compiled = new Set<Mutant>();
  for (;;) {
    const sample = ranked
      .filter(({ name }) => results.get(name)?.outcome !== 'compiler')
      .slice(0, COUNT);
    const unknown = sample.filter((mutant) => !results.has(mutant.name) && !compiled.has(mutant));
    if (unknown.length === 0) return sample;
    const rejected = await workspace.findTypeErrors(unknown);
    for (const mutant of unknown) {
      if (rejected.has(mutant)) keep(mutant, { outcome: 'compiler', tests: [], ms: 0 });
      else compiled.add(mutant);
    }
  }
}

async function runAll(sample: readonly Mutant[], workspace: Workspace): Promise<void> {
  const waiting = sample.filter(({ name }) => !results.has(name));
  console.log(
    `${sample.length} mutants, ${waiting.length} of them to run; results in ${resultFile}`,
  );
  const work = async (index: number): Promise<void> => {
    const own = index === 0 ? workspace : await openWorkspace(index);
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const begun = performance.now();
      const found = await tryMutant(own, mutant);
      keep(mutant, { ...found, ms: Math.round(performance.now() - begun) });
    }
  };
  const workers = Math.min(availableParallelism(), waiting.length);
  await Promise.all(Array.from({ length: workers }, (_, index) => work(index)));
}

function keep(mutant: Mutant, found: Omit<Result, 'name' | 'key'>): void {
  const { name, line } = mutant;
  const result: Result = { name, key: keyOf(mutant, found.tests), ...found };
  append(resultFile, result);
  results.set(name, result);
  console.log(`${found.outcome} ${name} (line ${line}, ${seconds(found.ms)})`);
}

async function tryMutant(
  workspace: Workspace,
  mutant: Mutant,
): Promise<Pick<Result, 'outcome' | 'tests' | 'failure'>> {
  const selected = selectTests(mutant.path, importers, root);
  await measure(workspace, selected);
  const msOf = (test: string): number => measurements.get(digest(read(test)))!;
  const tests = selected.filter((test) => !failing.has(test)).toSorted((a, b) => msOf(a) - msOf(b));
  const limitOf = (test: string): number => START_MS + SLOWDOWN * msOf(test);
  return workspace.during(mutant, async () => {
    const { reports, isLate } = await workspace.runTests(tests, needDatabase(tests), limitOf);
    for (const { test, failure } of reports) {
      if (failure !== undefined)
        return { outcome: 'caught', tests: test === '' ? selected : [test], failure };
    }
    if (isLate) return { outcome: 'timeout', tests: selected };
    const missing = tests.filter((test) => !reports.some((one) => one.test === test));
    if (missing.length > 0) throw new Error(`${mutant.name}: no result of ${missing.join(', ')}`);
    return { outcome: 'survived', tests: selected };
  });
}

/** Runs tests without a mutant, unless that was done before. Those that fail are not used. */
async function measure(workspace: Workspace, tests: readonly string[]): Promise<void> {
  let unknown = tests.filter((test) => !failing.has(test) && !measurements.has(digest(read(test))));
  while (unknown.length > 0) {
    const { reports } = await workspace.runTests(
      unknown,
      needDatabase(unknown),
      () => FIRST_RUN_MS,
    );
    if (reports.length === 0) throw new Error(`${unknown.join(', ')} did not run`);
    for (const { test, ms, failure } of reports) {
      if (failure === undefined) {
        const key = digest(read(test));
        append(measurementFile, { key, ms });
        measurements.set(key, ms);
      } else {
        console.log(`${test} fails without a mutant: ${failure}`);
        failing.add(test);
      }
    }
    unknown = unknown.filter((test) => !reports.some((one) => one.test === test));
  }
}

function needDatabase(tests: readonly string[]): boolean {
  return tests.some((test) => reaches(test, DATABASES, importers));
}

/** @returns the exit code. */
function summarize(sample: readonly Mutant[]): number {
  const outcomes = sample.map((mutant) => ({ mutant, ...results.get(mutant.name)! }));
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
      `${count('timeout')} by a timeout, in ${seconds(time)} of one workspace`,
  );
  const isExplained = survived.every(({ name }) => SURVIVORS[name]);
  return share >= LEAST_SHARE && isExplained && caught.length === 0 ? 0 : 1;
}

function folderOf(path: string): string {
  const [top, folder, part, file] = path.split('/');
  if (top === 'daemon') return top;
  return folder === 'engine' || file === undefined ? `src/${folder}` : `src/${folder}/${part}`;
}

/** Results that are still valid, by the name of the mutant. */
function readResults(): Map<string, Result> {
  const mutants = new Map(ranked.map((mutant) => [mutant.name, mutant]));
  const valid = readLines<Result>(resultFile).filter(({ name, outcome, tests, key }) => {
    const mutant = mutants.get(name);
    if (mutant === undefined || key !== keyOf(mutant, tests)) return false;
    const wasRun = outcome === 'survived' || outcome === 'timeout';
    return !wasRun || tests.join() === selectTests(mutant.path, importers, root).join();
  });
  return new Map(valid.map((result) => [result.name, result]));
}

function keyOf({ name, path }: Mutant, tests: readonly string[]): string {
  return digest([name, read(path), ...tests.map((test) => `${test} ${read(test)}`)].join('\n'));
}

/** Returns '' for a file that does not exist, such as a test of an earlier run. */
function read(path: string): string {
  const file = join(root, path);
  const text = texts.get(path) ?? (existsSync(file) ? readFileSync(file, 'utf8') : '');
  texts.set(path, text);
  return text;
}

function readLines<T>(file: string): T[] {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
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
