import { resolve } from 'node:path';
import { ServiceError } from '../../../base/errors.ts';
import { parseCount } from '../../parse-count.ts';
import { defineVerb } from '../../verb.ts';

const INDEX = 'JOB_COMPLETION_INDEX';

export const verb = defineVerb({
  summary: 'run a shard of a search, as a pod in a cluster does',
  description:
    'Pods of `backtest sweep --on cluster:NAME` run this command. It reads its shard from the store, ' +
    'runs the trials in a sandbox, and stores their results. Kubernetes sets ' +
    'JOB_COMPLETION_INDEX, the index of the shard in the manifest.',
  arguments: {
    store: { description: 'directory, or s3://BUCKET/PREFIX', complete: 'directory' },
    manifest: { description: 'key of the manifest in the store' },
  },
  settings: ['custom_code_memory_mb'],
  examples: ['run shard s3://searches/team 4f1d…/jobs/search-07aa3f1c22d94e10'],
  async run({ settings, io, cwd, signal }, { store: place, manifest }) {
    const { openObjectStore } = await import('../../../deploy/searches/object-store.ts');
    const { runShardOfJob } = await import('../../../server/shard-of-job.ts');
    const text = io.env[INDEX];
    if (text === undefined) {
      throw new ServiceError('usage', `the environment has no ${INDEX}`, {
        remedy:
          'Kubernetes sets it for the pods of an Indexed Job. To try a shard, set it yourself.',
      });
    }
    const index = parseCount(text);
    const store = await openObjectStore(place.startsWith('s3://') ? place : resolve(cwd, place));
    const memoryMb = settings.custom_code_memory_mb;
    await runShardOfJob(store, { manifest, index, memoryMb, signal });
    return { data: { manifest, index }, show: (out) => out.line(`shard ${index} is done`) };
  },
});
