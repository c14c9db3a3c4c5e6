import { formatActor, formatCountOf, formatMoney, formatQuantity } from '../../base/format.ts';
import { RISK_LIMITS } from '../../base/risk-limits.ts';
import { at, withQuery } from '../call-api.ts';
import {
  botOf,
  cite,
  citeEvent,
  citeFields,
  citeTask,
  day,
  eventsOf,
  quoted,
  step,
  tasksOf,
  type Deployment,
  type Event,
  type Facts,
  type Page,
} from './facts.ts';
import { reply, type Reply } from './reply.ts';
import type { Topic, TopicPart } from './topics.ts';

/** Limits of `risk`, and the keys of questions about them. */
const LIMIT_KEYS = {
  max_order_value: [
    'max|maximum|limit|largest value order',
    'order value',
    'how large|big order',
    'how large|big may order',
  ],
  max_order_qty: ['max|maximum|limit|largest quantity|units order', 'order quantity'],
  price_collar_bps: ['collar', 'price collar', 'price limit'],
  max_messages_per_second: [
    'message second',
    'message limit',
    'throttle',
    'max|maximum|limit message second',
  ],
  max_position_pct: ['max|maximum|limit position', 'position limit'],
  max_daily_loss_pct: [
    'daily loss limit|allowed',
    'max|maximum|limit daily loss',
    'loss limit|allowed',
    'loss day limit|allowed',
  ],
  max_drawdown_pct: ['drawdown limit|allowed', 'limit max|maximum drawdown', 'drawdown stop'],
  max_instruments: ['many instrument held|hold|once', 'max|maximum|limit instrument'],
  repeated_execution: ['repeated execution'],
} as const;

const RISK = '/document/spec/risk';

const isUnlimited = (value: unknown): value is { readonly unlimited: unknown } =>
  typeof value === 'object' && value !== null && 'unlimited' in value;

function stateLimit(value: unknown): string {
  if (value === undefined) return 'not stated, so there is none';
  if (isUnlimited(value)) return `unlimited, because ${quoted(value.unlimited)}`;
  return quoted(value);
}

const limitPointer = (name: string, value: unknown): string =>
  `${RISK}/${step(name)}${isUnlimited(value) ? '/unlimited' : ''}`;

const limitTopics = Object.entries(LIMIT_KEYS).map(([id, keys]): Topic => {
  const name = id as keyof typeof LIMIT_KEYS;
  const { title, unit } = RISK_LIMITS[name];
  return {
    id: name,
    example: `What is the limit of the ${title}?`,
    about: unit,
    keys: [...keys, name, `limit ${title}`],
    async answer(facts) {
      const bot = await botOf(facts);
      const value = bot.data.document.spec.risk?.[name];
      const text = `Limit of the ${title} (${name}, ${unit}), in version ${bot.data.current_version}: ${stateLimit(value)}.`;
      return reply(text, cite(bot, limitPointer(name, value), `risk.${name}`));
    },
  };
});

async function limits(facts: Facts, isWanted: (value: unknown) => boolean): Promise<Reply> {
  const bot = await botOf(facts);
  const chosen = Object.entries(bot.data.document.spec.risk ?? {}).filter(([, value]) =>
    isWanted(value),
  );
  if (chosen.length === 0) {
    const text =
      'The spec of the current version states none. Paper and live trading require each of them.';
    return reply(text, cite(bot, RISK, 'risk'));
  }
  return reply(
    [
      'Limits in the spec of the current version, checked before every order:',
      ...chosen.map(([name, value]) => `- ${name}: ${stateLimit(value)}`),
    ],
    chosen.map(([name, value]) => cite(bot, limitPointer(name, value), `risk.${name}`)),
  );
}

async function halted(facts: Facts): Promise<Reply> {
  const bot = await botOf(facts);
  const { halted: halt } = bot.data;
  if (halt === null) return notHalted(facts, cite(bot, '/halted', 'halted'));
  const which = halt.scope === 'all' ? 'All bots are halted' : 'It is halted';
  return reply(
    `${which} since ${halt.at}, by ${formatActor(halt.by, halt.by_name)}: ${quoted(halt.reason)}.`,
    citeFields(bot, '/halted', ['scope', 'at', 'by', 'by_name', 'reason']),
  );
}

/** Reports the last halt, too, because "why was it halted" is usually asked after it was lifted. */
async function notHalted(facts: Facts, cited: ReturnType<typeof cite>): Promise<Reply> {
  const { data } = await eventsOf(facts, HALT_EVENTS, 2);
  if (data.items.length === 0) return reply('It is not halted.', cited);
  return reply(
    ['It is not halted now. Its last halt and resumption:', ...data.items.map(stateEvent)],
    [cited, ...data.items.map((event) => citeEvent(facts.bot, event))].flat(),
  );
}

const HALT_EVENTS = ['control.halted', 'control.resumed'];
const LONGEST_PAYLOAD = 200;
const MOST_EVENTS = 10;
/** Read to find events that do not belong to conversations. */
const MOST_READ = 500;

export function stateEvent({ seq, kind, occurred_at, payload }: Event): string {
  const text = JSON.stringify(payload);
  const cut = text.length > LONGEST_PAYLOAD ? `${text.slice(0, LONGEST_PAYLOAD)}…` : text;
  return `- ${seq}: ${day(occurred_at)} ${kind} ${cut}`;
}

function eventTopic(
  id: string,
  example: string,
  about: string,
  keys: readonly string[],
  kinds: readonly string[],
  none: string,
): Topic {
  return {
    id,
    example,
    about,
    keys,
    async answer(facts) {
      const found = await eventsOf(facts, kinds, kinds.length === 0 ? MOST_READ : MOST_EVENTS);
      const items = found.data.items
        .filter(({ kind }) => !/^chat\.(?:turn|tool)_/.test(kind))
        .slice(-MOST_EVENTS);
      if (items.length === 0) return reply(none, cite(found, '/items', id));
      return reply(
        ['The last ones, with their sequence numbers:', ...items.map(stateEvent)],
        items.map((event) => citeEvent(facts.bot, event)),
      );
    },
  };
}

async function countEvents(facts: Facts): Promise<Reply> {
  const { data } = await eventsOf(facts, [], 1);
  const [last] = data.items;
  return reply(
    `The log has ${formatCountOf(data.head_seq, 'event')}, including this question.`,
    last === undefined ? [] : citeEvent(facts.bot, last, '/seq', 'events'),
  );
}

interface Snapshot {
  readonly state: {
    readonly sessions: Readonly<Record<string, Session>>;
  };
}

interface Session {
  readonly status: string;
  readonly cash: number;
  readonly equity: number;
  readonly positions: Readonly<Record<string, number>>;
}

const MOST_SESSIONS = 5;
const MOST_POSITIONS = 5;

async function sessions(facts: Facts): Promise<Reply> {
  const found = await facts.get<Snapshot>(at`/bots/${facts.bot}/state/snapshot`);
  const all = Object.entries(found.data.state.sessions).slice(0, MOST_SESSIONS);
  if (all.length === 0) {
    const text =
      'It holds nothing, because no session is running. For a backtest, ask which trades were open at the end.';
    return reply(text, cite(found, '/state/sessions', 'sessions'));
  }
  const positionsOf = ({ positions }: Session) =>
    Object.entries(positions).slice(0, MOST_POSITIONS);
  const lines = all.map(([id, session]) => {
    const held = positionsOf(session).map(
      ([symbol, units]) => `${formatQuantity(units)} ${quoted(symbol)}`,
    );
    const { status, cash, equity } = session;
    return `- session ${id} (${status}): cash ${formatMoney(cash)}, equity ${formatMoney(equity)}, ${held.length === 0 ? 'no positions' : held.join(', ')}`;
  });
  const citations = all.flatMap(([id, session]) =>
    ['cash', 'equity', ...positionsOf(session).map(([symbol]) => `positions/${step(symbol)}`)].map(
      (name) => cite(found, `/state/sessions/${step(id)}/${name}`, `session ${id} ${name}`),
    ),
  );
  return reply(['By the log:', ...lines], citations);
}

async function botStatus(facts: Facts): Promise<Reply> {
  const bot = await botOf(facts);
  const { status: current, active_deployments: active } = bot.data;
  const running = active
    .slice(0, 10)
    .map((one) => `- ${one.target} of version ${one.version}: ${one.status}`);
  return reply(
    [`It is ${current}; ${running.length === 0 ? 'nothing of it runs.' : 'it runs:'}`, ...running],
    cite(bot, '/status'),
    cite(bot, '/active_deployments', 'pending or running'),
  );
}

/** A line of a list of runs. */
function stateRun(name: string, version: number, status: string, created_at: string): string {
  return `- ${name} of version ${version}: ${status}, ${created_at}`;
}

async function deployments(facts: Facts): Promise<Reply> {
  const page = await facts.get<Page<Deployment>>(
    withQuery(at`/bots/${facts.bot}/deployments`, { limit: 10 }),
  );
  const { items } = page.data;
  if (items.length === 0) return reply('There were none.', cite(page, '/items', 'deployments'));
  const lines = items.map(({ deployment_id, target, version, status, created_at }) =>
    stateRun(`${target} ${deployment_id}`, version, status, created_at),
  );
  return reply(
    ['The newest:', ...lines],
    items.map((_, i) => cite(page, `/items/${i}/status`, `deployment ${i + 1} status`)),
  );
}

async function paperSessions(facts: Facts): Promise<Reply> {
  const page = await tasksOf(facts, { kind: 'paper', limit: 10 });
  const chosen = page.data.items.filter(({ kind }) => kind === 'paper');
  if (chosen.length === 0) {
    return reply(
      'There were none; a bot of kind research has none.',
      cite(page, '/items', 'paper sessions'),
    );
  }
  const lines = chosen.map(({ task_id, version, status, created_at }) =>
    stateRun(task_id, version, status, created_at),
  );
  return reply(
    ['The newest:', ...lines],
    chosen.map((task) => citeTask(task, '/status', `paper session ${task.task_id}`)),
  );
}

export const STATE_TOPICS: TopicPart = {
  title: 'Limits, halts, events and state',
  topics: [
    {
      id: 'risk_limits',
      example: 'Which risk limits are there?',
      about: 'all that the spec states',
      keys: ['limit', 'risk', 'risk limit', 'which|list|show|all risk limit'],
      answer: (facts) => limits(facts, () => true),
    },
    {
      id: 'unlimited',
      example: 'Which limits are unlimited, and why?',
      about: 'those that the spec lifts, with its reasons',
      keys: ['unlimited', 'unlimited limit', 'not|no limit', 'unlimited why|which limit'],
      answer: (facts) => limits(facts, isUnlimited),
    },
    ...limitTopics,
    {
      id: 'halted',
      example: 'Is it halted, since when, and who halted it?',
      about: 'the halt in force',
      keys: [
        'halt',
        'is halt|halted',
        'since|when|who|whom|why|long halt|halted',
        'since who|whom halted',
        'kill switch',
      ],
      answer: halted,
    },
    eventTopic(
      'halt_history',
      'How often was it halted?',
      'its last halts and resumptions',
      ['often|history|times|past halt|halted', 'resume|resumed', 'was halt|halted before|ever'],
      HALT_EVENTS,
      'It was never halted by itself.',
    ),
    {
      id: 'event_count',
      example: 'How many events are there?',
      about: 'the last sequence number of its log',
      keys: ['many event', 'number|count event'],
      answer: countEvents,
    },
    eventTopic(
      'last_events',
      'What were the last events?',
      'the last ten',
      ['event', 'last|latest|recent event', 'what happened', 'happened last|lately|recently'],
      [],
      'The last 500 events all belong to conversations.',
    ),
    eventTopic(
      'denials',
      'Which orders were denied in sessions?',
      'the last denials on paper and in production',
      ['order denied session|event|live', 'denied|denial event', 'control denying'],
      ['order.denied', 'control.denying'],
      'No order was denied in a session; the result of a backtest states its own denials.',
    ),
    eventTopic(
      'alerts',
      'Were there alerts?',
      'the last ones',
      ['alert', 'alarm'],
      ['alert.raised'],
      'There were none.',
    ),
    eventTopic(
      'latches',
      'Was it latched for repeated execution?',
      'latches, and when they were lifted',
      ['latch|latched', 'latch|latched repeated execution', 're enable|enabled'],
      ['account.latched', 'control.latch_lifted'],
      'It never was.',
    ),
    {
      id: 'positions',
      example: 'What does it hold now?',
      about: 'positions, cash and equity of its sessions',
      keys: [
        'position',
        'it|bot|does hold|held',
        'cash',
        'hold|holding|cash|position now',
        'much cash',
      ],
      answer: sessions,
    },
    {
      id: 'status',
      example: 'What is its status?',
      about: 'draft, active or archived, and what runs',
      keys: ['status', 'state', 'draft|active|archived', 'running|doing now', 'what running|doing'],
      answer: botStatus,
    },
    {
      id: 'deployments',
      example: 'Which deployments were there?',
      about: 'the newest ten',
      keys: ['deployment', 'deployed', 'which|list|show|all deployment', 'many deployment'],
      answer: deployments,
    },
    {
      id: 'paper_sessions',
      example: 'Which paper sessions were there?',
      about: 'the newest ten',
      keys: ['paper', 'paper session', 'session', 'which|list paper session'],
      answer: paperSessions,
    },
  ],
};
