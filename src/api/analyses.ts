import { z } from '@hono/zod-openapi';
import { analysis } from './analysis-fields.ts';
import { administrator, botPath, defineRoute, jsonBody, jsonResponse } from './http.ts';
import { changes, TASK_LOCATION, TaskReference } from './tasks.ts';

const AnalysisRequest = z
  .strictObject({
    kind: z.enum(['sweep', 'walk_forward', 'robustness']),
    version: z.int().min(1).optional(),
    from: changes.from,
    to: changes.to,
    ...analysis,
  })
  .openapi('AnalysisRequest');

export const startAnalysis = defineRoute({
  tags: ['Tasks'],
  security: administrator('write'),
  method: 'post',
  path: '/bots/{bot_ref}/analyses',
  operationId: 'startAnalysis',
  summary: 'Search the parameters of a bot, or test its robustness',
  description:
    'Runs a sweep, a walk-forward analysis or a robustness test of a version over the data in the catalogue of the server, as `service-local backtest sweep`, `walk-forward` and `robustness` do. The trial ledger of the server counts its trials. The result is the document of the command; its files include `report.html`. A draft bot becomes active.',
  idempotent: true,
  request: {
    params: botPath,
    body: jsonBody(AnalysisRequest, {
      sweep: { kind: 'sweep', parameters: ['fast=5:20:5'] },
      walk_forward: { kind: 'walk_forward', parameters: ['fast=5,10'], train: '3y', test: '1y' },
      robustness: { kind: 'robustness', permutations: 100 },
    }),
  },
  responses: {
    202: {
      ...jsonResponse('The analysis is queued.', TaskReference),
      headers: TASK_LOCATION,
    },
  },
  errors: ['not_found', 'conflict', 'invalid_spec'],
});
