import { parentPort, workerData } from 'node:worker_threads';
import { ServiceError } from '../errors.ts';
import type { TaskError } from '../tasks/lifecycle.ts';
import {
  doParity,
  doReplay,
  type LogPart,
  type RunParity,
  type RunReplay,
  type SessionWork,
} from './work.ts';

/** What the thread tells; `more` when it wants the next part of the log. */
export type ReplayMessage =
  | 'more'
  | 'loading'
  | 'loaded'
  | { readonly done: RunReplay | RunParity }
  | { readonly error: Pick<TaskError, 'code' | 'message' | 'reason' | 'remedy' | 'problems'> }
  | { readonly bug: unknown };

function send(message: ReplayMessage): void {
  parentPort!.postMessage(message);
}

async function* parts(): AsyncGenerator<LogPart> {
  for (;;) {
    const { promise, resolve } = Promise.withResolvers<LogPart>();
    parentPort!.once('message', resolve);
    send('more');
    yield await promise;
  }
}

try {
  const work = workerData as SessionWork;
  const loading = { onLoading: () => send('loading'), onLoaded: () => send('loaded') };
  const done =
    work.parity === undefined
      ? await doReplay(work, parts())
      : await doParity(work, work.parity, parts(), loading);
  send({ done });
} catch (error) {
  if (!(error instanceof ServiceError)) {
    send({ bug: error });
  } else {
    const { code, message, reason, remedy, problems } = error;
    send({
      error: {
        code,
        message,
        problems,
        ...(reason !== undefined && { reason }),
        ...(remedy !== undefined && { remedy }),
      },
    });
  }
}
