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

  /** Runs tests in this order until one fails, at most for `ms`. */
  async runTests(tests: readonly string[], withDatabase: boolean, ms: number): Promise<TestRun> {
    const script = join(this.#tree, 'test/mutation/run-tests.ts');
    // A group of its own, so that all of its processes can be ended.
    const child = fork(script, [String(withDatabase), ...tests], {
      cwd: this.#tree,
      detached: true,
      stdio: 'ignore',
    });
    const reports: TestReport[] = [];
    child.on('message', (report: TestReport) => reports.push(report));
    // Unlike `exit`, `close` comes after the last message.
    const ended = once(child, 'close').then(() => false);
    const isLate = await Promise.race([ended, sleep(ms, true, { ref: false })]);
    if (isLate) {
      child.kill('SIGTERM');
      const isStuck = await Promise.race([ended, sleep(TERM_MS, true, { ref: false })]);
      if (isStuck) process.kill(-child.pid!, 'SIGKILL');
    }
    return { reports, isLate };
  }

  /** Checks the types of the whole project. */
  async compiles(): Promise<boolean> {
    const tsc = join(this.#tree, INSTALLED, 'typescript/bin/tsc');
    return run(process.execPath, [tsc, '--singleThreaded'], { cwd: this.#tree }).then(
      () => true,
      () => false,
    );
  }
}
