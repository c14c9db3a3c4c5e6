import type { Agent, setAgentSchedule } from '../api/agents.ts';
import { formatActor } from '../base/format.ts';
import { printableLine } from '../base/printable.ts';
import { connect } from './connect.ts';
import type { Columns } from './show-items.ts';
import type { Context } from './verb.ts';

export const ROLE_ARGUMENT = { description: 'role of the agent in the spec of the bot' } as const;

/** Length of a report in a list, characters. */
const SHOWN_REPORT = 60;

export const AGENT_COLUMNS: Columns<Agent> = {
  role: ({ role }) => printableLine(role),
  every: ({ schedule }) => schedule?.every ?? '',
  state: ({ is_on, schedule, stopped_by, stopped_by_name, stopped_reason }) => {
    if (is_on) return 'on';
    if (stopped_reason === 'asked' && stopped_by !== null) {
      return `off: stopped by ${formatActor(stopped_by, stopped_by_name)}`;
    }
    if (stopped_reason !== null) {
      return `off: stopped by the server (${stopped_reason.replaceAll('_', ' ')})`;
    }
    return schedule === null ? '' : 'off';
  },
  as: ({ is_on, started_by, started_by_name }) =>
    is_on && started_by !== null ? formatActor(started_by, started_by_name) : '',
  'next run': ({ next_run_at }) => next_run_at ?? '',
  'last report': ({ last_report }) => {
    if (last_report === null) return '';
    const { seq, recorded_at, status, text } = last_report;
    const line = printableLine(text);
    const excerpt = line.length > SHOWN_REPORT ? `${line.slice(0, SHOWN_REPORT)}…` : line;
    return `${recorded_at} event ${seq}: ${status === 'done' ? excerpt : status}`;
  },
};

export async function setSchedule(
  context: Context,
  bot_ref: string,
  role: string,
  is_on: boolean,
): Promise<Agent> {
  const server = await connect(context);
  return server.call<typeof setAgentSchedule>('post', '/bots/{bot_ref}/agents/{role}/schedule', {
    params: { bot_ref, role },
    body: { is_on },
  });
}
