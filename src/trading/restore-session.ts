import { engineConfig } from '../bots/spec.ts';
import type { Step } from '../engine/steps.ts';
import { ServiceError } from '../base/errors.ts';
import { stateHash, type SessionState } from '../events/session-state.ts';
import type { SessionInput } from './session-events.ts';
import type { HostedRun } from './sandbox/hosted-run.ts';
import { TradingSession, type SessionSetup } from './trading-session.ts';

/** Steps shown at once to a strategy in another process. */
const STEPS_AT_ONCE = 256;

/**
 * Restores a session from its recorded inputs.
 *
 * @param recorded the state after these inputs; undefined if none was recorded.
 * @throws ServiceError reason `not_reproducible` if the inputs lead to another state.
 */
export async function restoreSession(
  { bot: { strategy, params, spec }, signals, take, warmUp }: HostedRun,
  terms: Pick<SessionSetup, 'timeoutMs' | 'opening' | 'venue'>,
  inputs: AsyncIterable<SessionInput>,
  recorded: SessionState | undefined,
): Promise<TradingSession> {
  const { symbols } = spec.spec.universe;
  const setup = { symbols, strategy, params, config: engineConfig(spec), signals, ...terms };
  const session = await TradingSession.resume(setup, showSteps(inputs, take, warmUp));
  if (recorded === undefined || stateHash(session.state()) === stateHash(recorded)) return session;
  throw new ServiceError('failure', 'the recorded inputs lead to another state than was recorded', {
    reason: 'not_reproducible',
    remedy: 'Deploy the bot again: the engine or the strategy is not the one that recorded them.',
  });
}

/** Yields the inputs after their steps were shown. */
async function* showSteps(
  inputs: AsyncIterable<SessionInput>,
  show: (steps: readonly Step[]) => Promise<void>,
  warmUp: HostedRun['warmUp'],
): AsyncGenerator<SessionInput> {
  let some: SessionInput[] = [];
  const flush = async function* () {
    const all = some;
    some = [];
    for (const input of all) if (input.kind === 'data.warm_up') warmUp(input);
    const steps = all.flatMap((input) => (input.kind === 'data.bars' ? [input.step] : []));
    if (steps.length > 0) await show(steps);
    yield* all;
  };
  for await (const input of inputs) {
    some.push(input);
    if (some.length === STEPS_AT_ONCE) yield* flush();
  }
  yield* flush();
}
