import { inSpan, markSpan, withinSpan, type Span } from '../../base/tracing.ts';
import { isSession, type Claim } from './claim.ts';

/**
 * Runs an attempt at a task in the trace of the request that queued it. A session may last for months,
 * so its spans have no duration and receive its orders as children; `work` then gets no span.
 */
export async function inTaskSpan<T>(
  claim: Claim,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> {
  const { kind, traceparent: parent } = claim;
  const attributes = {
    'task.id': claim.task_id,
    'task.kind': kind,
    'task.attempt': claim.attempts,
    'bot.id': claim.bot_id,
    'bot.version': claim.version,
    'deployment.id': claim.deployment_id,
  };
  const options = { kind: 'consumer', parent, attributes } as const;
  if (!isSession(kind)) return inSpan(`task ${kind}`, options, work);
  const task = markSpan(`task ${kind}`, options);
  const own = kind === 'paper' ? withinSpan(task, () => markSpan('session', { attributes })) : task;
  return withinSpan(own, () => work(undefined));
}
