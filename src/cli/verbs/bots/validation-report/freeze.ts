import { resolve } from 'node:path';
import type { freezeValidationReport } from '../../../../api/validation-reports.ts';
import type { RequestOf } from '../../../../client/route.ts';
import { ServiceError } from '../../../../base/errors.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { connect } from '../../../connect.ts';
import { parseCount } from '../../../parse-count.ts';
import { YEAR_OPTION, REPORT_PATH, showReport } from '../../../validation-report.ts';
import { readNamedFile } from '../../../read-named-file.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'freeze a report with the answers of people as its next version',
  description:
    'Drafts the report again, fills in the answers of the file in --fill, and stores it as the next version, which never changes. The file is JSON: {"human": {"/testing/methodology_ref": "…", "/articles/15(3)/final": "partly"}, "deficiencies": […]}. A key is the path of a field in the output of `bots validation-report --json`, with the id of an item in place of its index. Answers in the previous version are kept; attestations are not, since they refer to another content.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    year: YEAR_OPTION,
    supersedes: {
      value: 'n',
      description: 'newest version of the year; required if there is one',
      parse: parseCount,
    },
    fill: { value: 'file', description: 'JSON file with answers', complete: 'file' },
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

/** The server validates the content. */
async function readFilling(file: string): Promise<Filling> {
  const text = await readNamedFile(file);
  try {
    return JSON.parse(text) as Filling;
  } catch (error) {
    throw new ServiceError('invalid_data', `${file} is not JSON: ${(error as Error).message}`);
  }
}
