import type {
  freezeValidationReport,
  getValidationReport,
} from '../../../../api/validation-reports.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { parseCount } from '../../../parse-count.ts';
import { REPORT_PATH, showReport } from '../../../validation-report.ts';
import { ATTESTING_ROLES } from '../../../../base/validation-report-fields.ts';
import { listOpenItems } from '../../../../base/validation-report-status.ts';
import { CODE_OPTION, stepUp } from '../../../step-up.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'attest a frozen report in one role',
  description:
    'Creates the next version of the report, which differs only by your attestation. You attest with your own token and your own second factor. Each role must be attested by a different person. The report counts as signed once risk management, technical staff and senior management have attested, and internal audit has attested or the report states why there is none. A signed report names everything that is still open in it.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    version: {
      value: 'n',
      description: 'version that you have read: the newest of its year',
      required: true,
      parse: parseCount,
    },
    role: {
      value: 'role',
      description: 'role in which you attest',
      required: true,
      choices: ATTESTING_ROLES,
    },
    code: CODE_OPTION,
  },
  examples: [
    'bots validation-report attest paper --version 1 --role risk_management_9_2',
    'bots validation-report attest paper --version 1 --role internal_audit_9_3 --code 123456',
  ],
  async run(server, { bot: bot_ref }, { version, role, code }, context) {
    const params = { bot_ref };
    const read = await server.call<typeof getValidationReport>('get', REPORT_PATH, {
      params,
      query: { version },
    });
    const { content_hash } = read;
    const open = listOpenItems(read);
    if (open.length > 0)
      context.message(`You are about to attest a report with ${open.join(', ')}.`);
    const headers = await stepUp(context, server, {
      action: 'bots.validation_report.attest',
      target: `validation_report:${content_hash}`,
      code,
    });
    const report = await server.call<typeof freezeValidationReport>('post', REPORT_PATH, {
      params,
      headers,
      body: { attest: role, version, content_hash },
    });
    return { data: report, show: (out) => showReport(out, report) };
  },
});
