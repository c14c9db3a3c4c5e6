import { z } from '@hono/zod-openapi';

/** Fields of a parameter search, in the notation of the options of `backtest sweep`. */
export const analysis = {
  parameters: z
    .array(z.string().max(1000))
    .max(20)
    .optional()
    .describe(
      'Parameters with their values: `fast=5:50:5`, `fast=5,10`, `fast=5:50` or `fast=5:50:log`.',
    ),
  method: z.enum(['grid', 'random', 'tpe']).optional(),
  trials: z.int().min(1).max(100_000).optional().describe('Number of trials; not for a grid.'),
  seed: z
    .int()
    .min(0)
    .max(2 ** 32 - 1)
    .optional(),
  objectives: z
    .array(z.string().max(200))
    .max(5)
    .optional()
    .describe('Figures by which trials are ranked; `sharpe` by default.'),
  where: z
    .array(z.string().max(200))
    .max(20)
    .optional()
    .describe('Conditions of a trial, such as `trades>=30`.'),
  prune: z.boolean().optional(),
  train: z
    .string()
    .max(20)
    .optional()
    .describe('Length of a training window of a walk-forward analysis, such as `3y`.'),
  test: z.string().max(20).optional().describe('Length of a test window, such as `1y`.'),
  anchored: z.boolean().optional(),
  embargo: z.string().max(20).optional(),
  permutations: z
    .int()
    .min(0)
    .max(100_000)
    .optional()
    .describe(
      'Permutations of a robustness test; 1,000 by default, or none for a bot with models.',
    ),
  blocks: z.int().min(4).max(24).multipleOf(2).optional(),
};
