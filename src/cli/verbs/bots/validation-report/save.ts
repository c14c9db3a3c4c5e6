import type { saveValidationAnswers } from '../../../../api/validation-drafts.ts';
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
  summary: 'save answers of people in the draft of a report',
  description:
    'Saves the answers of the file in --fill, as the form in the console does, without freezing the report. The file is the same as for `bots validation-report freeze`. Each gap has an owner and a due date: {"human": {"/generated_by/gaps/no_drill/owner": "Risk management", "/generated_by/gaps/no_drill/due": "2027-01-31"}}. By default, the answers replace the saved ones; with --revision, the command fails if one has changed since that revision. Without --fill, updates only what the report over all bots shows of this bot.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    year: YEAR_OPTION,
    revision: {
      value: 'n',
      description: 'fail if one of the answers has changed since this revision of the draft',
      parse: parseCount,
    },
    fill: FILL_OPTION,
  },
  settings: ['server_url'],
  examples: [
    'bots validation-report save paper --fill answers.json',
    'bots validation-report save paper --year 2026 --revision 3 --fill answers.json',
  ],
  async run(context, { bot: bot_ref }, { year, revision, fill }) {
    const filling = await readFilling(context, fill);
    const server = await connect(context);
    const report = await server.call<typeof saveValidationAnswers>('patch', REPORT_PATH, {
      params: { bot_ref },
      body: { ...filling, year, revision },
    });
    return { data: report, show: (out) => showReport(out, report) };
  },
});
