/** Answers that are saved before a report is frozen, and the report over all bots. */
import { z } from '@hono/zod-openapi';
import { administrator, botPath, defineRoute, jsonBody, jsonResponse, time } from './http.ts';
import {
  deficiencies,
  deficiency,
  human,
  HUMAN_DESCRIPTION,
  Report,
} from './validation-reports.ts';

const SaveAnswers = z
  .strictObject({
    year: z.int().min(1970).max(9999).optional(),
    revision: z
      .int()
      .min(0)
      .optional()
      .describe(
        'Revision of the draft that was read. Saving fails if one of these answers has changed since. By default, these answers replace the saved ones.',
      ),
    human: human.describe(`${HUMAN_DESCRIPTION} Other fields do not change.`),
    deficiencies: deficiencies.describe('The complete list; by default it does not change.'),
  })
  .openapi('SaveAnswers');

export type SaveRequest = z.infer<typeof SaveAnswers>;

export const saveValidationAnswers = defineRoute({
  tags: ['Compliance'],
  security: administrator('write'),
  method: 'patch',
  path: '/bots/{bot_ref}/risk/validation-report',
  operationId: 'saveValidationAnswers',
  summary: 'Save answers for the validation report of a bot',
  description:
    'Adds answers to the draft of a year, without freezing it. Drafts and the next frozen version contain them. Each gap has an `owner` and a `due` date, as in `/generated_by/gaps/no_drill/owner`.',
  request: {
    params: botPath,
    body: jsonBody(SaveAnswers, {
      save: {
        revision: 0,
        human: {
          '/articles/15(3)/final': 'partly',
          '/generated_by/gaps/no_drill/owner': 'Risk management',
          '/generated_by/gaps/no_drill/due': '2027-01-31',
        },
      },
    }),
  },
  responses: { 200: jsonResponse('The draft with the answers.', Report) },
  errors: ['not_found', 'archived', 'conflict', 'overloaded'],
});

const Counts = z
  .strictObject({
    compliant: z.int(),
    partly: z.int(),
    non_compliant: z.int(),
    n_a: z.int(),
    not_assessed: z.int(),
  })
  .openapi('AssessmentCounts', { description: 'Number of paragraphs, or of bots, by assessment.' });

const bot = { bot_slug: z.string(), bot_name: z.string() };

const overdue = z.boolean().describe('Whether it is due before today, in UTC, and not closed.');

function listOf<T extends z.ZodType>(item: T) {
  return z.strictObject({
    total: z.int(),
    items: z.array(item).describe('At most 1,000.'),
  });
}

const FirmBot = z
  .strictObject({
    bot_id: z.string(),
    ...bot,
    status: z
      .enum(['not_begun', 'draft', 'frozen', 'signed'])
      .describe('`not_begun` before the first save of the year.'),
    version: z.int().nullable().describe('Newest frozen version of the year.'),
    edited: z.boolean().describe('Whether answers were saved since that version was frozen.'),
    saved_at: time.nullable(),
    saved_by: z.string().nullable(),
    assessments: Counts,
    gaps: z
      .strictObject({
        total: z.int(),
        unassigned: z.int().describe('Gaps without an owner or a due date.'),
        overdue: z.int(),
      })
      .nullable()
      .describe('As of `saved_at`; null if the report is not begun.'),
    open_deficiencies: z.int(),
  })
  .openapi('FirmReportBot');

const FirmReport = z
  .strictObject({
    schema: z.literal('rts6-firm/1'),
    notice: z.string(),
    year: z.int(),
    as_of: time,
    bots: listOf(FirmBot).describe(
      'Trading bots that existed in the year, by slug; archived ones only if their report was begun.',
    ),
    statuses: z.strictObject({
      not_begun: z.int(),
      draft: z.int(),
      frozen: z.int(),
      signed: z.int(),
    }),
    paragraphs: z.array(
      z.strictObject({ id: z.string(), requirement: z.string(), assessments: Counts }),
    ),
    gaps: listOf(
      z.strictObject({
        ...bot,
        id: z.string(),
        missing: z.string(),
        articles: z.array(z.string()),
        owner: z.string().nullable(),
        due: z.string().nullable(),
        overdue,
      }),
    ).describe('The earliest due date first, then gaps without one.'),
    deficiencies: listOf(
      z.strictObject({ ...bot, id: z.string(), ...deficiency, overdue }),
    ).describe('Open ones first, by due date.'),
  })
  .openapi('FirmReport');

export type FirmReport = z.infer<typeof FirmReport>;

export const getFirmReport = defineRoute({
  tags: ['Compliance'],
  security: administrator('read'),
  method: 'get',
  path: '/risk/validation-report',
  operationId: 'getFirmReport',
  summary: 'Report the validation of all bots for a year',
  description:
    'Counts the assessments of each paragraph over all trading bots, and lists their gaps and deficiencies with owner and due date. What it states about a bot is as of the last save or freeze of its report.',
  request: {
    query: z.strictObject({
      year: z.coerce
        .number()
        .int()
        .min(1970)
        .max(9999)
        .optional()
        .describe('A calendar year; the current year by default.'),
    }),
  },
  responses: { 200: jsonResponse('The report.', FirmReport) },
});
