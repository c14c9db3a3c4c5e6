import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../base/errors.ts';
import type { Rollout, Services, ServiceState } from './services.ts';

const FIRST_LOOK_MS = 250;
const LONGEST_WAIT_MS = 10_000;
/** Several times what a load balancer needs to drain a task. */
const PATIENCE_MS = 30 * 60_000;

export interface Awaited extends Rollout {
  /** Name of the service. */
  readonly name: string;
}

/**
 * Resolves when each rollout, or a later one of the same service, is done.
 * @param message receives the progress of a service when it changes.
 * @throws ServiceError `rollout_failed`; its reason is `too_slow` after 30 minutes.
 */
export async function waitForRollouts(
  services: Services,
  rollouts: readonly Awaited[],
  message: (text: string) => void,
): Promise<void> {
  const reported = new Map<string, string>();
  const began = performance.now();
  for (let wait = FIRST_LOOK_MS; ; wait = Math.min(LONGEST_WAIT_MS, wait * 1.5)) {
    const states = await services.states();
    const waiting = rollouts.filter(({ name, id, began_at }) => {
      const state = states.find((each) => each.name === name)!;
      assertNotFailed(state, id);
      // A rollout that was just started may not be listed yet.
      const isThere = state.rollout.id === id || state.rollout.began_at > began_at;
      const isDone = isThere && state.rollout.state === 'done';
      const text = `${state.role} ${name}: ${isDone ? 'redeployed' : 'redeploying'}, ${state.tasks.length} of ${state.wanted} tasks`;
      if (reported.get(name) !== text) message(text);
      reported.set(name, text);
      return !isDone;
    });
    if (waiting.length === 0) return;
    if (performance.now() - began > PATIENCE_MS) {
      const names = waiting.map(({ name }) => name).join(', ');
      throw new ServiceError('rollout_failed', `${names} did not redeploy within 30 minutes`, {
        reason: 'too_slow',
        remedy: 'Find out why the new tasks do not start. Running tasks keep their lease.',
      });
    }
    await delay(wait);
  }
}

function assertNotFailed({ name, rollout, failed_rollouts }: ServiceState, id: string): void {
  const isFailed =
    failed_rollouts.includes(id) || (rollout.id === id && rollout.state === 'failed');
  if (!isFailed) return;
  const why = rollout.detail === null ? '' : `: ${rollout.detail}`;
  throw new ServiceError('rollout_failed', `the new tasks of ${name} did not start${why}`, {
    remedy: 'Correct the cause, then run the command again. Running tasks keep their lease.',
  });
}
