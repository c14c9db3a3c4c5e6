import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ServiceError } from '../../src/base/errors.ts';
import { prepareSearch } from '../../src/cli/prepare-search.ts';
import type { Context } from '../../src/cli/verb.ts';

const NONE = { from: undefined, to: undefined };

test('Ctrl-C while the data are read says that no trial was run, and how to continue', async () => {
  const controller = new AbortController();
  const settings = { catalogue_dir: '/none' };
  const context = { cwd: import.meta.dirname, settings, signal: controller.signal, message() {} };
  const bot = join(import.meta.dirname, '../../examples/sma-crossover.yaml');
  const prepared = prepareSearch(context as unknown as Context, bot, NONE);
  controller.abort(new ServiceError('interrupted', 'interrupted by SIGINT'));
  await expect(prepared).rejects.toMatchObject({
    code: 'interrupted',
    message: 'interrupted before the first trial: no trial was run or saved by this command',
    remedy: expect.stringContaining('Run the same command again'),
  });
});
