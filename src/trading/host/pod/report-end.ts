import { toErrorData } from '../../../base/error-data.ts';
import type { ServiceError } from '../../../base/errors.ts';
import type { PodRunner } from './pod-runner.ts';
import type { Ended } from './server-connection.ts';
import type { RunEnd, TradeOptions } from './trade-options.ts';

/** Time for the report. Together with canceling, it fits into the minute before a cluster kills a pod, ms. */
const REPORT_WITHIN_MS = 25_000;

/** Reports to the server how the deployment ended, and records an end that is final. */
export async function reportEnd(
  { hosted, work, workingAtEnd }: PodRunner,
  { journal, log }: TradeOptions,
): Promise<RunEnd> {
  const { claim, verified = false } = hosted.life;
  const { outcome, isFinal, error } = hosted.life.ending!;
  const { server } = work;
  const left = new Set(hosted.life.isAtVenue ? hosted.working.map(({ order }) => order) : []);
  const orders = workingAtEnd.map(({ order, symbol }) => ({
    order,
    symbol,
    verified: verified || (hosted.session !== undefined && !left.has(order)),
  }));
  const keepEnd = (): Promise<void> =>
    journal.keepEnd({ outcome }).catch((fault: unknown) => {
      log.error(`the end could not be recorded: ${String(fault)}`);
    });
  const state = hosted.session?.state() ?? journal.state;
  const end = { outcome, verified, orders, error, state, steps: journal.steps };
  if (claim === 'gone' && verified) await keepEnd();
  if (server === undefined || claim === 'gone') return end;
  const answer = await server.end(
    {
      outcome: outcome === 'finished' ? 'stopped' : outcome,
      verified,
      orders,
      error: error === undefined ? null : reportedError(error),
    },
    REPORT_WITHIN_MS,
  );
  if (answer === undefined && server.hasClaim) {
    log.warn('the end could not be reported to the server');
  }
  const isOver = isFinal && verified && (outcome === 'failed' || answer?.command !== 'trade');
  if (answer !== undefined && isOver) await keepEnd();
  return end;
}

function reportedError(thrown: ServiceError): Ended['error'] {
  const { code, message, reason, remedy } = toErrorData(thrown).error;
  return {
    code,
    message,
    ...(reason !== undefined && { reason }),
    ...(remedy !== undefined && { remedy }),
  };
}
