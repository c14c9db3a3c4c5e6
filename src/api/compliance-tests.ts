import { z } from '@hono/zod-openapi';
import { administrator, botPath, defineRoute, jsonBody, jsonResponse } from './http.ts';
import { TASK_LOCATION, TaskReference } from './tasks.ts';

const seed = z
  .int()
  .min(0)
  .max(2 ** 32 - 1)
  .default(1);

const Conformance = z
  .strictObject({
    version: z.int().min(1).optional(),
    seed,
    cases: z
      .array(z.string().max(10))
      .min(1)
      .max(200)
      .optional()
      .describe('Ids of cases in the catalogue; all cases by default.'),
  })
  .openapi('ConformanceRequest');

export type ConformanceRequest = z.infer<typeof Conformance>;

const Stress = z
  .strictObject({
    version: z.int().min(1).optional(),
    seed,
    scope: z
      .enum(['bot', 'firm'])
      .default('bot')
      .describe('Whether the peaks of this bot or of all bots together are used.'),
    duration_s: z
      .int()
      .min(60)
      .max(86_400)
      .default(1800)
      .describe(
        'Seconds of venue time at the target load. Below 1800, an internal threshold, the verdict is at best `provisional`.',
      ),
    multiplier: z
      .number()
      .min(2)
      .max(100)
      .default(2)
      .describe('Factor applied to the peaks. The Article requires 2.'),
    declared_peak: z
      .int()
      .min(1)
      .max(10_000)
      .optional()
      .describe(
        'Assumed peak of outgoing messages per bar, for a bot without history. Multiplied by `multiplier`, it may be at most 20,000; otherwise the test fails with reason `too_much_load`.',
      ),
  })
  .openapi('StressRequest');

export type StressRequest = z.infer<typeof Stress>;

const started = { ...jsonResponse('The test is queued.', TaskReference), headers: TASK_LOCATION };

export const startConformance = defineRoute({
  tags: ['Compliance'],
  security: administrator('write'),
  method: 'post',
  path: '/bots/{bot_ref}/conformance',
  operationId: 'startConformance',
  summary: 'Test the conformance of a bot at a simulated venue',
  description:
    'Runs the cases of the conformance catalogue (RTS 6, Article 6) with the spec and the limits of a bot version, using the production engine and session code at a simulated venue. The cases submit the orders; the code of the strategy is not run. The test alone does not satisfy Article 6, which requires the system of the venue or of the access provider. The result says so and has a field for the report of the venue, which people add to the validation report. A case that is not run never counts as passed. A bot without limits fails. No real trades are made, so a halt does not prevent the test. A draft bot becomes active.',
  idempotent: true,
  request: {
    params: botPath,
    body: jsonBody(Conformance, { all: {}, some: { cases: ['A01', 'C03'], seed: 7 } }),
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
  summary: 'Test a bot at twice the peak load of its last six months',
  description:
    'Takes the peaks of the last six months from the event log (RTS 6, Article 10), and applies twice that load to the production engine and session code at a simulated venue: once with all limits, once without the message limit. Without such a history, the result states the assumed load, and the verdict is at best `provisional`. If a figure is too high only because the host ran other work, the verdict is `inconclusive`: run the test again on a less busy host. The result contains fingerprints of production before and after the test. No real trades are made, so a halt does not prevent the test. A draft bot becomes active.',
  idempotent: true,
  request: {
    params: botPath,
    body: jsonBody(Stress, { observed: {}, declared: { declared_peak: 40, duration_s: 600 } }),
  },
  responses: { 202: started },
  errors: ['not_found', 'conflict', 'invalid_spec'],
});

/** Fields of the results of conformance and stress tests. */
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
    /** Actors and what they changed during the test; absent in older results. */
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

export interface ConformanceResult extends TestResult {
  readonly cases: readonly (Checked & { readonly title: string })[];
  readonly counts: Readonly<Record<Checked['status'] | 'not_run', number>>;
  readonly evidence_hash: string;
}

export interface StressResult extends TestResult {
  readonly verdict: 'pass' | 'fail' | 'inconclusive' | 'provisional';
  readonly reasons: readonly string[];
  readonly not_judged: readonly string[];
  readonly basis: string;
  readonly scope: string;
  readonly multiplier: number;
  readonly coverage_days: number;
  readonly peaks: { readonly days: number };
  /** Total real time of the passes, and the part in which the host ran other work; absent in older results. */
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
