/**
 * A process that runs tests in the given order, until one fails, and sends a report of each:
 * `run-tests.ts WITH_DATABASE TEST…`.
 */
import { join, relative, resolve } from 'node:path';
import type { TestCase, TestModule, TestSpecification } from 'vitest/node';
import { BaseSequencer, startVitest } from 'vitest/node';

export interface TestReport {
  /** Empty for an error outside of all tests. */
  readonly test: string;
  readonly ms: number;
  /** Title and error of its first failed test. */
  readonly failure?: string;
}

const [withDatabase, ...tests] = process.argv.slice(2);
const root = resolve(import.meta.dirname, '..');
const files = tests.map((test) => join(root, '..', test));

class InOrder extends BaseSequencer {
  override async sort(specifications: TestSpecification[]): Promise<TestSpecification[]> {
    return specifications.toSorted((a, b) => files.indexOf(a.moduleId) - files.indexOf(b.moduleId));
  }
}

process.once('SIGTERM', end);
process.once('disconnect', end);

const vitest = await startVitest('test', files, {
  config: resolve(root, 'vitest.config.ts'),
  run: true,
  maxWorkers: 1,
  // A test may fail by chance on a busy machine.
  retry: 1,
  silent: true,
  ...(withDatabase === 'false' && { globalSetup: [] }),
  sequence: { sequencer: InOrder },
  reporters: [
    {
      onTestCaseResult: reportFailure,
      onTestModuleEnd: reportModule,
      onTestRunEnd: (_modules, [error]) =>
        error && send({ test: '', ms: 0, failure: error.message }),
    },
  ],
});
await vitest.close();
end();

function reportFailure(test: TestCase): void {
  const { state, errors } = test.result();
  if (state !== 'failed') return;
  send({
    test: pathOf(test.module),
    ms: 0,
    failure: `${test.fullName}: ${errors[0]?.message.split('\n')[0]}`,
  });
}

function reportModule(module: TestModule): void {
  const { collectDuration, duration } = module.diagnostic();
  const ms = Math.round(collectDuration + duration);
  const [error] = module.errors();
  send({
    test: pathOf(module),
    ms,
    ...(!module.ok() && { failure: error?.message.split('\n')[0] ?? 'a hook failed' }),
  });
}

function pathOf(module: TestModule): string {
  return relative(join(root, '..'), module.moduleId);
}

/** Sends a report, and ends after the first failure. */
function send(report: TestReport): void {
  process.send!(report, () => report.failure === undefined || end());
}

/** Removes temporary files, as other listeners of `exit` do, and then ends all processes of tests. */
function end(): void {
  process.once('exit', () => process.kill(-process.pid, 'SIGKILL'));
  process.exit();
}
