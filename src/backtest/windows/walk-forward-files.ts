import { join } from 'node:path';
import { renderWalkForwardReport } from '../report/walk-forward-report.ts';
import { csvCell } from '../result-csv.ts';
import { beginTables } from '../run-files.ts';
import { TRIAL_FIGURES } from '../search/trial-figures.ts';
import { writeText } from '../write-text.ts';
import type { WalkForwardDocument, WalkForwardOutcome } from './walk-forward-document.ts';
import type { WalkForward } from './walk-forward.ts';

/**
 * Writes the files of the joined tests, `windows.csv`, `report.html` and finally `walk_forward.json`.
 *
 * @throws ServiceError `output_not_writable`
 */
export async function writeWalkForward(
  directory: string,
  walk: WalkForward,
  { document: unhashed, tests }: WalkForwardOutcome,
): Promise<WalkForwardDocument> {
  const path = (name: string): string => join(directory, name);
  const tables = await beginTables(directory, walk.result, {
    closing: {
      reason: 'window_end',
      times: walk.windows.map((window) => window.result.time.at(-1)!),
    },
  });
  const hashes = await tables.hashes;
  const document: WalkForwardDocument = {
    ...unhashed,
    files: [...tables.files, 'report.html', 'walk_forward.json', 'windows.csv'].toSorted(),
    hashes,
  };
  await writeText(path('windows.csv'), windowLines(document));
  const { job, tested, result } = walk;
  const report = renderWalkForwardReport({
    document,
    summary: { ...tests.summary, files: document.files },
    result,
    drawdown: tables.drawdown,
    instruments: tested.instruments,
    calendar: job.config.calendar,
    currency: job.currency,
    benchmark: tests.benchmark.equity,
    exitReasons: tables.exitReasons,
  });
  await writeText(path('report.html'), [report]);
  await writeText(path('walk_forward.json'), [`${JSON.stringify(document, undefined, 2)}\n`]);
  return document;
}

/** Lines of `windows.csv`: dates, parameters and figures of each window, and why it is flat. */
function* windowLines({ axes, windows }: WalkForwardDocument): Generator<string> {
  const dates = ['train_from', 'train_to', 'test_from', 'test_to'];
  const figures = ['in_sample', 'out_of_sample'].flatMap((side) =>
    TRIAL_FIGURES.map((name) => `${side}_${name}`),
  );
  yield `${[...dates, ...axes.map(({ name }) => name), ...figures, 'flat'].map(csvCell).join(',')}\n`;
  for (const { train, test, params, in_sample, out_of_sample, flat } of windows) {
    const cells = [
      train.from,
      train.to,
      test.from,
      test.to,
      ...axes.map(({ name }) => params?.[name] ?? ''),
      ...[in_sample, out_of_sample].flatMap((metrics) =>
        TRIAL_FIGURES.map((name) => metrics?.[name] ?? ''),
      ),
      flat?.reason ?? '',
    ];
    yield `${cells.map(csvCell).join(',')}\n`;
  }
}
