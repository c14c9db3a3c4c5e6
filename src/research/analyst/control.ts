import { formatActor, formatCountOf, formatMoney, formatQuantity } from '../../base/format.ts';
import { RISK_LIMITS } from '../../base/risk-limits.ts';
import { at, withQuery } from '../call-api.ts';
import {
  botOf,
  cite,
  citeEvent,
  citeTask,
  day,
  eventsOf,
  quoted,
  step,
  tasksOf,
  type Event,
  type Facts,
  type Page,
  type Deployment,
} from './facts.ts';
import { reply, type KnownQuestion, type Questions, type Reply } from './question.ts';

/** Limits of `risk`, and the keywords of questions about them. */
const LIMIT_KEYS = [
  [
    'max_order_value',
    [
      'max|maximum|limit|largest value order',
      'order value',
      'how large|big order',
      'how large|big may order',
      'max_order_value',
    ],
  ],
  [
    'max_order_qty',
    ['max|maximum|limit|largest quantity|units order', 'order quantity', 'max_order_qty'],
  ],
  ['price_collar_bps', ['collar', 'price collar', 'price limit', 'price_collar_bps']],
  [
    'max_messages_per_second',
    [
      'message second',
      'message limit',
      'throttle',
      'max|maximum|limit message second',
      'max_messages_per_second',
    ],
  ],
  [
    'max_position_pct',
    ['max|maximum|limit|largest position', 'position limit', 'max_position_pct'],
  ],
  [
    'max_daily_loss_pct',
    [
      'daily loss',
      'max|maximum|limit daily loss',
      'loss limit|allowed',
      'loss day limit|allowed',
      'max_daily_loss_pct',
    ],
  ],
  [
    'max_drawdown_pct',
    ['drawdown limit|allowed', 'limit max|maximum drawdown', 'drawdown stop', 'max_drawdown_pct'],
  ],
  [
    'max_instruments',
    ['many instrument held|hold|once', 'max|maximum|limit instrument', 'max_instruments'],
  ],
  ['repeated_execution', ['repeated execution', 'repeated_execution']],
] as const;

function sayLimit(value: unknown): string {
  if (value === undefined) return 'not stated, so there is none';
  if (typeof value !== 'object' || value === null) return quoted(value);
  const { unlimited } = value as { readonly unlimited?: unknown };
  return unlimited === undefined
    ? JSON.stringify(value)
    : `unlimited, because ${quoted(unlimited)}`;
}

function isUnlimited(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'unlimited' in value;
}

const RISK = '/document/spec/risk';

function limitPointer(name: string, value: unknown): string {
  return `${RISK}/${step(name)}${isUnlimited(value) ? '/unlimited' : ''}`;
}

function limitQuestions(): KnownQuestion[] {
  return LIMIT_KEYS.map(([name, keys]) => {
    const { title, unit } = RISK_LIMITS[name];
    return {
      id: name,
      example: `What is the limit of the ${title}?`,
      tells: unit,
      keys: [...keys, `limit ${title}`],
      async answer(facts) {
        const bot = await botOf(facts);
        const value = bot.data.document.spec.risk?.[name];
        const { current_version } = bot.data;
        const text = `Limit of the ${title} (${name}, ${unit}), in version ${current_version}: ${sayLimit(value)}.`;
        return reply(text, cite(bot, limitPointer(name, value), `risk.${name}`));
      },
    };
  });
}

async function limits(facts: Facts, choose: (value: unknown) => boolean): Promise<Reply> {
  const bot = await botOf(facts);
  const { risk = {} } = bot.data.document.spec;
  const chosen = Object.entries(risk).filter(([, value]) => choose(value));
  if (chosen.length === 0) {
    const text =
      'The spec of the current version states none. Paper and live trading demand that each is stated.';
    return reply(text, cite(bot, RISK, 'risk'));
  }
  return reply(
    [
      'By the spec of the current version, checked before every order:',
      ...chosen.map(([name, value]) => `- ${name}: ${sayLimit(value)}`),
      'What it does not state is not limited by it.',
    ],
    chosen.map(([name, value]) => cite(bot, limitPointer(name, value), `risk.${name}`)),
  );
}

export const LIMIT_QUESTIONS: Questions = {
  title: 'Risk limits of the current version',
  questions: [
    {
      id: 'risk_limits',
      example: 'Which risk limits are there?',
      tells: 'all that the spec states',
      keys: ['limit', 'risk', 'risk limit', 'which|list|show|all risk limit'],
      answer: (facts) => limits(facts, () => true),
    },
    {
      id: 'unlimited',
      example: 'Which limits are unlimited, and why?',
      tells: 'those that the spec lifts, with its reasons',
      keys: ['unlimited', 'unlimited limit', 'not|no limit', 'unlimited why|which limit'],
      answer: (facts) => limits(facts, isUnlimited),
    },
    ...limitQuestions(),
  ],
};

async function halted(facts: Facts): Promise<Reply> {
  const bot = await botOf(facts);
  const { halted: halt } = bot.data;
  if (halt === null) return reply('It is not halted.', cite(bot, '/halted', 'halted'));
  const whose = halt.scope === 'all' ? 'All bots are halted' : 'It is halted';
  const text = `${whose} since ${halt.at}, by ${formatActor(halt.by, halt.by_name)}: ${quoted(halt.reason)}.`;
  return reply(
    text,
    ['scope', 'at', 'by', 'by_name', 'reason'].map((name) => cite(bot, `/halted/${name}`)),
  );
}

/** Of its payload, what fits a line. */
const LONGEST_FACTS = 200;

export function sayEvent({ seq, kind, occurred_at, payload }: Event): string {
  const facts = JSON.stringify(payload);
  const cut = facts.length > LONGEST_FACTS ? `${facts.slice(0, LONGEST_FACTS)}…` : facts;
  return `- ${seq}: ${day(occurred_at)} ${kind} ${cut}`;
}

function events(
  id: string,
  example: string,
  tells: string,
  keys: readonly string[],
  kinds: readonly string[],
  none: string,
): KnownQuestion {
  return {
    id,
    example,
    tells,
    keys,
    async answer(facts) {
      const found = await eventsOf(facts, kinds, kinds.length === 0 ? MOST_LOOKED_AT : MOST_EVENTS);
      const isTalk = ({ kind }: Event): boolean => /^chat\.(?:turn|tool)_/.test(kind);
      const items = found.data.items.filter((event) => !isTalk(event)).slice(-MOST_EVENTS);
      if (items.length === 0) return reply(none, cite(found, '/items', id));
      return reply(
        ['The last ones, by their seq:', ...items.map(sayEvent)],
        items.map((event) => citeEvent(facts.bot, event)),
      );
    },
  };
}

const MOST_EVENTS = 10;
/** So many are read to find those that are not of conversations. */
const MOST_LOOKED_AT = 500;

export const HALTS: Questions = {
  title: 'Halts and events',
  questions: [
    {
      id: 'halted',
      example: 'Is it halted, since when, and by whom?',
      tells: 'the halt that is in force',
      keys: [
        'halt',
        'is halt|halted',
        'since|when|who|whom|why|long halt|halted',
        'since who|whom halted',
        'kill switch',
      ],
      answer: halted,
    },
    events(
      'halt_history',
      'How often was it halted?',
      'its last halts and resumptions',
      ['often|history|times|past halt|halted', 'resume|resumed', 'was halt|halted before|ever'],
      ['control.halted', 'control.resumed'],
      'It was never halted by itself.',
    ),
    {
      id: 'event_count',
      example: 'How many events are there?',
      tells: 'the last seq of its log',
      keys: ['many event', 'number|count event'],
      async answer(facts) {
        const { data } = await eventsOf(facts, [], 1);
        const [last] = data.items;
        const text = `The log has ${formatCountOf(data.head_seq, 'event')}, this question being the last or near it.`;
        return reply(text, last === undefined ? [] : citeEvent(facts.bot, last, '/seq', 'events'));
      },
    },
    events(
      'last_events',
      'What were the last events?',
      'the last ten',
      ['event', 'last|latest|recent event', 'what happened', 'happened last|lately|recently'],
      [],
      'The last 500 are all of conversations.',
    ),
    events(
      'denials',
      'Which orders were denied in sessions?',
      'the last denials on paper and in production',
      ['order denied session|event|live', 'denied|denial event', 'control denying'],
      ['order.denied', 'control.denying'],
      'No order was denied in a session; what a backtest denied is in its result.',
    ),
    events(
      'alerts',
      'Were there alerts?',
      'the last ones',
      ['alert', 'alarm'],
      ['alert.raised'],
      'There were none.',
    ),
    events(
      'latches',
      'Was it latched for repeated execution?',
      'latches, and when they were lifted',
      ['latch|latched', 'latch|latched repeated execution', 're enable|enabled'],
      ['account.latched', 'control.latch_lifted'],
      'It never was.',
    ),
  ],
};

interface Snapshot {
  readonly state: {
    readonly sessions: Readonly<
      Record<
        string,
        {
          readonly status: string;
          readonly cash: number;
          readonly equity: number;
          readonly positions: Readonly<Record<string, number>>;
        }
      >
    >;
  };
}

async function sessions(facts: Facts): Promise<Reply> {
  const found = await facts.get<Snapshot>(at`/bots/${facts.bot}/state/snapshot`);
  const all = Object.entries(found.data.state.sessions);
  if (all.length === 0) {
    const text =
      'It holds nothing: no session of it is running. For a backtest ask which trades were open at its end.';
    return reply(text, cite(found, '/state/sessions', 'sessions'));
  }
  const shown = all.slice(0, 5);
  const lines = shown.map(([id, { status, cash, equity, positions }]) => {
    const held = Object.entries(positions)
      .slice(0, 5)
      .map(([symbol, units]) => `${formatQuantity(units)} ${quoted(symbol)}`);
    return `- session ${id} (${status}): cash ${formatMoney(cash)}, equity ${formatMoney(equity)}, ${held.length === 0 ? 'no positions' : held.join(', ')}`;
  });
  const citations = shown.flatMap(([id, { positions }]) =>
    [
      'cash',
      'equity',
      ...Object.keys(positions)
        .slice(0, 5)
        .map((symbol) => `positions/${step(symbol)}`),
    ].map((name) => cite(found, `/state/sessions/${step(id)}/${name}`, `session ${id} ${name}`)),
  );
  return reply(['By its log:', ...lines], citations);
}

export const STATE: Questions = {
  title: 'What it does now',
  questions: [
    {
      id: 'positions',
      example: 'What does it hold now?',
      tells: 'positions, cash and equity of its sessions',
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
      tells: 'draft, active or archived, and what runs',
      keys: ['status', 'state', 'draft|active|archived', 'running|doing now', 'what running|doing'],
      async answer(facts) {
        const bot = await botOf(facts);
        const { status, active_deployments } = bot.data;
        const running = active_deployments
          .slice(0, 10)
          .map(({ target, version, status: how }) => `- ${target} of version ${version}: ${how}`);
        const citations = [
          cite(bot, '/status'),
          cite(bot, '/active_deployments', 'pending or running'),
        ];
        return reply(
          [
            `It is ${status}; ${running.length === 0 ? 'nothing of it runs.' : 'it runs:'}`,
            ...running,
          ],
          citations,
        );
      },
    },
    {
      id: 'deployments',
      example: 'Which deployments were there?',
      tells: 'the newest ten, of all targets',
      keys: ['deployment', 'deployed', 'which|list|show|all deployment', 'many deployment'],
      async answer(facts) {
        const path = withQuery(at`/bots/${facts.bot}/deployments`, { limit: 10 });
        const page = await facts.get<Page<Deployment>>(path);
        const { items } = page.data;
        if (items.length === 0)
          return reply('There were none.', cite(page, '/items', 'deployments'));
        return reply(
          [
            'The newest:',
            ...items.map(
              ({ deployment_id, target, version, status, created_at }) =>
                `- ${target} ${deployment_id} of version ${version}: ${status}, ${created_at}`,
            ),
          ],
          items.map((_, i) => cite(page, `/items/${i}/status`, `deployment ${i + 1} status`)),
        );
      },
    },
    {
      id: 'paper_sessions',
      example: 'Which paper sessions were there?',
      tells: 'the newest ten',
      keys: ['paper', 'paper session', 'session', 'which|list paper session'],
      async answer(facts) {
        const page = await tasksOf(facts, { kind: 'paper', limit: 10 });
        const chosen = page.data.items.filter(({ kind }) => kind === 'paper');
        if (chosen.length === 0) {
          return reply(
            'There were none; a bot of kind research has none.',
            cite(page, '/items', 'paper sessions'),
          );
        }
        return reply(
          [
            'The newest:',
            ...chosen.map(
              ({ task_id, version, status, created_at }) =>
                `- ${task_id} of version ${version}: ${status}, ${created_at}`,
            ),
          ],
          chosen.map((task) => citeTask(task, '/status', `paper session ${task.task_id}`)),
        );
      },
    },
  ],
};
