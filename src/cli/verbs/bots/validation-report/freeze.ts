import type { freezeValidationReport } from '../../../../api/validation-reports.ts';
import { formatCountOf } from '../../../../base/format.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { connect } from '../../../connect.ts';
import { parseCount } from '../../../parse-count.ts';
import {
  FILL_OPTION,
  readFilling,
  REPORT_PATH,
  showReport,
  YEAR_OPTION,
} from '../../../validation-report.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'freeze a report with the answers of people as its next version',
  description:
    'Drafts the report again, fills in the answers of the file in --fill, and stores it as the next version, which never changes. The file is JSON: {"human": {"/testing/methodology_ref": "…", "/articles/15(3)/final": "partly"}, "deficiencies": […]}. A key is the path of a field in the output of `bots validation-report --json`, with the id of an item in place of its index. Saved answers and those of the previous version are kept; attestations are not, since they refer to another content.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    year: YEAR_OPTION,
    supersedes: {
      value: 'n',
      description: 'newest version of the year; required if there is one',
      parse: parseCount,
    },
    fill: FILL_OPTION,
  },
  settings: ['server_url'],
  examples: [
    'bots validation-report freeze paper --fill answers.json',
    'bots validation-report freeze paper --year 2026 --supersedes 1',
  ],
  async run(context, { bot: bot_ref }, { year, supersedes, fill }) {
    const filling = await readFilling(context, fill);
    const server = await connect(context);
    const report = await server.call<typeof freezeValidationReport>('post', REPORT_PATH, {
      params: { bot_ref },
      headers: {},
      body: { ...filling, year, supersedes },
    });
    const discarded = report.number?.supersedes?.attested ?? [];
    if (discarded.length > 0) {
      const what = formatCountOf(discarded.length, 'attestation');
      context.message(`note: not kept in the new version: ${what} of version ${supersedes}`);
    }
    return { data: report, show: (out) => showReport(out, report) };
  },
});
