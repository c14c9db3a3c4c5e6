/**
 * A process that runs tests in the given order, until one fails, and sends a report of each:
 * `run-tests.ts WITH_DATABASE TEST…`.
 */
import { join, relative, resolve } from 'node:path';
import type { TestModule, TestSpecification } from 'vitest/node';
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
  bail: 1,
  maxWorkers: 1,
  silent: true,
  ...(withDatabase === 'false' && { globalSetup: [] }),
  sequence: { sequencer: InOrder },
  reporters: [
    {
      onTestModuleEnd: (module) => send(module),
      onTestRunEnd(_modules, errors) {
        const [error] = errors;
        if (error !== undefined) process.send!({ test: '', ms: 0, failure: error.message });
      },
    },
  ],
});
await vitest.close();
end();

/** Removes temporary files, as other listeners of `exit` do, and then ends all processes of tests. */
function end(): void {
  process.once('exit', () => process.kill(-process.pid, 'SIGKILL'));
  process.exit();
}

function send(module: TestModule): void {
  if (module.state() === 'skipped') return;
  const { collectDuration, duration } = module.diagnostic();
  const [failed] = module.children.allTests('failed');
  const [error] = [...(failed?.result().errors ?? []), ...module.errors()];
  // A hook may have failed instead of a test.
  const failure = `${failed?.fullName ?? 'hooks'}: ${error?.message.split('\n')[0] ?? 'failed'}`;
  const report: TestReport = {
    test: relative(join(root, '..'), module.moduleId),
    ms: Math.round(collectDuration + duration),
    ...(!module.ok() && { failure }),
  };
  process.send!(report);
}
