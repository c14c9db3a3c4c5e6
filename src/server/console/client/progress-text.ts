import type { Task } from '../../../api/tasks.ts';

/** The progress of a task as text. Runs both on the server and in the browser. */
export function progressText({ done, total }: Task['progress']): string {
  if (total === null) return `${done.toLocaleString('en-US')} ${done === 1 ? 'bar' : 'bars'}`;
  return `${Math.floor(total === 0 ? 100 : (100 * done) / total)} %`;
}
