import { join } from 'node:path';
import { renderRobustnessReport } from '../report/robustness-report.ts';
import { writeText } from '../write-text.ts';
import type { RobustnessDocument } from './robustness-document.ts';

/**
 * Writes `report.html` and then `robustness.json`.
 *
 * @returns the path of the report
 * @throws ServiceError `output_not_writable`
 */
export async function writeRobustness(
  directory: string,
  document: RobustnessDocument,
): Promise<string> {
  const report = join(directory, 'report.html');
  await writeText(report, [renderRobustnessReport(document)]);
  const text = `${JSON.stringify(document, undefined, 2)}\n`;
  await writeText(join(directory, 'robustness.json'), [text]);
  return report;
}
