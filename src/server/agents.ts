import { randomUUID } from 'node:crypto';
import * as api from '../api/agents.ts';
import { formatInstant, formatInstantOrNull } from '../api/http.ts';
import { ServiceError } from '../base/errors.ts';
import { withNames, type WithNames } from '../identity/actor-names.ts';
import { checkCaller, type Caller } from '../identity/tokens.ts';
import {
  claimRun,
  dueSchedules,
  reportRun,
  runNow,
  unreportedRuns,
} from '../research/scheduled-runs.ts';
import {
  listAgents,
  startSchedule,
  stopSchedule,
  type AgentState,
  type Delegated,
} from '../research/schedules.ts';
import type { BegunTurn, TurnContext } from '../research/turns.ts';
import { actorOf } from './authentication.ts';
import { createOnce } from './idempotency.ts';
import { askWhileAllowed, serializeTurn } from './research.ts';
import type { App, Services } from './services.ts';

/** Slightly less than the time limit of a request. */
const WAIT_MS = 25_000;
const POLL_INTERVAL_MS = 5000;

export function addAgents(app: App, services: Services): void {
  const { chat } = services;
  const { read } = chat.storage;
  const stateOf = async (bot_ref: string): Promise<NamedState[]> =>
    withNames(read, await listAgents(read, bot_ref), 'started_by', 'stopped_by');

  app.openapi(api.listAgents, async (c) => {
    const states = await stateOf(c.req.valid('param').bot_ref);
    return c.json({ items: states.map(serializeAgent) }, 200);
  });
  app.openapi(api.setAgentSchedule, async (c) => {
    const { bot_ref, role } = c.req.valid('param');
    const caller = c.var.caller!;
    if (c.req.valid('json').is_on) {
      const token_id = 'token_id' in caller ? caller.token_id : null;
      await startSchedule(chat, { ...caller, token_id }, bot_ref, role);
    } else {
      await stopSchedule(chat, actorOf(c), bot_ref, role);
    }
    const state = (await stateOf(bot_ref)).find((one) => one.role === role);
    return c.json(serializeAgent(state!), 200);
  });
  app.openapi(api.runAgent, async (c) => {
    const { bot_ref, role } = c.req.valid('param');
    const caller = c.var.caller!;
    const { administrator_id, scopes } = caller;
    const { turn_id } = await chat.admit(administrator_id, async () => {
      let begun: BegunTurn | undefined;
      const create = async (context: TurnContext): Promise<BegunTurn> => {
        begun = await runNow(context, actorOf(c), bot_ref, role);
        return begun;
      };
      const place = await createOnce(c, chat, create, (one) => ({ turn_id: one.turn_id }));
      const ask = askWhileAllowed(app, services, caller, c.var.request_id);
      if (begun) chat.run(begun, { administrator_id, ask, scopes });
      return place;
    });
    const turn = await chat.waitFor(turn_id, WAIT_MS);
    await reportRun(chat, turn_id);
    return c.json(serializeTurn(turn), turn.status === 'running' ? 202 : 200);
  });
}

export interface AgentRunner {
  readonly poll: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

export function startAgentRunner(app: App, services: Services): AgentRunner {
  const { chat, log } = services;
  const admits = (...[tx, now, delegated]: Parameters<Parameters<typeof claimRun>[2]>) =>
    checkCaller(tx, now, callerOf(delegated));
  let isStopping = false;
  const poll = async (): Promise<void> => {
    for (const turn_id of await unreportedRuns(chat.storage.read)) {
      await apart(`turn ${turn_id} could not be reported`, () => reportRun(chat, turn_id));
    }
    for (const due of await dueSchedules(chat.storage.read, chat.clock())) {
      if (isStopping) return;
      await apart(`agent ${due.role} of bot ${due.bot_id} could not be run`, () =>
        chat.admit(undefined, () => askDue(due)),
      );
    }
  };
  const askDue = async (due: Parameters<typeof claimRun>[1]): Promise<void> => {
    const claimed = await claimRun(chat, due, admits);
    if (claimed === undefined) return;
    const caller = callerOf(claimed.delegated);
    const { administrator_id, scopes } = caller;
    const ask = askWhileAllowed(app, services, caller, randomUUID());
    chat.run(claimed.begun, { administrator_id, ask, scopes });
    void reportAfter(claimed.begun);
  };
  /** A failure of one agent must not delay the others. */
  const apart = async (what: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (error instanceof ServiceError && error.retryable) throw error;
      log.error({ err: error, msg: what });
    }
  };
  const reportAfter = async ({ turn_id, budget }: BegunTurn): Promise<void> => {
    try {
      await chat.waitFor(turn_id, budget.seconds * 1000);
      if (!isStopping) await pollNow();
    } catch {
      // A later poll reports the turn.
    }
  };
  let polling: Promise<void> | undefined;
  const pollNow = (): Promise<void> =>
    (polling ??= poll()
      .catch((error: unknown) => {
        // A later poll runs the agents once there is capacity.
        if (error instanceof ServiceError && error.code === 'overloaded') return;
        log.warn({ err: error, msg: 'due agents could not be run' });
      })
      .finally(() => {
        polling = undefined;
      }));
  const timer = setInterval(() => void pollNow(), POLL_INTERVAL_MS).unref();
  void pollNow();
  return {
    poll: pollNow,
    async stop() {
      isStopping = true;
      clearInterval(timer);
      await polling;
    },
  };
}

function callerOf({ administrator_id, scopes, bot_id, role }: Delegated): Caller {
  return { administrator_id, scopes, agent: { bot_id, role } };
}

type NamedState = WithNames<AgentState, 'started_by' | 'stopped_by'>;

function serializeAgent(state: NamedState): api.Agent {
  const { tools, schedule, next_run_at, started_at, stopped_at, last_report } = state;
  return {
    ...state,
    tools: tools && [...tools],
    schedule: schedule && { ...schedule },
    next_run_at: formatInstantOrNull(next_run_at),
    started_at: formatInstantOrNull(started_at),
    stopped_at: formatInstantOrNull(stopped_at),
    last_report: last_report && {
      ...last_report,
      recorded_at: formatInstant(last_report.recorded_at),
    },
  };
}
