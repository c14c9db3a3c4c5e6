import { z } from '@hono/zod-openapi';
import { BotInput, Change, Document, exampleDocument, Files } from './bots.ts';
import { administrator, defineRoute, jsonBody, jsonResponse } from './http.ts';

const reading = { tags: ['Bots'], security: administrator('read') };
const writing = { tags: ['Bots'], security: administrator('write') };

const SpecProblem = z
  .strictObject({
    code: z.string().openapi({ example: 'unknown_field' }),
    pointer: z.string().describe('Location in the spec, as a JSON pointer (RFC 6901).'),
    detail: z.string(),
    suggestion: z.string().optional().describe('Likely intended name or value.'),
    line: z.int().optional().describe('Line in the YAML text, from 1; absent for a document.'),
    column: z.int().optional().describe('Column in this line, from 1; absent for a document.'),
  })
  .openapi('SpecProblem');

export const BotValidation = z
  .strictObject({
    valid: z.boolean(),
    problems: z.array(SpecProblem).describe('All problems, in the order of the text.'),
    // If the generator met `Document.nullable()` first, it would define `BotDocument` as nullable.
    document: z.union([Document, z.null()]).describe('The spec as data; null if it has problems.'),
    patch: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe(
        'JSON merge patch (RFC 7396) from the document of the current version of `bot` to the spec; null without `bot` or with problems.',
      ),
    files_differ: z
      .boolean()
      .describe('Whether the files differ from those of the current version of `bot`.'),
    changes: z
      .array(Change)
      .describe('Differences from the current version of `bot`; empty without it.'),
  })
  .openapi('BotValidation');

export type BotValidation = z.infer<typeof BotValidation>;

export const validateBot = defineRoute({
  ...writing,
  method: 'post',
  path: '/bots/validate',
  operationId: 'validateBot',
  summary: 'Check a spec without saving it',
  description:
    'Applies the checks of `POST /bots`, and also loads custom code. Problems are part of the answer, not an error.',
  request: {
    query: z.strictObject({
      bot: z
        .string()
        .optional()
        .describe(
          'Id or slug of a bot to compare the spec with. Its models need not be sent again.',
        ),
    }),
    body: jsonBody(BotInput, { yaml: { yaml: JSON.stringify(exampleDocument('sma-20', 20)) } }),
  },
  responses: { 200: jsonResponse('The result of the checks.', BotValidation) },
  errors: ['not_found'],
});

export const getBotSchema = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/schema',
  operationId: 'getBotSchema',
  summary: 'Read the JSON Schema of specs',
  responses: {
    200: jsonResponse(
      'The schema (draft 2020-12) that `service-local schema` prints.',
      z.record(z.string(), z.unknown()).openapi('BotSchema'),
    ),
  },
});

const BotTemplate = z
  .strictObject({
    name: z.string().describe('Name of a built-in strategy, or `module` for custom code.'),
    description: z.string(),
    document: Document,
    files: Files,
  })
  .openapi('BotTemplate');

export type BotTemplate = z.infer<typeof BotTemplate>;

export const listBotTemplates = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/templates',
  operationId: 'listBotTemplates',
  summary: 'List specs to start from',
  responses: {
    200: jsonResponse(
      'A spec for each built-in strategy, with data in the catalogue of the server if it has enough. If the server has the setting `custom_code`, also a spec with code.',
      z.strictObject({ items: z.array(BotTemplate) }).openapi('BotTemplates'),
    ),
  },
});
