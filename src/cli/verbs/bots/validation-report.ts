import { resolve } from 'node:path';
import type { getValidationReport } from '../../../api/compliance.ts';
import { ServiceError } from '../../../base/errors.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { parseCount } from '../../parse-count.ts';
import { REPORT_PATH, showReport } from '../../validation-report.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'draft the facts about a bot for the yearly self-assessment of RTS 6',
  description:
    'Facts about one bot for the self-assessment that Article 9 of RTS 6 asks of firms every year: an annex to the report of the firm. It drafts: whatever a person has to say is left empty and marked, and nothing is assessed by itself. What the records do not hold is listed as a gap. With --version, a report as it was frozen.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    year: { value: 'year', description: 'calendar year; by default this one', parse: parseCount },
    version: { value: 'n', description: 'of those that were frozen', parse: parseCount },
    format: {
      value: 'format',
      description: 'of the file of --out: html prints well',
      choices: ['json', 'html'],
      default: 'json',
    },
    out: { value: 'file', description: 'write it there', complete: 'file' },
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
      throw new ServiceError('usage', 'a page needs a file', { remedy: 'Name one with --out.' });
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
