import { parentPort } from 'node:worker_threads';
import { toErrorData, type ErrorData } from '../../base/error-data.ts';
import type { Progress } from '../tasks/lifecycle.ts';
import type { OwnTrials, ReportedTrials, TrialCounts } from '../tasks/trial-entries.ts';
import { doAnalysis, type AnalysisDone, type AnalysisWork } from './analysis-work.ts';

/** Message from the thread of an analysis. */
export type AnalysisMessage =
  | { readonly progress: Progress }
  | { readonly ended: ReportedTrials }
  /** Answered with `TrialCounts`. */
  | { readonly own: OwnTrials }
  | { readonly done: AnalysisDone }
  | { readonly error: ErrorData; readonly bug?: unknown };

/** Message to the thread of an analysis. */
export type AnalysisOrder =
  | { readonly work: AnalysisWork }
  | { readonly counts: TrialCounts }
  | 'stop';

const stop = new AbortController();
const counted = Promise.withResolvers<TrialCounts>();

function send(message: AnalysisMessage): void {
  parentPort!.postMessage(message);
}

async function work(asked: AnalysisWork): Promise<void> {
  try {
    const done = await doAnalysis(
      asked,
      {
        onProgress: (progress) => send({ progress }),
        record: (ended) => send({ ended }),
        count(own) {
          send({ own });
          return counted.promise;
        },
      },
      stop.signal,
    );
    send({ done });
  } catch (error) {
    send(toErrorData(error));
  } finally {
    parentPort!.close();
  }
}

parentPort!.on('message', (order: AnalysisOrder) => {
  if (order === 'stop') stop.abort(new Error('stopped'));
  else if ('counts' in order) counted.resolve(order.counts);
  else void work(order.work);
});
