import { resolve } from 'node:path';
import type { getValidationReport } from '../../../api/validation-reports.ts';
import { ServiceError } from '../../../base/errors.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { parseCount } from '../../parse-count.ts';
import { YEAR_OPTION, REPORT_PATH, showReport } from '../../validation-report.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'draft the facts about a bot for the yearly self-assessment of RTS 6',
  description:
    'Drafts the facts about one bot for the self-assessment that Article 9 of RTS 6 requires of firms every year, as an annex to the report of the firm. Fields that a person must fill are empty and marked, and nothing is assessed automatically. Facts that the records do not contain are listed as gaps. With --version, prints a frozen version of the report.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    year: YEAR_OPTION,
    version: { value: 'n', description: 'frozen version to print', parse: parseCount },
    format: {
      value: 'format',
      description: 'format of the file in --out; html is suitable for printing',
      choices: ['json', 'html'],
      default: 'json',
    },
    out: { value: 'file', description: 'write the report to this file', complete: 'file' },
  },
  settings: ['server_url'],
  examples: [
    'bots validation-report paper',
    'bots validation-report paper --year 2026 --format html --out report.html',
    'bots validation-report paper --version 2 --json',
  ],
  async run(context, { bot: bot_ref }, { year, version, format, out: given }) {
    if (year !== undefined && version !== undefined) {
      throw new ServiceError('usage', '--year and --version exclude each other');
    }
    if (format === 'html' && given === undefined) {
      throw new ServiceError('usage', '--format html requires --out', {
        remedy: 'Name a file with --out.',
      });
    }
    const server = await connect(context);
    const request = { params: { bot_ref }, query: { year, version, format } };
    const path = given === undefined ? undefined : resolve(context.cwd, given);
    if (path !== undefined && format === 'html') {
      const parts = server.file<typeof getValidationReport>(REPORT_PATH, request, 'text/html');
      const page = Buffer.concat(await Array.fromAsync(parts)).toString();
      await write(path, page);
      return { data: { out: path }, show: (out) => out.line(path) };
    }
    const report = await server.call<typeof getValidationReport>('get', REPORT_PATH, request);
    if (path !== undefined) await write(path, `${JSON.stringify(report, undefined, 2)}\n`);
    return { data: report, show: (out) => showReport(out, report) };
  },
});

async function write(path: string, text: string): Promise<void> {
  const { writeOutFile } = await import('../../out-file.ts');
  await writeOutFile({ path }, text);
}
