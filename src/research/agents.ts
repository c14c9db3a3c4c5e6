import { z } from 'zod';
import { closest } from '../base/closest.ts';
import { ServiceError } from '../base/errors.ts';
import type { WantedBudget } from './answering.ts';
import type { Tool } from './tool.ts';
import { toolNamed, TOOLS } from './tools.ts';

/** An agent of a research bot, ready to be asked. */
export interface Agent {
  readonly role: string;
  readonly instructions: string | undefined;
  /** Tools it may use, if the caller has their scopes. */
  readonly tools: readonly Tool[];
  readonly budget: WantedBudget;
}

/** Interval and prompt with which the server asks an agent automatically; see `agents` of the spec. */
export interface AgentSchedule {
  readonly every: string;
  readonly prompt: string;
}

/** The part of a stored spec that agents need. The whole spec was validated when it was saved. */
const documentSchema = z.object({
  spec: z
    .object({
      agents: z
        .array(
          z.object({
            role: z.string(),
            instructions: z.string().optional(),
            tools: z.array(z.string()).optional(),
            budget: z
              .object({
                turns: z.number().optional(),
                seconds: z.number().optional(),
                tokens: z.number().optional(),
              })
              .optional(),
            schedule: z.object({ every: z.string(), prompt: z.string() }).optional(),
          }),
        )
        .default([]),
    })
    .default({ agents: [] }),
});

/** Lists the agents of a spec in the order of the document. */
export function agentsOf(document: unknown): readonly {
  readonly role: string;
  /** Names of its tools; undefined for all tools. */
  readonly tools?: readonly string[] | undefined;
  readonly schedule?: AgentSchedule | undefined;
}[] {
  return documentSchema.parse(document).spec.agents;
}

/**
 * Finds the schedule of an agent.
 * @throws ServiceError `not_found`, with the known roles; `conflict` if the agent has no schedule.
 */
export function scheduleOf(document: unknown, role: string): AgentSchedule {
  const agents = agentsOf(document);
  const found = agents.find((agent) => agent.role === role);
  if (found === undefined) throw unknownRole(role, agents);
  if (found.schedule !== undefined) return found.schedule;
  throw new ServiceError('conflict', `the agent ${role} has no schedule`, {
    reason: 'no_schedule',
    remedy:
      'Add an interval and a prompt to the agent in the spec: `schedule: {every: 6h, prompt: What has changed?}`.',
  });
}

/**
 * Finds an agent by its role.
 * @param document the spec document of the bot, as authored.
 * @throws ServiceError `not_found`, with the known roles; `conflict` if the spec names an unknown tool.
 */
export function agentOf(document: unknown, role: string): Agent {
  const { agents } = documentSchema.parse(document).spec;
  const found = agents.find((agent) => agent.role === role);
  if (found === undefined) throw unknownRole(role, agents);
  const { instructions, tools, budget = {} } = found;
  return {
    role,
    instructions,
    tools: tools === undefined ? TOOLS : tools.map((name) => toolOf(role, name)),
    budget,
  };
}

function toolOf(role: string, name: string): Tool {
  try {
    return toolNamed(name);
  } catch (cause) {
    const { message, remedy } = cause as ServiceError;
    throw new ServiceError('conflict', `the agent ${role} cannot answer: ${message}`, {
      reason: 'unknown_tool',
      ...(remedy !== undefined && { remedy }),
      cause,
    });
  }
}

function unknownRole(role: string, agents: readonly { readonly role: string }[]): ServiceError {
  const roles = agents.map((agent) => agent.role);
  const meant = closest(role, roles);
  const known =
    roles.length === 0 ? 'Its spec names no agents.' : `Its agents are ${roles.join(', ')}.`;
  return new ServiceError('not_found', `the bot has no agent ${JSON.stringify(role)}`, {
    reason: 'unknown_role',
    remedy: meant === undefined ? known : `Did you mean ${meant}? ${known}`,
  });
}
