import { z } from '@hono/zod-openapi';
import { administrator, defineRoute } from './http.ts';
import { EXAMPLE_TASK_ID } from './tasks.ts';

export const EXAMPLE_OTHER_TASK_ID = '0198c0de-0000-7000-8000-00000000dddf';
export const MOST_COMPARED_TASKS = 8;

const ids = z
  .string()
  .regex(
    new RegExp(`^[\\w-]{1,128}(,[\\w-]{1,128}){1,${MOST_COMPARED_TASKS - 1}}$`),
    `must be two to ${MOST_COMPARED_TASKS} task ids, joined by commas`,
  )
  .openapi({
    description: 'Task ids, joined by commas. The other tasks are compared with the first one.',
    example: `${EXAMPLE_TASK_ID},${EXAMPLE_OTHER_TASK_ID}`,
  });

const format = z
  .enum(['json', 'html'])
  .default('json')
  .describe('`html` returns a page with the curves, which works offline.');

export const compareTasks = defineRoute({
  tags: ['Tasks'],
  security: administrator('read'),
  method: 'get',
  path: '/tasks/comparison',
  operationId: 'compareTasks',
  summary: 'Compare finished backtests and paper sessions',
  description:
    'Compares the figures, the equity and the trades of each task with the first one. Returns the document of `service-local runs compare --json`, with the task id as `directory`.',
  request: { query: z.strictObject({ ids, format }) },
  responses: {
    200: {
      description: 'The comparison.',
      content: {
        'application/json': { schema: z.record(z.string(), z.unknown()).openapi('Comparison') },
        'text/html': { schema: z.string() },
      },
    },
  },
  errors: ['not_found', 'conflict', 'overloaded'],
});
