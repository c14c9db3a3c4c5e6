import { setTimeout as delay } from 'node:timers/promises';
import { ServiceError } from '../../base/errors.ts';
import type { Rollout, Services, ServiceState } from './services.ts';

const FIRST_LOOK_MS = 250;
const LONGEST_WAIT_MS = 10_000;
/** Longer than a load balancer takes to drain a task, several times over. */
const PATIENCE_MS = 30 * 60_000;

/** A rollout to wait for, and of which service. */
export interface Awaited extends Rollout {
  readonly name: string;
}

/**
 * Resolves when each of them, or a later one of the same service, is done.
 * @param message told how far each is, when that changes.
 * @throws ServiceError `rollout_failed`
 */
export async function waitForRollouts(
  services: Services,
  rollouts: readonly Awaited[],
  message: (text: string) => void,
): Promise<void> {
  const told = new Map<string, string>();
  const began = performance.now();
  for (let wait = FIRST_LOOK_MS; ; wait = Math.min(LONGEST_WAIT_MS, wait * 1.5)) {
    const states = await services.states();
    const waiting = rollouts.filter(({ name, id, began_at }) => {
      const state = states.find((each) => each.name === name)!;
      refuseFailed(state, id);
      // What was asked for may show only a little later.
      const isThere = state.rollout.id === id || state.rollout.began_at > began_at;
      const isDone = isThere && state.rollout.state === 'done';
      const text = `${state.role} ${name}: ${isDone ? 'runs anew' : 'is being replaced'}, ${state.tasks.length} of ${state.wanted} tasks`;
      if (told.get(name) !== text) message(text);
      told.set(name, text);
      return !isDone;
    });
    if (waiting.length === 0) return;
    if (performance.now() - began > PATIENCE_MS) {
      const names = waiting.map(({ name }) => name).join(', ');
      throw new ServiceError('rollout_failed', `half an hour was not enough for ${names}`, {
        reason: 'too_slow',
        remedy: 'See why its new tasks do not come up. What runs keeps the lease it has.',
      });
    }
    await delay(wait);
  }
}

function refuseFailed({ name, rollout, failed_rollouts }: ServiceState, id: string): void {
  const isFailed =
    failed_rollouts.includes(id) || (rollout.id === id && rollout.state === 'failed');
  if (!isFailed) return;
  const why = rollout.detail === null ? '' : `: ${rollout.detail}`;
  throw new ServiceError('rollout_failed', `the new tasks of ${name} did not come up${why}`, {
    remedy: 'See why, then run it again. What runs keeps the lease it has.',
  });
}
