import { z } from '@hono/zod-openapi';
import { actorName, administrator, answer, defineRoute, id, json, time } from './http.ts';
import { ChatTurn, EXAMPLE_RESEARCH_BOT } from './research.ts';

const tags = ['Research'];
const reading = { tags, security: administrator('read') };

/** Of the bot of the examples. */
export const EXAMPLE_ROLE = 'watcher';

const botPath = z.strictObject({ bot_ref: id(EXAMPLE_RESEARCH_BOT) });
const agentPath = z.strictObject({
  ...botPath.shape,
  role: z.string().min(1).max(100).openapi({ example: EXAMPLE_ROLE }),
});

const AgentReport = z
  .strictObject({
    seq: z.int().openapi({ description: 'Of the event `agent.reported`, which has all of it.' }),
    recorded_at: time,
    cause: z.enum(['schedule', 'person']),
    session_id: z.string(),
    turn_id: z.string(),
    status: z.enum(['done', 'failed', 'interrupted']),
    text: z.string().openapi({ description: 'Its beginning, where it is long.' }),
  })
  .openapi('AgentReport');

const Agent = z
  .strictObject({
    role: z.string(),
    tools: z.array(z.string()).nullable().openapi({ description: 'null for all.' }),
    schedule: z
      .strictObject({
        every: z.string().openapi({ example: '6h', description: 'Times are in UTC.' }),
        prompt: z.string(),
      })
      .nullable()
      .openapi({ description: 'Of the current version of the bot.' }),
    is_on: z.boolean().openapi({ description: 'Whether it is asked by itself.' }),
    next_run_at: time.nullable(),
    started_by: z.string().nullable().openapi({ description: 'As whom it is, or was, asked.' }),
    started_by_name: actorName,
    started_at: time.nullable(),
    stopped_by: z.string().nullable(),
    stopped_by_name: actorName,
    stopped_at: time.nullable(),
    stopped_reason: z.string().nullable().openapi({
      description:
        '`asked`; of the server itself `role_gone`, `no_schedule`, `bot_archived`, `administrator_disabled`, `revoked_token`; `restored` after `server restore`.',
    }),
    last_report: AgentReport.nullable(),
  })
  .openapi('Agent');

export type Agent = z.infer<typeof Agent>;

export const listAgents = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/agents',
  operationId: 'listAgents',
  summary: 'List the agents of a bot, with their schedules and last reports',
  request: { params: botPath },
  responses: {
    200: answer(
      'Those of the current version, in the order of its spec, and those that were on before.',
      z.strictObject({ items: z.array(Agent) }).openapi('Agents'),
    ),
  },
  errors: ['not_found'],
});

export const setAgentSchedule = defineRoute({
  tags,
  security: administrator('write'),
  method: 'post',
  path: '/bots/{bot_ref}/agents/{role}/schedule',
  operationId: 'setAgentSchedule',
  summary: 'Have an agent asked by itself, or not any more',
  description:
    'A spec says when an agent is asked, and what; only this has it happen. It is asked as whoever turned it on, with of his scopes `read` and `write` at most, until his account is disabled, the token with which he turned it on is revoked, the bot is archived, or its spec has no such agent or schedule any more: an event `agent.schedule_stopped` says so. When the token merely expires, it goes on; a logout revokes it. Times that were missed are not made up for. Each answer is an event `agent.reported`.',
  request: {
    params: agentPath,
    body: json(
      z
        .strictObject({ is_on: z.boolean() })
        .openapi('AgentScheduleInput', { description: 'What it is to be.' }),
      { on: { is_on: true }, off: { is_on: false } },
    ),
  },
  responses: { 200: answer('The agent.', Agent) },
  errors: ['not_found', 'conflict'],
});

export const runAgent = defineRoute({
  ...reading,
  method: 'post',
  path: '/bots/{bot_ref}/agents/{role}/run',
  operationId: 'runAgent',
  summary: 'Ask an agent now what its schedule asks',
  description:
    'As the caller, with his scopes, whether or not its schedule is on. The answer is a turn of a session, also one that failed, and an event `agent.reported`.',
  idempotent: true,
  request: { params: agentPath },
  responses: {
    200: answer('What it answered.', ChatTurn),
    202: answer('It is not answered yet: see the agents of the bot.', ChatTurn),
  },
  errors: ['not_found', 'conflict', 'rate_limited'],
});
