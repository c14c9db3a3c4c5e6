import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { freezeValidationReport } from '../../../../api/compliance.ts';
import type { RequestOf } from '../../../../client/route.ts';
import { isSystemError, ServiceError } from '../../../../base/errors.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { connect } from '../../../connect.ts';
import { parseCount } from '../../../parse-count.ts';
import { REPORT_PATH, showReport } from '../../../validation-report.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'keep such a report as it is, with what people have put into it',
  description:
    'Drafts the report anew, puts into it what the file of --fill says, and keeps it as the next version, which never changes. The file is JSON: {"human": {"/testing/methodology_ref": "…", "/articles/15(3)/final": "partly"}, "deficiencies": […]}; a field goes by its place in the draft, as `bots validation-report --json` shows it, an item of a list by its id. What was put into the version before stays, and attestations do not: everybody has read another report.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    year: { value: 'year', description: 'calendar year; by default this one', parse: parseCount },
    supersedes: {
      value: 'n',
      description: 'the newest version of the year, where there is one',
      parse: parseCount,
    },
    fill: { value: 'file', description: 'what people have to say', complete: 'file' },
  },
  settings: ['server_url'],
  examples: [
    'bots validation-report freeze paper --fill answers.json',
    'bots validation-report freeze paper --year 2026 --supersedes 1',
  ],
  async run(context, { bot: bot_ref }, { year, supersedes, fill }) {
    const filling = fill === undefined ? {} : await readFilling(resolve(context.cwd, fill));
    const server = await connect(context);
    const report = await server.call<typeof freezeValidationReport>('post', REPORT_PATH, {
      params: { bot_ref },
      headers: {},
      body: { ...filling, year, supersedes },
    });
    return { data: report, show: (out) => showReport(out, report) };
  },
});

type Filling = Pick<
  Extract<RequestOf<typeof freezeValidationReport>['body'], { human?: unknown }>,
  'human' | 'deficiencies'
>;

/** What is wrong in it, the server says. */
async function readFilling(file: string): Promise<Filling> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('file_not_found', `cannot read ${file} (${error.code})`);
  });
  try {
    return JSON.parse(text) as Filling;
  } catch (error) {
    throw new ServiceError('invalid_data', `${file} is no JSON: ${(error as Error).message}`);
  }
}
