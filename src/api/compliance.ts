import { z } from '@hono/zod-openapi';
import { sha256 } from './bots.ts';
import { TASK_LOCATION, TaskReference } from './tasks.ts';
import {
  administrator,
  answer,
  defineRoute,
  id,
  IdempotencyKey,
  json,
  text,
  time,
} from './http.ts';

const botPath = z.strictObject({ bot_ref: id('sma-crossover') });

const seed = z
  .int()
  .min(0)
  .max(2 ** 32 - 1)
  .default(1);

const started = { ...answer('It is queued.', TaskReference), headers: TASK_LOCATION };

export const startConformance = defineRoute({
  tags: ['Compliance'],
  security: administrator('write'),
  method: 'post',
  path: '/bots/{bot_ref}/conformance',
  operationId: 'startConformance',
  summary: 'Test how a bot trades at a simulated venue',
  description:
    'Plays the cases of the conformance catalogue (RTS 6, Article 6) with a version of the bot, by default the current one: its spec and its limits, the engine and the session code of production, at a simulated venue. The orders are those of the cases and not of its strategy, whose code is not run. It never discharges Article 6, which asks for the system of the venue or of the access provider: the result says so, and has a slot for the report of the venue, which people add to the validation report. A case that is not run is never passed. A bot without limits is tested, and fails for it. It trades with nobody, so that a halt does not keep it from running. A draft becomes active.',
  idempotent: true,
  request: {
    params: botPath,
    body: json(
      z
        .strictObject({
          version: z.int().min(1).optional(),
          seed,
          cases: z.array(z.string().max(10)).min(1).max(200).optional().openapi({
            description: 'Ids of the catalogue; by default all of it.',
          }),
        })
        .openapi('ConformanceRequest'),
      { all: {}, some: { cases: ['A01', 'C03'], seed: 7 } },
    ),
  },
  responses: { 202: started },
  errors: ['not_found', 'conflict', 'invalid_spec'],
});

export const startStress = defineRoute({
  tags: ['Compliance'],
  security: administrator('write'),
  method: 'post',
  path: '/bots/{bot_ref}/stress',
  operationId: 'startStress',
  summary: 'Test a bot at twice the busiest of its last six months',
  description:
    'Takes the peaks of the last six months from the event log (RTS 6, Article 10), and applies twice that load to the production engine and session code at a simulated venue: once with all limits, once without the message limit. Without such a history, the result states the assumed load, and the verdict is at best `provisional`. If a figure is too high only because the host ran other work, the verdict is `inconclusive`: run the test again on a less busy host. The result contains fingerprints of production before and after the test. No real trades are made, so a halt does not prevent the test. A draft bot becomes active.',
  idempotent: true,
  request: {
    params: botPath,
    body: json(
      z
        .strictObject({
          version: z.int().min(1).optional(),
          seed,
          scope: z.enum(['bot', 'firm']).default('bot').openapi({
            description: 'Whose peaks are taken: those of the bot, or of all bots at once.',
          }),
          duration_s: z.int().min(60).max(86_400).default(1800).openapi({
            description:
              "Of the hold at the target, in the time of the venue. With less than 1800 (a house number) the verdict is 'provisional' at most.",
          }),
          multiplier: z.number().min(2).max(100).default(2).openapi({
            description: 'Of the peaks: the Article has 2, and more is allowed.',
          }),
          declared_peak: z.int().min(1).max(10_000).optional().openapi({
            description:
              'Messages out at a bar, for whoever has no history yet. Times the multiplier 20,000 at most: a test plays no more at one bar, and one that would have to fails with the reason `too_much_load`.',
          }),
        })
        .openapi('StressRequest'),
      { observed: {}, declared: { declared_peak: 40, duration_s: 600 } },
    ),
  },
  responses: { 202: started },
  errors: ['not_found', 'conflict', 'invalid_spec'],
});

/** What tests have in common. */
interface TestResult {
  readonly run_id: string;
  readonly bot_ref: string;
  readonly version: number;
  readonly seed: number;
  readonly stale: boolean;
  readonly stale_reasons: readonly string[];
  readonly isolation: {
    readonly logs_kept: boolean;
    readonly config_unchanged: boolean;
    /** Who changed what meanwhile; absent of older results. */
    readonly changed?: readonly string[];
    readonly orders_of_test: number;
  };
}

interface Checked {
  readonly id: string;
  readonly articles: readonly string[];
  readonly status: 'pass' | 'fail' | 'inconclusive' | 'not_applicable';
  readonly reason: string | null;
}

/** What is shown of the result of a conformance test. */
export interface ConformanceResult extends TestResult {
  readonly cases: readonly (Checked & { readonly title: string })[];
  readonly counts: Readonly<Record<Checked['status'] | 'not_run', number>>;
  readonly evidence_hash: string;
}

/** What is shown of the result of a stress test. */
export interface StressResult extends TestResult {
  readonly verdict: 'pass' | 'fail' | 'inconclusive' | 'provisional';
  readonly reasons: readonly string[];
  readonly not_judged: readonly string[];
  readonly basis: string;
  readonly scope: string;
  readonly multiplier: number;
  readonly coverage_days: number;
  readonly peaks: { readonly days: number };
  /** Total real time of the passes, and the part that the host ran other work; absent in older results. */
  readonly host?: { readonly real_ms: number; readonly withheld_ms: number };
  readonly assumption: { readonly text: string; readonly owner: string | null } | null;
  readonly passes: readonly {
    readonly limits: string;
    readonly reached: readonly {
      readonly class: string;
      readonly window_s: number;
      readonly target: number;
      readonly offered: number;
      readonly achieved: number;
    }[];
  }[];
  readonly controls: readonly Checked[];
}

const filled = {
  value: z.string().nullable().openapi({ description: 'Null until a person has put one.' }),
  by: z.string().nullable(),
  at: time.nullable(),
};

const Figure = z
  .strictObject({
    marker: z.literal('A'),
    value: z.unknown().openapi({ description: 'Null where the records do not say.' }),
    query: z.strictObject({ name: z.string(), params: z.record(z.string(), z.unknown()) }),
    hash: sha256.openapi({
      description: 'SHA-256 of the value in canonical JSON (RFC 8785).',
    }),
  })
  .openapi('ReportFigure', {
    description: 'Read from the records, by the query of `queries` with this name.',
  });

const Draft = z
  .strictObject({ marker: z.literal('M'), draft: z.string().nullable(), ...filled })
  .openapi('ReportDraft', { description: 'Drafted from the records, for a person to edit.' });

const Human = z
  .strictObject({ marker: z.literal('H'), ...filled })
  .openapi('ReportHuman', { description: 'Only a person can fill it.' });

const Criterion = z
  .strictObject({
    id: z.string(),
    ref: z.string(),
    requirement: z.string(),
    fact: Figure.nullable(),
    draft: Draft.nullable(),
    assessment: Human,
  })
  .openapi('ReportCriterion', { description: 'Of Annex I of RTS 6.' });

const Assessment = z.enum(['compliant', 'partly', 'non_compliant', 'n_a', 'not_assessed']);

const deficiency = {
  article: z.string().max(40).openapi({ example: '16(5)' }),
  finding: text(4000),
  severity: text(120),
  owner: text(200),
  due: z.iso.date(),
  closed: z.iso.date().nullable().default(null),
  compliance_informed_on: z.iso.date().nullable().default(null),
};

const ROLES = [
  'risk_management_9_2',
  'technical_staff_involved_9_2',
  'internal_audit_9_3',
  'senior_management_9_3',
] as const;

const attestation = z
  .strictObject({
    administrator_id: z.string(),
    name: z.string(),
    at: time,
    content_hash: sha256,
  })
  .nullable();

const Report = z
  .strictObject({
    hash: sha256.nullable().openapi({
      description:
        'SHA-256 of the report, without this, in canonical JSON (RFC 8785); null of a draft.',
    }),
    schema: z.literal('rts6-validation/1'),
    status: z.enum(['draft', 'frozen', 'signed']).openapi({
      description:
        '`signed` once all whom Article 9 names have attested, whatever people have left open: that is in `signed_with_open`.',
    }),
    signed_with_open: z
      .array(z.string())
      .optional()
      .openapi({
        description:
          'Of a signed report alone: what was left open, such as paragraphs that nobody has assessed, in words; empty where nothing was.',
        example: ['86 of 87 paragraphs not assessed', 'overall opinion empty'],
      }),
    notice: z.string(),
    number: z
      .strictObject({
        version: z.int(),
        supersedes: z.strictObject({ version: z.int(), hash: sha256 }).nullable(),
        frozen_at: time,
        frozen_by: z.string(),
      })
      .nullable(),
    content_hash: sha256.openapi({
      description:
        'Of the report but for hash, status, signed_with_open, number and attestations: what is attested.',
    }),
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
      gaps: z.array(
        z.strictObject({ id: z.string(), missing: z.string(), articles: z.array(z.string()) }),
      ),
    }),
    queries: z.record(z.string(), z.string()),
    house_numbers: z.record(z.string(), z.string()),
    summary: z.strictObject({
      statement_of_compliance: Human,
      overall_opinion: Human,
      method: Draft,
      prior_year_actions: Draft,
    }),
    annex_i: z.strictObject({
      nature: z.array(Criterion),
      scale: z.array(Criterion),
      complexity: z.array(Criterion),
    }),
    inventory: z.strictObject({
      facts: Figure,
      type: Draft,
      approved_on: Human,
      approval_scope: Human,
      restrictions: Human,
      owner: Draft,
      approved_operators: Draft,
      uses_ai: Draft,
      third_party: Draft,
      doc_link: Human,
    }),
    risk_controls: z.array(
      z.strictObject({
        id: z.string(),
        articles: z.array(z.string()),
        facts: Figure,
        owner: Human,
        rationale: Human,
        alerts_to: Human,
      }),
    ),
    governance: z.strictObject({
      accountability_map: Human,
      administrators: Figure,
      designated_approvers: Human,
      separation_evidence: Draft,
      staff_skills_training: Human,
      holders_of_halt: Figure,
      compliance_kill_access_2_2: Human,
      outsourcing_4: Human,
    }),
    testing: z.strictObject({
      methodology_ref: Human,
      env_separation_7: Figure,
      conformance: Figure,
      venue_report_ref: Human,
      stress: Figure,
      bcp_test_14_4: Draft,
      pen_test_18_4: Human,
      vuln_scan_18_4: Human,
    }),
    changes: z.array(
      z.strictObject({
        id: z.string(),
        facts: Figure,
        approved_by: Human,
        material: Draft,
        review_11_ref: Human,
        notified: Human,
      }),
    ),
    kill: z.strictObject({
      policy_ref: Human,
      live_activations: Figure,
      drills: Figure,
      attribution_coverage: Figure,
    }),
    pretrade: z.strictObject({
      messages: Figure,
      breaches: Figure,
      overrides_15_6: Figure,
      throttle_disables_15_3: Figure,
      limit_changes: Figure,
    }),
    monitoring: z.strictObject({
      alerts: Figure,
      coverage_gaps: Figure,
      unactioned: Human,
      contact_test_16_4: Human,
    }),
    posttrade: z.strictObject({
      breaks: Figure,
      real_time_pct: Human,
      position_limits_17_4: Figure,
    }),
    surveillance: z.strictObject({
      alerts: Human,
      timely_pct: Human,
      false_pos_rate: Human,
      annual_review_13_6: Human,
    }),
    incidents: z.array(
      z.strictObject({
        id: z.string(),
        facts: Figure,
        impact: Human,
        root_cause: Draft,
        remedy: Human,
        closed: Human,
      }),
    ),
    articles: z.array(
      z.strictObject({
        id: z.string(),
        requirement: z.string(),
        status: Assessment,
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
      'Each field says with its `marker` where it comes from: A read from the records, M drafted for a person to edit, H for a person alone. It states no compliance: whatever no person has assessed is `not_assessed`.',
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
    'Facts for the yearly self-assessment of Article 9 of RTS 6 (Commission Delegated Regulation (EU) 2017/589), as an annex to the report of the firm: it drafts them, and neither assesses nor signs anything. What the records do not hold is in `generated_by.gaps`. With `version`, the report as it was frozen.',
  request: {
    params: botPath,
    query: z
      .strictObject({
        year: year.optional().openapi({ description: 'A calendar year; by default this one.' }),
        version: z.coerce.number().int().min(1).optional(),
        format: z.enum(['json', 'html']).default('json').openapi({
          description: 'html: a page that is complete, without scripts, and prints well.',
        }),
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
  errors: ['not_found', 'overloaded'],
});

const Reports = z
  .strictObject({
    versions: z.array(
      z.strictObject({
        version: z.int(),
        year: z.int(),
        status: z.enum(['draft', 'frozen', 'signed']),
        signed_with_open: z.array(z.string()).openapi({
          description: 'What a signed report leaves open; empty of one that is not signed.',
        }),
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
  description: 'The newest first; each can be read with its `version`.',
  request: { params: botPath },
  responses: {
    200: answer('The versions.', Reports),
  },
  errors: ['not_found'],
});

const words = z
  .string()
  .min(1)
  .max(20_000)
  .refine((value) => value.isWellFormed() && !/[^\P{Cc}\n\t]/u.test(value), 'must be plain text');

const Freeze = z
  .strictObject({
    year: z.int().min(1970).max(9999).optional(),
    supersedes: z.int().min(1).nullable().default(null).openapi({
      description: 'The newest version of the year; null where there is none yet.',
    }),
    human: z.record(z.string().max(300), words.nullable()).default({}).openapi({
      description:
        'What people put into fields marked H or M, by the places of these: JSON pointers in which an item of a list goes by its `id`, as `/articles/15(3)/final`. Null empties one. The others stay as in the version before.',
    }),
    deficiencies: z.array(z.strictObject(deficiency)).max(500).optional().openapi({
      description: 'All of them; by default those of the version before.',
    }),
  })
  .openapi('FreezeReport');

const Attest = z
  .strictObject({
    attest: z.enum(ROLES),
    version: z.int().min(1),
    content_hash: sha256.openapi({ description: 'Of the version that was read.' }),
  })
  .openapi('AttestReport');

export const freezeValidationReport = defineRoute({
  tags: ['Compliance'],
  security: administrator('write'),
  method: 'post',
  path: '/bots/{bot_ref}/risk/validation-report',
  operationId: 'freezeValidationReport',
  summary: 'Freeze the validation report of a bot, or attest a frozen one',
  description:
    'Makes the next version, which never changes and names the one before. Either the report is drafted anew, with what people put into it; or the newest version is attested by the caller, in one role, which needs a step-up for `bots.validation_report.attest` and `validation_report:` with its `content_hash`. Each role is attested by another person; what is drafted anew, everybody has to attest anew.',
  idempotent: true,
  request: {
    params: botPath,
    headers: IdempotencyKey.extend({
      'service-step-up': z.string().max(100).optional().openapi({
        description: 'Of an attestation.',
      }),
    }),
    body: json(z.union([Freeze, Attest]), {
      freeze: {
        human: {
          '/testing/methodology_ref': 'Manual of development, edition 4',
          '/articles/15(3)/final': 'non_compliant',
        },
      },
    }),
  },
  responses: { 201: answer('The version as it was frozen.', Report) },
  errors: ['not_found', 'conflict', 'step_up_required', 'overloaded'],
});
