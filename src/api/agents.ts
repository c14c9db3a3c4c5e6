import { z } from '@hono/zod-openapi';
import { actorName, administrator, defineRoute, id, jsonBody, jsonResponse, time } from './http.ts';
import { ChatTurn, EXAMPLE_RESEARCH_BOT } from './research.ts';

const tags = ['Research'];
const reading = { tags, security: administrator('read') };

export const EXAMPLE_ROLE = 'watcher';

const botPath = z.strictObject({ bot_ref: id(EXAMPLE_RESEARCH_BOT) });
const agentPath = z.strictObject({
  ...botPath.shape,
  role: z.string().min(1).max(100).openapi({ example: EXAMPLE_ROLE }),
});

const AgentReport = z
  .strictObject({
    seq: z
      .int()
      .describe('Sequence number of the event `agent.reported`, which has the whole report.'),
    recorded_at: time,
    cause: z.enum(['schedule', 'person']),
    session_id: z.string(),
    turn_id: z.string(),
    status: z.enum(['done', 'failed', 'interrupted']),
    text: z.string().describe('The report, truncated if it is long.'),
  })
  .openapi('AgentReport');

const Agent = z
  .strictObject({
    role: z.string(),
    tools: z.array(z.string()).nullable().describe('Null allows all tools.'),
    schedule: z
      .strictObject({
        every: z.string().openapi({ example: '6h', description: 'Interval; times are in UTC.' }),
        prompt: z.string(),
      })
      .nullable()
      .describe('Schedule in the current version of the bot; null if it has none.'),
    is_on: z.boolean().describe('Whether the agent runs on its schedule.'),
    next_run_at: time.nullable(),
    started_by: z.string().nullable().describe('Administrator as whom the agent runs or last ran.'),
    started_by_name: actorName,
    started_at: time.nullable(),
    stopped_by: z.string().nullable(),
    stopped_by_name: actorName,
    stopped_at: time.nullable(),
    stopped_reason: z
      .string()
      .nullable()
      .describe(
        '`asked` after a request; `role_gone`, `no_schedule`, `bot_archived`, `administrator_disabled` or `revoked_token` if the server stopped it; `restored` after `server restore`.',
      ),
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
    200: jsonResponse(
      'Agents of the current version, in the order of the spec, then other agents whose schedule was on before.',
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
  summary: 'Turn the schedule of an agent on or off',
  description:
    'A spec defines when an agent runs and its prompt; this request turns that schedule on. The agent runs as the caller, with at most the scopes `read` and `write`, until the account is disabled, the token of this request is revoked, the bot is archived, or the spec no longer has the agent or its schedule. The server then records an event `agent.schedule_stopped`. The schedule continues when the token merely expires; a logout revokes the token. Missed runs are not made up for. Each answer is recorded as an event `agent.reported`.',
  request: {
    params: agentPath,
    body: jsonBody(
      z
        .strictObject({ is_on: z.boolean() })
        .openapi('AgentScheduleInput', { description: 'The new state of the schedule.' }),
      { on: { is_on: true }, off: { is_on: false } },
    ),
  },
  responses: { 200: jsonResponse('The agent.', Agent) },
  errors: ['not_found', 'conflict'],
});

export const runAgent = defineRoute({
  ...reading,
  method: 'post',
  path: '/bots/{bot_ref}/agents/{role}/run',
  operationId: 'runAgent',
  summary: "Run the prompt of an agent's schedule now",
  description:
    "The agent runs as the caller, with the caller's scopes, whether or not its schedule is on. The answer, even a failed one, is a turn of a chat session and an event `agent.reported`.",
  idempotent: true,
  request: { params: agentPath },
  responses: {
    200: jsonResponse('The turn with the answer.', ChatTurn),
    202: jsonResponse('The answer is not complete; see the agents of the bot.', ChatTurn),
  },
  errors: ['not_found', 'conflict', 'rate_limited'],
});
