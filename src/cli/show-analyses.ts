import type { RobustnessDocument } from '../backtest/robustness/robustness-document.ts';
import type { SweepDocument } from '../backtest/search/sweep-document.ts';
import type { WalkForwardDocument } from '../backtest/windows/walk-forward-document.ts';
import { showSweep } from './show-backtest.ts';
import { showRobustness } from './show-robustness.ts';
import { showWalkForward } from './show-walk-forward.ts';
import type { Answer } from './verb.ts';

const SHOWN_TRIALS = 10;

/** Shows a search that ran on a server as its command does; undefined for any other result. */
export function analysisAnswer(data: Readonly<Record<string, unknown>>): Answer | undefined {
  switch (data['schema']) {
    case 'service-local/sweep/v1':
      return {
        data,
        show: (out) => showSweep(out, data as unknown as SweepDocument, SHOWN_TRIALS),
      };
    case 'service-local/walk-forward/v1':
      return { data, show: (out) => showWalkForward(out, data as unknown as WalkForwardDocument) };
    case 'service-local/robustness/v1':
      return { data, show: (out) => showRobustness(out, data as unknown as RobustnessDocument) };
    default:
      return undefined;
  }
}
