import { z } from 'zod';
import { closest } from '../base/closest.ts';
import { ServiceError } from '../base/errors.ts';
import type { WantedBudget } from './answering.ts';
import { toolNamed, TOOLS, type Tool } from './tools.ts';

/** An agent of a spec, as it is talked to. */
export interface Agent {
  readonly role: string;
  /** Of the author of the spec. */
  readonly instructions: string | undefined;
  /** What it may use, where its caller may. */
  readonly tools: readonly Tool[];
  readonly budget: WantedBudget;
}

/** When an agent is asked by itself, and what: see `agents` of a spec. */
export interface AgentSchedule {
  readonly every: string;
  readonly prompt: string;
}

/** What is read of `agents` of a spec, which was checked when it was taken. */
const documentSchema = z.object({
  spec: z.object({
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
  }),
});

/** Those of a spec, as authored, in its order. */
export function agentsOf(document: unknown): readonly {
  readonly role: string;
  /** Undefined for all. */
  readonly tools?: readonly string[] | undefined;
  readonly schedule?: AgentSchedule | undefined;
}[] {
  return documentSchema.parse(document).spec.agents;
}

/**
 * When the agent of that role is asked.
 * @throws ServiceError `not_found` with the roles there are; `conflict` where it has no schedule.
 */
export function scheduleOf(document: unknown, role: string): AgentSchedule {
  const agents = agentsOf(document);
  const found = agents.find((agent) => agent.role === role);
  if (found === undefined) throw unknownRole(role, agents);
  if (found.schedule !== undefined) return found.schedule;
  throw new ServiceError('conflict', `the agent ${role} has no schedule`, {
    reason: 'no_schedule',
    remedy:
      'Say in the spec when it is asked, and what: `schedule: {every: 6h, prompt: What has changed?}`.',
  });
}

/**
 * The agent of that role.
 * @param document the spec of the bot, as authored.
 * @throws ServiceError `not_found` with the roles there are; `conflict` for a tool that there is not.
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
    throw new ServiceError('conflict', `the agent ${role} cannot be asked: ${message}`, {
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
