/** A copy of the project, in which the tests of one mutant run at a time. */
import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { applyMutant, type Mutant } from './operators.ts';
import type { TestReport } from './run-tests.ts';

const run = promisify(execFile);

const INSTALLED = 'node_modules';
const LOCK = 'package-lock.json';
/** Time for the removal of temporary files. */
const TERM_MS = 10_000;

export interface TestRun {
  readonly reports: readonly TestReport[];
  readonly isLate: boolean;
}

export class Workspace {
  readonly #tree: string;

  private constructor(tree: string) {
    this.#tree = tree;
  }

  /** Copies the project; the installed packages are hard links, and stay from run to run. */
  static async open(root: string, tree: string): Promise<Workspace> {
    mkdirSync(tree, { recursive: true });
    const isInstalled =
      existsSync(join(tree, LOCK)) &&
      readFileSync(join(tree, LOCK), 'utf8') === readFileSync(join(root, LOCK), 'utf8');
    for (const name of readdirSync(tree)) {
      if (name !== INSTALLED || !isInstalled) rmSync(join(tree, name), { recursive: true });
    }
    if (!isInstalled) await run('cp', ['-al', join(root, INSTALLED), tree]);
    for (const name of readdirSync(root)) {
      if (name === INSTALLED || name === '.git') continue;
      cpSync(join(root, name), join(tree, name), {
        recursive: true,
        filter: (path) => !path.includes(`/${INSTALLED}`),
      });
    }
    return new Workspace(tree);
  }

  /** Runs `work` while the file of the mutant has its fault. */
  async during<T>(mutant: Mutant, work: () => Promise<T>): Promise<T> {
    const file = join(this.#tree, mutant.path);
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, applyMutant(text, mutant));
    try {
      return await work();
    } finally {
      writeFileSync(file, text);
    }
  }

  /**
   * Runs tests in this order until one fails or runs late.
   *
   * @param limitOf time limit of a test, ms
   */
  async runTests(
    tests: readonly string[],
    withDatabase: boolean,
    limitOf: (test: string) => number,
  ): Promise<TestRun> {
    const script = join(this.#tree, 'test/mutation/run-tests.ts');
    // A group of its own, so that all of its processes can be ended.
    const child = fork(script, [String(withDatabase), ...tests], {
      cwd: this.#tree,
      detached: true,
      stdio: 'ignore',
    });
    const reports: TestReport[] = [];
    const late = Promise.withResolvers<boolean>();
    let timer: NodeJS.Timeout;
    const awaitNext = (): void => {
      const next = tests.find((test) => !reports.some((report) => report.test === test));
      clearTimeout(timer);
      timer = setTimeout(() => late.resolve(true), limitOf(next ?? tests.at(-1)!));
    };
    awaitNext();
    child.on('message', (report: TestReport) => {
      reports.push(report);
      awaitNext();
    });
    // Unlike `exit`, `close` comes after the last message.
    const ended = once(child, 'close').then(() => false);
    const isLate = await Promise.race([ended, late.promise]);
    clearTimeout(timer!);
    if (isLate) {
      child.kill('SIGTERM');
      const isStuck = await Promise.race([ended, sleep(TERM_MS, true, { ref: false })]);
      if (isStuck) process.kill(-child.pid!, 'SIGKILL');
    }
    return { reports, isLate };
  }

  /**
   * Returns the mutants with a type error. All are checked at once, each as a copy of its file beside
   * it. An unchanged copy may have errors, too, since private fields make its classes other types.
   */
  async findTypeErrors(mutants: readonly Mutant[]): Promise<ReadonlySet<Mutant>> {
    const copies: string[] = [];
    const copy = (path: string, name: string, text: string): string => {
      const file = path.replace(/\.ts$/, `.${name}.ts`);
      writeFileSync(join(this.#tree, file), text);
      copies.push(file);
      return file;
    };
    const pairs = mutants.map((mutant, index) => {
      const text = readFileSync(join(this.#tree, mutant.path), 'utf8');
      const original = copy(mutant.path, 'original', text);
      return {
        mutant,
        original,
        mutated: copy(mutant.path, `${index}`, applyMutant(text, mutant)),
      };
    });
    const errors = await this.#checkTypes();
    for (const file of copies) rmSync(join(this.#tree, file), { force: true });
    const count = (file: string, error: string): number =>
      errors.get(file)?.filter((other) => other === error).length ?? 0;
    const isRejected = ({ original, mutated }: (typeof pairs)[number]): boolean =>
      errors.get(mutated)?.some((error) => count(mutated, error) > count(original, error)) ?? false;
    return new Set(pairs.filter(isRejected).map(({ mutant }) => mutant));
  }

  /** Returns the errors of each file, without their places. */
  async #checkTypes(): Promise<ReadonlyMap<string, readonly string[]>> {
    const tsc = join(this.#tree, INSTALLED, 'typescript/bin/tsc');
    const output = await run(process.execPath, [tsc, '--singleThreaded', '--pretty', 'false'], {
      cwd: this.#tree,
      maxBuffer: Infinity,
    }).then(
      () => '',
      ({ stdout }: { stdout: string }) => stdout,
    );
    const lines = [...output.matchAll(/^(\S+)\(\d+,\d+\): (error .*)$/gm)];
    return new Map(
      [...Map.groupBy(lines, ([, file]) => file!)].map(([file, found]) => [
        file,
        found.map(([, , error]) => error!),
      ]),
    );
  }
}
