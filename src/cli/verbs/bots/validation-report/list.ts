import type {
  listValidationReports,
  ValidationReports,
} from '../../../../api/validation-reports.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { showItems } from '../../../show-items.ts';
import { describeReportStatus } from '../../../../base/validation-report-status.ts';
import { defineServerVerb } from '../../../server-verb.ts';

type Listed = ValidationReports['versions'][number];

export const verb = defineServerVerb({
  summary: 'list the frozen versions of a validation report',
  description: 'Lists versions newest first. Each freeze and each attestation creates a version.',
  arguments: { bot: BOT_ARGUMENT },
  examples: ['bots validation-report list paper'],
  async run(server, { bot: bot_ref }) {
    const path = '/bots/{bot_ref}/risk/validation-reports';
    const data = await server.call<typeof listValidationReports>('get', path, {
      params: { bot_ref },
    });
    const columns = {
      version: (one: Listed) => String(one.version),
      year: (one: Listed) => String(one.year),
      status: (one: Listed) => describeReportStatus(one.status, one.signed_with_open, one.attested),
      frozen: (one: Listed) => one.frozen_at,
      'content hash': (one: Listed) => one.content_hash,
    };
    return { data, show: (out) => showItems(out, data.versions, columns) };
  },
});
