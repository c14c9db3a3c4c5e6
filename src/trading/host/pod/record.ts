import { alertsOf } from '../../alerts.ts';
import { progressEvents } from '../../session-events.ts';
import type { SessionInput } from '../../session-input.ts';
import type { Progress } from '../../../events/session-state.ts';
import { inputEvent } from './input-events.ts';
import type { Runner } from './runner.ts';

/** Notes what the session was told, and what came of it. @param why what is to be known of a halt. */
export function take(runner: Runner, input: SessionInput, progress: Progress, why = {}): void {
  runner.events.push(inputEvent(input, Date.now(), why), ...progressEvents(progress));
  runner.parts.metrics.count(progress.events);
}

/**
 * Puts on disk what was noted, and the state after it.
 * @throws ServiceError `storage_unavailable`
 */
export async function record(runner: Runner): Promise<void> {
  const { session, parts } = runner;
  const events = runner.events.splice(0);
  if (runner.isBroken || session === undefined) return;
  const state = session.state();
  await parts.journal.append(events, state, runner.steps);
  parts.metrics.show(state);
  const alerts = alertsOf(events);
  for (const alert of alerts) parts.metrics.alerted(alert);
  // Whoever is to be told is told by the server, and not only when the next report is due.
  if (alerts.length > 0) runner.server?.report();
}
