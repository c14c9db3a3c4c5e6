import type { FirmReport, getFirmReport } from '../../../../api/validation-drafts.ts';
import { defineServerVerb } from '../../../server-verb.ts';
import { showItems } from '../../../show-items.ts';
import { YEAR_OPTION } from '../../../validation-report.ts';

type Bot = FirmReport['bots']['items'][number];
type Gap = FirmReport['gaps']['items'][number];

export const verb = defineServerVerb({
  summary: 'report the validation of all bots for a year',
  description:
    'Shows how far the report of each trading bot is, and lists all gaps with owner and due date. With --json, it also contains the deficiencies, and the number of bots with each assessment by paragraph. What it states about a bot is as of the last save or freeze of its report.',
  options: { year: YEAR_OPTION },
  examples: ['bots validation-report firm', 'bots validation-report firm --year 2026 --json'],
  async run(server, _arguments, { year }) {
    const path = '/risk/validation-report';
    const data = await server.call<typeof getFirmReport>('get', path, { query: { year } });
    const bots = {
      bot: ({ bot_slug }: Bot) => bot_slug,
      report: ({ status, version }: Bot) => `${status}${version === null ? '' : ` v${version}`}`,
      'not assessed': ({ assessments }: Bot) => String(assessments.not_assessed),
      'not compliant': ({ assessments }: Bot) => String(assessments.non_compliant),
      gaps: ({ gaps }: Bot) => String(gaps?.total ?? 'unknown'),
      unassigned: ({ gaps }: Bot) => String(gaps?.unassigned ?? ''),
      overdue: ({ gaps }: Bot) => String(gaps?.overdue ?? ''),
    };
    const gaps = {
      due: ({ due, overdue }: Gap) => `${due ?? 'no date'}${overdue ? ' (overdue)' : ''}`,
      owner: ({ owner }: Gap) => owner ?? 'none',
      bot: ({ bot_slug }: Gap) => bot_slug,
      gap: ({ missing }: Gap) => missing,
    };
    return {
      data,
      show(out) {
        showItems(out, data.bots.items, bots);
        if (data.gaps.total === 0) return;
        out.line();
        showItems(out, data.gaps.items, gaps);
      },
    };
  },
});
