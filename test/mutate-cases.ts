/**
 * Counts the faults in the handling of orders that the conformance catalogue finds. Puts each into a
 * copy of the source, and plays the catalogue there in a process of its own. `npm run mutate:cases`,
 * or `npm run mutate:cases WORD` for the faults with this word in their names or files.
 */
import { execFile } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { MUTATIONS } from './compliance/conformance/mutations.ts';
import { SCRATCH } from './scratch.ts';

const LONGEST_MS = 120_000;
const LEAST_SHARE = 0.9;

const run = promisify(execFile);
const root = resolve(import.meta.dirname, '..');
const word = process.argv[2] ?? '';
const chosen = MUTATIONS.filter(({ name, file }) => `${file} ${name}`.includes(word));
const place = mkdtempSync(join(SCRATCH, 'service-local-mutate-'));

try {
  process.exitCode = await tryAll();
} finally {
  rmSync(place, { recursive: true });
}

async function tryAll(): Promise<number> {
  const begun = performance.now();
  const known = await play(copy('as it is'), undefined);
  console.log(`as it is, these fail: ${[...new Set(known.map(caseOf))].join(', ')}`);
  const waiting = [...chosen];
  const missed: string[] = [];
  const unfit: string[] = [];
  const work = async (tree: string): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const file = join(tree, 'src', next.file);
      const before = readFileSync(file, 'utf8');
      if (!before.includes(next.from)) {
        unfit.push(next.name);
        continue;
      }
      writeFileSync(
        file,
        before.replace(next.from, () => next.to),
      );
      const found = (await play(tree, known)).filter((one) => !known.includes(one));
      writeFileSync(file, before);
      if (found.length === 0) missed.push(next.name);
      console.log(
        `${next.file}: ${next.name}: ${found.length === 0 ? 'NOT FOUND' : [...new Set(found.map(caseOf))].join()}`,
      );
    }
  };
  const workers = Array.from({ length: availableParallelism() }, (_, at) => copy(`tree-${at}`));
  await Promise.all(workers.map(work));
  const count = chosen.length - unfit.length;
  const share = (count - missed.length) / count;
  const seconds = ((performance.now() - begun) / 1000).toFixed(0);
  console.log(
    `${count - missed.length} of ${count} found (${(100 * share).toFixed(0)} %) in ${seconds} s`,
  );
  if (missed.length > 0) console.log(`not found: ${missed.join('; ')}`);
  if (unfit.length > 0) console.log(`the source no longer has the text of: ${unfit.join('; ')}`);
  return share >= LEAST_SHARE && unfit.length === 0 ? 0 : 1;
}

/** Extracts the id of the failed case from a fault. */
function caseOf(fault: string): string {
  return fault.split(' ')[1] ?? fault;
}

function copy(name: string): string {
  const tree = join(place, name.replaceAll(' ', '-'));
  mkdirSync(join(tree, 'test'), { recursive: true });
  for (const folder of ['src', 'examples', 'test/compliance']) {
    cpSync(join(root, folder), join(tree, folder), { recursive: true });
  }
  cpSync(join(root, 'package.json'), join(tree, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
  return tree;
}

/** Lists the failed cases. A process that does not end counts as a failure. */
async function play(tree: string, known: readonly string[] | undefined): Promise<string[]> {
  const script = join(tree, 'test/compliance/conformance/mutant.ts');
  const args = known === undefined ? [script] : [script, known.join('\n')];
  try {
    const { stdout } = await run(process.execPath, args, { timeout: LONGEST_MS, cwd: tree });
    return JSON.parse(stdout.trim().split('\n').at(-1)!) as string[];
  } catch (error) {
    if (known === undefined) throw error;
    return ['- no-end'];
  }
}
