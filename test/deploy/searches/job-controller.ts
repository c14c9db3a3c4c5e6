import type { Store, Stored } from '../kubernetes/store.ts';

export interface JobController {
  /** Jobs that were created, oldest first. */
  readonly jobs: readonly Stored[];
  readonly close: () => void;
}

/**
 * Simulates the controller of Indexed Jobs: runs the pod of each index, again after a failure, and then
 * records the end of the Job. No pod starts after the Job is deleted.
 *
 * @param runPod runs a command; resolves with its exit code
 */
export function startJobController(
  store: Store,
  runPod: (command: readonly string[], index: number) => Promise<number | null>,
): JobController {
  const jobs: Stored[] = [];
  const exists = ({ metadata: { namespace, name, uid } }: Stored): boolean =>
    store.find('Job', namespace!, name)?.metadata.uid === uid;
  const attempt = async (job: Stored, index: number): Promise<boolean> => {
    const { backoffLimitPerIndex, template } = job.spec as unknown as JobSpec;
    const { command } = template.spec.containers[0]!;
    for (let times = 0; times <= backoffLimitPerIndex && exists(job); times += 1) {
      if ((await runPod(command, index)) === 0) return true;
    }
    return false;
  };
  const work = async (job: Stored): Promise<void> => {
    const { completions } = job.spec as unknown as JobSpec;
    const failed: number[] = [];
    for (let index = 0; index < completions; index += 1) {
      if (!(await attempt(job, index))) failed.push(index);
    }
    const { name, namespace } = job.metadata;
    if (!exists(job)) return;
    const current = store.find('Job', namespace!, name)!;
    const type = failed.length === 0 ? 'Complete' : 'Failed';
    const conditions = [{ type, status: 'True', reason: 'Ended', message: 'all pods ended' }];
    store.put({ ...current, status: { conditions, failedIndexes: failed.join(',') } });
  };
  const listener: Parameters<Store['listeners']['add']>[0] = ({ type, object }) => {
    if (object.kind !== 'Job' || type !== 'ADDED') return;
    jobs.push(object);
    void work(object);
  };
  store.listeners.add(listener);
  return { jobs, close: () => void store.listeners.delete(listener) };
}

interface JobSpec {
  readonly completions: number;
  readonly backoffLimitPerIndex: number;
  readonly template: {
    readonly spec: { readonly containers: readonly { readonly command: readonly string[] }[] };
  };
}
