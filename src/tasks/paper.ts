/** What is asked of paper sessions: to start, and to stop. */
import { ServiceError } from '../errors.ts';
import type { SpecChanges } from '../bots/hosted.ts';
import type { Task, TaskService } from './tasks.ts';

export interface PaperRequest extends SpecChanges {
  /** The current one by default. */
  readonly version?: number | undefined;
  /** How many times as fast as the market was, above 0, or as fast as it goes; 1 by default. */
  readonly speed?: number | 'max' | undefined;
}

/** Queues a paper session of a version of a bot. A draft becomes active. */
export async function startPaper(
  _service: TaskService,
  _by: string,
  _ref: string,
  _request: PaperRequest,
): Promise<Pick<Task, 'task_id' | 'status'>> {
  throw new ServiceError('failure', 'not yet');
}

/** Has a paper session end with what it has come to. */
export async function stopPaper(
  _service: Pick<TaskService, 'storage' | 'clock'>,
  _by: string,
  _task_id: string,
): Promise<Task> {
  throw new ServiceError('failure', 'not yet');
}
