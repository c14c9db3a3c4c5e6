import { z } from '@hono/zod-openapi';
import { administrator, answer, defineRoute, id, json, time } from './http.ts';
import { changes, TaskReference } from './tasks.ts';
import { sha256 } from './bots.ts';

const tags = ['Research'];
const reading = { tags, security: administrator('read') };
const writing = { tags, security: administrator('write') };

const botPath = z.strictObject({ bot_ref: id('sma-crossover') });

// Market data.

const Dataset = z
  .strictObject({
    name: z.string().openapi({ description: 'Specs call it `catalog://NAME`.', example: 'SPX' }),
    timeframe: z.string().openapi({ example: '1d' }),
    bars: z.int(),
    from: z.string().openapi({ description: 'The first bar: a day or a time, in UTC.' }),
    to: z.string().openapi({ description: 'The last bar.' }),
    has_volume: z.boolean(),
    sha256: sha256.openapi({ description: 'Of the columns of the bars.' }),
    imported_at: time,
  })
  .openapi('Dataset');

export type Dataset = z.infer<typeof Dataset>;

export const listDatasets = defineRoute({
  ...reading,
  method: 'get',
  path: '/data/datasets',
  operationId: 'listDatasets',
  summary: 'List the market data that the server has',
  responses: {
    200: answer(
      'All datasets of the catalogue, by name; without those that are damaged.',
      z.strictObject({ items: z.array(Dataset) }).openapi('Datasets'),
    ),
  },
});

export const getDataset = defineRoute({
  ...reading,
  method: 'get',
  path: '/data/datasets/{name}',
  operationId: 'getDataset',
  summary: 'Show what a dataset holds',
  request: { params: z.strictObject({ name: id('SPX') }) },
  responses: { 200: answer('The dataset.', Dataset) },
  errors: ['not_found'],
});

// Proposals.

const Proposal = z
  .strictObject({
    ...changes,
    rationale: z.string().min(1).max(2000).openapi({
      description: 'Why, for the person who decides; shown as it is, and never followed.',
    }),
  })
  .openapi('ProposalInput', {
    description: "What is to stand in place of the current version's own.",
  });

export const proposeVersion = defineRoute({
  ...writing,
  method: 'post',
  path: '/bots/{bot_ref}/proposals',
  operationId: 'proposeVersion',
  summary: 'Propose a version of a bot',
  description:
    'Makes no version: it backtests what is proposed, and leaves an event `chat.proposal` with the whole document and what differs. A person who agrees gives the bot that document, with `PUT /bots/{bot_ref}`.',
  idempotent: true,
  request: {
    params: botPath,
    body: json(Proposal, {
      faster: { params: { fast: 12 }, rationale: 'It follows turns sooner.' },
    }),
  },
  responses: {
    202: answer(
      'It is in the events of the bot, and its backtest is queued.',
      z
        .strictObject({
          proposal_id: z.string(),
          base_version: z.int(),
          changes: z.array(z.record(z.string(), z.unknown())).openapi({
            description: 'As of `GET /bots/{bot_ref}/versions/{version}/diff`.',
          }),
          hash: sha256.openapi({ description: 'Of the document that is proposed.' }),
          task: TaskReference,
        })
        .openapi('Proposal'),
    ),
  },
  errors: ['not_found', 'conflict', 'invalid_spec'],
});
