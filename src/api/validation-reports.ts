import { z } from '@hono/zod-openapi';
import {
  ASSESSMENTS,
  ATTESTING_ROLES,
  ITEM_FIELDS,
  SECTION_FIELDS,
  type Origin,
} from '../base/validation-report-fields.ts';
import {
  administrator,
  botPath,
  defineRoute,
  IdempotencyKey,
  jsonBody,
  jsonResponse,
  sha256,
  text,
  time,
} from './http.ts';

const filled = {
  value: z.string().nullable().describe('Null until a person enters it.'),
  by: z.string().nullable(),
  at: time.nullable(),
};

const Figure = z
  .strictObject({
    marker: z.literal('A'),
    value: z.unknown().describe('Null if the records do not contain it.'),
    query: z.strictObject({ name: z.string(), params: z.record(z.string(), z.unknown()) }),
    hash: sha256.describe('SHA-256 of the value in canonical JSON (RFC 8785).'),
  })
  .openapi('ReportFigure', {
    description: 'Read from the records with the query of this name in `queries`.',
  });

const Draft = z
  .strictObject({ marker: z.literal('M'), draft: z.string().nullable(), ...filled })
  .openapi('ReportDraft', { description: 'Drafted from the records for a person to edit.' });

const Human = z
  .strictObject({ marker: z.literal('H'), ...filled })
  .openapi('ReportHuman', { description: 'To be filled in by a person.' });

const Criterion = z
  .strictObject({
    id: z.string(),
    ref: z.string(),
    requirement: z.string(),
    fact: z.union([Figure, z.null()]),
    draft: z.union([Draft, z.null()]),
    assessment: Human,
  })
  .openapi('ReportCriterion', { description: 'A criterion of Annex I of RTS 6.' });

const Gap = z
  .strictObject({
    id: z.string(),
    missing: z.string(),
    articles: z.array(z.string()),
    owner: Human.optional(),
    due: Human.optional().describe('A date, such as `2026-12-31`.'),
  })
  .openapi('ReportGap', {
    description:
      'A fact that the records do not contain. Old frozen reports have neither `owner` nor `due`.',
  });

const FIELDS = { A: Figure, M: Draft, H: Human };

/** Returns the schemas of fields by their origin. */
function fields<const F extends Readonly<Record<string, Origin>>>(origins: F) {
  const schemas = Object.entries(origins).map(([name, origin]) => [name, FIELDS[origin]]);
  return Object.fromEntries(schemas) as {
    readonly [N in keyof F]: (typeof FIELDS)[F[N]];
  };
}

function section<N extends keyof typeof SECTION_FIELDS>(name: N) {
  return z.strictObject(fields(SECTION_FIELDS[name]));
}

export const deficiency = {
  article: z.string().max(40).openapi({ example: '16(5)' }),
  finding: text(4000),
  severity: text(120),
  owner: text(200),
  due: z.iso.date(),
  closed: z.iso.date().nullable().default(null),
  compliance_informed_on: z.iso.date().nullable().default(null),
};

const attestation = z
  .strictObject({
    administrator_id: z.string(),
    name: z.string(),
    at: time,
    content_hash: sha256,
  })
  .nullable();

export const Report = z
  .strictObject({
    hash: sha256
      .nullable()
      .describe(
        'SHA-256 of the report without this field, in canonical JSON (RFC 8785); null for a draft.',
      ),
    revision: z
      .int()
      .min(0)
      .optional()
      .describe('Only in a draft: number of the last save of answers, 0 before the first.'),
    schema: z.literal('rts6-validation/1'),
    status: z
      .enum(['draft', 'frozen', 'signed'])
      .describe(
        '`signed` once every role in Article 9 has attested. Open points do not prevent it; they are listed in `signed_with_open`.',
      ),
    signed_with_open: z
      .array(z.string())
      .optional()
      .openapi({
        description:
          'Only in a signed report: its open points in words, such as paragraphs without an assessment; empty if there are none.',
        example: ['86 of 87 paragraphs not assessed', 'overall opinion empty'],
      }),
    notice: z.string(),
    number: z
      .strictObject({
        version: z.int(),
        supersedes: z
          .strictObject({
            version: z.int(),
            hash: sha256,
            attested: z
              .array(z.enum(ATTESTING_ROLES))
              .optional()
              .describe(
                'Roles that had attested the superseded version; missing in reports that an earlier release froze.',
              ),
          })
          .nullable(),
        frozen_at: time,
        frozen_by: z.string(),
      })
      .nullable(),
    content_hash: sha256.describe(
      'Hash of the attested content: the report without `hash`, `status`, `signed_with_open`, `number` and `attestations`.',
    ),
    period: z.strictObject({ year: z.int(), from: time, to: time }),
    as_of: time,
    scope: z.strictObject({
      bot_ref: z.string(),
      bot_id: z.string(),
      name: z.string(),
      firm: Human,
      fleet: Figure,
    }),
    generated_by: z.strictObject({
      version: z.string(),
      engine: z.string(),
      log: Figure,
      inputs_hash: sha256,
      gaps: z.array(Gap),
    }),
    queries: z.record(z.string(), z.string()),
    house_numbers: z.record(z.string(), z.string()),
    summary: section('summary'),
    annex_i: z.strictObject({
      nature: z.array(Criterion),
      scale: z.array(Criterion),
      complexity: z.array(Criterion),
    }),
    inventory: section('inventory'),
    risk_controls: z.array(
      z.strictObject({
        id: z.string(),
        articles: z.array(z.string()),
        ...fields(ITEM_FIELDS.risk_controls),
      }),
    ),
    governance: section('governance'),
    testing: section('testing'),
    changes: z.array(z.strictObject({ id: z.string(), ...fields(ITEM_FIELDS.changes) })),
    kill: section('kill'),
    pretrade: section('pretrade'),
    monitoring: section('monitoring'),
    posttrade: section('posttrade'),
    surveillance: section('surveillance'),
    incidents: z.array(z.strictObject({ id: z.string(), ...fields(ITEM_FIELDS.incidents) })),
    articles: z.array(
      z.strictObject({
        id: z.string(),
        requirement: z.string(),
        status: z.enum(ASSESSMENTS),
        auto_suggested: z.literal('not_assessed'),
        final: Human,
        evidence: z.array(z.string()),
        gaps: z.array(z.string()),
        narrative: Human,
      }),
    ),
    deficiencies: z.array(z.strictObject({ id: z.string(), ...deficiency })),
    attestations: z.strictObject({
      risk_management_9_2: attestation,
      technical_staff_involved_9_2: attestation,
      internal_audit_9_3: attestation,
      internal_audit_absent_reason: Human,
      senior_management_9_3: attestation,
    }),
  })
  .openapi('ValidationReport', {
    description:
      'The `marker` of each field states its origin: A is read from the records, M is drafted for a person to edit, H is filled in by a person. The report does not claim compliance: everything without an assessment by a person is `not_assessed`.',
  });

export type ValidationReport = z.infer<typeof Report>;

const year = z.coerce.number().int().min(1970).max(9999);

export const getValidationReport = defineRoute({
  tags: ['Compliance'],
  security: administrator('read'),
  method: 'get',
  path: '/bots/{bot_ref}/risk/validation-report',
  operationId: 'getValidationReport',
  summary: 'Draft the validation report of a bot, or read a frozen one',
  description:
    'Drafts the facts for the yearly self-assessment under Article 9 of RTS 6 (Commission Delegated Regulation (EU) 2017/589), as an annex to the report of the firm. It neither assesses nor signs anything. `generated_by.gaps` lists what the records do not contain. The draft contains the answers that people have saved. With `version`, it returns a frozen report.',
  request: {
    params: botPath,
    query: z
      .strictObject({
        year: year.optional().describe('A calendar year; the current year by default.'),
        version: z.coerce.number().int().min(1).optional(),
        format: z
          .enum(['json', 'html'])
          .default('json')
          .describe('`html` returns a printable page without scripts or external files.'),
      })
      .refine((query) => query.year === undefined || query.version === undefined, {
        error: 'excludes year',
        path: ['version'],
      }),
  },
  responses: {
    200: {
      description: 'The report.',
      content: {
        'application/json': { schema: Report },
        'text/html': { schema: z.string() },
      },
    },
  },
  errors: ['not_found', 'archived', 'overloaded'],
});

const Reports = z
  .strictObject({
    versions: z.array(
      z.strictObject({
        version: z.int(),
        year: z.int(),
        status: z.enum(['draft', 'frozen', 'signed']),
        signed_with_open: z
          .array(z.string())
          .describe('Open points of a signed report; empty for a report that is not signed.'),
        attested: z
          .array(z.enum(ATTESTING_ROLES))
          .describe('Roles in which a person has attested this version.'),
        hash: sha256,
        content_hash: sha256,
        frozen_at: time,
      }),
    ),
  })
  .openapi('ValidationReports');

export type ValidationReports = z.infer<typeof Reports>;

export const listValidationReports = defineRoute({
  tags: ['Compliance'],
  security: administrator('read'),
  method: 'get',
  path: '/bots/{bot_ref}/risk/validation-reports',
  operationId: 'listValidationReports',
  summary: 'List the frozen validation reports of a bot',
  description: 'Returns the newest first. Read a report with its `version`.',
  request: { params: botPath },
  responses: {
    200: jsonResponse('The frozen reports.', Reports),
  },
  errors: ['not_found'],
});

const words = z
  .string()
  .min(1)
  .max(20_000)
  .refine((value) => value.isWellFormed() && !/[^\P{Cc}\n\t]/u.test(value), 'must be plain text');

export const HUMAN_DESCRIPTION =
  'Values for fields marked H or M, by JSON pointer; list items are addressed by `id`, as in `/articles/15(3)/final`. Null clears a field.';

export const human = z.record(z.string().max(300), words.nullable()).default({});

export const deficiencies = z.array(z.strictObject(deficiency)).max(500).optional();

const Freeze = z
  .strictObject({
    year: z.int().min(1970).max(9999).optional(),
    supersedes: z
      .int()
      .min(1)
      .nullable()
      .default(null)
      .describe('The newest version of the year; null if this is the first.'),
    revision: z
      .int()
      .min(0)
      .optional()
      .describe('Revision of the draft that was read. Freezing fails if answers were saved since.'),
    human: human.describe(
      `${HUMAN_DESCRIPTION} Other fields keep their saved value, or that of the previous version.`,
    ),
    deficiencies: deficiencies.describe('The complete list; by default the saved one.'),
  })
  .openapi('FreezeReport');

export type FreezeRequest = z.infer<typeof Freeze>;

const Attest = z
  .strictObject({
    attest: z.enum(ATTESTING_ROLES),
    version: z.int().min(1),
    content_hash: sha256.describe('`content_hash` of the version that the caller has read.'),
  })
  .openapi('AttestReport');

export type AttestRequest = z.infer<typeof Attest>;

export const freezeValidationReport = defineRoute({
  tags: ['Compliance'],
  security: administrator('write'),
  method: 'post',
  path: '/bots/{bot_ref}/risk/validation-report',
  operationId: 'freezeValidationReport',
  summary: 'Freeze the validation report of a bot, or attest a frozen one',
  description:
    'Creates the next version, which never changes and refers to the previous one. The request either drafts the report again with the values that people have entered, or attests the newest version in one role. To attest, send a step-up for `bots.validation_report.attest` with the target `validation_report:` and the `content_hash`. A different person must attest each role. Freezing a new draft discards the attestations.',
  idempotent: true,
  request: {
    params: botPath,
    headers: IdempotencyKey.extend({
      'service-step-up': z
        .string()
        .max(100)
        .optional()
        .describe('Step-up token; required to attest.'),
    }),
    body: jsonBody(z.union([Freeze, Attest]), {
      freeze: {
        human: {
          '/testing/methodology_ref': 'Manual of development, edition 4',
          '/articles/15(3)/final': 'non_compliant',
        },
      },
    }),
  },
  responses: { 201: jsonResponse('The new version.', Report) },
  errors: ['not_found', 'archived', 'conflict', 'step_up_required', 'overloaded'],
});
