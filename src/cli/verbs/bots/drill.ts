import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { archiveBot, createBot, listBots } from '../../../api/bots.ts';
import type { getBotSnapshot } from '../../../api/bot-state.ts';
import type { haltBot, HaltReport, resumeBot } from '../../../api/halts.ts';
import type { startPaper } from '../../../api/paper.ts';
import type { Client } from '../../../client/client.ts';
import { ServiceError } from '../../../base/errors.ts';
import { findBot } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { findOptional } from '../../find-optional.ts';
import { haltAnswer, haltOfAll, requestHalt, showReport } from '../../halts.ts';
import { defineVerb, type Context } from '../../verb.ts';

const LOOK_EVERY_MS = 50;
const TRADES_WITHIN_MS = 60_000;
/** Pace of the session: fast enough to trade soon, slow enough not to end before the halt. */
const SECONDS_PER_BAR = 0.5;

export const verb = defineVerb({
  summary: 'test on a temporary bot that halting works, and measure how long it takes',
  description:
    'Creates a bot on the server, starts a paper session, waits until the session has an order or a position, halts the bot, verifies the halt, and prints how long each step took. The bot is archived at the end, even after a failure or Ctrl-C. No other bot is affected. While all bots are halted, no bot is created and the drill fails. Needs a token with the scopes read, write, trade and halt. Like `bots halt`, exits with code 7 if not everything was verified.',
  options: {
    data: {
      value: 'catalog://name',
      description:
        'dataset of the catalogue of the server; by default that of the first trading bot, active bots before drafts',
      parse: parseAddress,
    },
    timeframe: {
      value: 'timeframe',
      description: 'timeframe of the dataset in --data',
      default: '1d',
    },
  },
  settings: ['server_url'],
  examples: ['bots drill', 'bots drill --data catalog://SPX --timeframe 1d --json'],
  async run(context, _args, { data, timeframe }) {
    const server = await connect(context, context.signal);
    await requireNoHalt(server);
    const market = data === undefined ? await findMarket(server) : marketOfDataset(data, timeframe);
    const slug = `drill-${randomBytes(4).toString('hex')}`;
    const { report, times } = await drill(context, server, slug, market);
    const { failure } = haltAnswer(report);
    return {
      data: { bot: slug, ...times, report },
      show(out) {
        showReport(out, report);
        out.table(
          [{ title: 'from' }, { title: 'to' }, { title: 'ms', align: 'right' }],
          [
            ['start', 'first order', String(times.trading_ms)],
            ['halt', 'latch', String(times.latched_ms)],
            ['halt', 'verified', String(times.verified_ms)],
            ['halt', 'answer', String(times.answered_ms)],
          ],
        );
      },
      failure,
    };
  },
});

async function requireNoHalt(server: Client): Promise<void> {
  const halt = await haltOfAll(server);
  if (halt === undefined) return;
  const { requested_at, reason } = halt;
  throw new ServiceError('conflict', `all bots have been halted since ${requested_at}: ${reason}`, {
    reason: 'halted',
    remedy:
      'No bot was created. Lift the halt with `service-local bots resume-all`, and run the drill again.',
  });
}

interface Market {
  readonly symbol: string;
  readonly source: string;
  readonly timeframe: string;
}

async function drill(
  context: Context,
  server: Client,
  slug: string,
  market: Market,
): Promise<{ readonly report: HaltReport; readonly times: Record<string, number> }> {
  const since = (begin: number): number => Math.round(performance.now() - begin);
  const { parseTimeframe } = await import('../../../market/timeframe.ts');
  const { REQUIRED_LIMIT_NAMES } = await import('../../../base/risk-limits.ts');
  const document = makeDocument(slug, market, REQUIRED_LIMIT_NAMES);
  const speed = parseTimeframe(market.timeframe).ms / 1000 / SECONDS_PER_BAR;
  try {
    const { id: bot_ref } = await server.call<typeof createBot>('post', '/bots', {
      body: { document },
    });
    const params = { bot_ref };
    context.message(`created the bot ${slug} with data from ${market.source}`);
    const started = performance.now();
    const { task_id } = await server.call<typeof startPaper>(
      'post',
      '/bots/{bot_ref}/paper/start',
      {
        params,
        body: { speed },
      },
    );
    await awaitFirstOrder(context, server, bot_ref, task_id);
    const trading_ms = since(started);
    context.message('the bot trades; halting it');
    const halted = performance.now();
    const report = await requestHalt(() =>
      server.call<typeof haltBot>('post', '/bots/{bot_ref}/halt', {
        params,
        body: { reason: 'a drill' },
      }),
    );
    const { latched_ms, verified_ms } = report;
    const times = { trading_ms, latched_ms, verified_ms, answered_ms: since(halted) };
    return { report, times };
  } finally {
    await cleanUp(context, slug);
  }
}

async function awaitFirstOrder(
  { signal }: Context,
  server: Client,
  bot_ref: string,
  task_id: string,
): Promise<void> {
  const until = performance.now() + TRADES_WITHIN_MS;
  const path = '/bots/{bot_ref}/state/snapshot';
  while (performance.now() < until) {
    const { state } = await server.call<typeof getBotSnapshot>('get', path, {
      params: { bot_ref },
    });
    const session = state.sessions[task_id];
    if (session === undefined) {
      throw new ServiceError('failure', 'the paper session ended before the bot traded', {
        remedy: `See \`service-local tasks get ${task_id}\`, or choose a longer dataset with --data.`,
      });
    }
    if (session.working.length > 0 || Object.keys(session.positions).length > 0) return;
    await wait(LOOK_EVERY_MS, undefined, { signal });
  }
  throw new ServiceError('failure', `the bot did not trade within ${TRADES_WITHIN_MS / 1000} s`, {
    remedy: 'Check with `service-local tasks list` that the server or a worker runs tasks.',
  });
}

/**
 * Halts the bot, lifts its halt and archives it, even if the halt cannot be lifted because all bots
 * have been halted since. A bot whose halt is not verified stays as it is, for investigation.
 */
async function cleanUp(context: Context, slug: string): Promise<void> {
  const server = await connect(context);
  const params = { bot_ref: slug };
  if ((await findOptional(findBot(server, slug))) === undefined) return;
  const body = { reason: 'the drill is over' };
  const path = '/bots/{bot_ref}/halt';
  const { verified } = await requestHalt(() =>
    server.call<typeof haltBot>('post', path, { params, body }),
  );
  if (!verified)
    return context.message(
      `the halt of ${slug} was not verified: the bot stays halted and is not archived`,
    );
  try {
    await server.call<typeof resumeBot>('post', '/bots/{bot_ref}/resume', { params, body });
  } finally {
    await server.call<typeof archiveBot>('delete', '/bots/{bot_ref}', {
      params,
      headers: { 'if-match': '*' },
    });
  }
}

/** Takes the data of an existing bot. An active bot is more likely to have its data than a draft. */
async function findMarket(server: Client): Promise<Market> {
  for (const status of ['active', 'draft'] as const) {
    const query = { kind: 'trading', status } as const;
    for await (const { id } of server.items<typeof listBots>('get', '/bots', { query })) {
      const { answer: bot } = await findBot(server, id);
      const market = marketOfSpec(bot.document['spec'] as Spec);
      if (market !== undefined) return market;
    }
  }
  throw new ServiceError('usage', 'no bot on the server uses data from its catalogue', {
    remedy: 'Name a dataset with --data.',
  });
}

function marketOfSpec({ universe, data }: Spec): Market | undefined {
  const symbol = universe?.symbols?.[0];
  const source = data?.source ?? (symbol === undefined ? undefined : data?.sources?.[symbol]);
  const { timeframe } = data ?? {};
  if (symbol === undefined || timeframe === undefined) return undefined;
  return source?.startsWith('catalog://') ? { symbol, source, timeframe } : undefined;
}

interface Spec {
  readonly universe?: { readonly symbols?: readonly string[] };
  readonly data?: {
    readonly source?: string;
    readonly sources?: Readonly<Record<string, string>>;
    readonly timeframe?: string;
  };
}

const ADDRESS = /^catalog:\/\/(.+)$/;

function parseAddress(text: string): string {
  if (ADDRESS.test(text)) return text;
  throw new ServiceError('usage', `'${text}' does not have the form catalog://NAME`);
}

/** The name of a dataset is its symbol. */
function marketOfDataset(source: string, timeframe: string): Market {
  return { symbol: ADDRESS.exec(source)![1]!, source, timeframe };
}

function makeDocument(
  slug: string,
  { symbol, source, timeframe }: Market,
  limits: readonly string[],
): Record<string, unknown> {
  const unlimited = { unlimited: 'a drill, on paper and for a moment' };
  return {
    apiVersion: 'bots/v1',
    kind: 'Bot',
    metadata: { name: 'Drill of a halt', slug },
    spec: {
      kind: 'trading',
      universe: { symbols: [symbol], currency: 'USD' },
      data: { source, timeframe },
      strategy: { name: 'buy_and_hold' },
      risk: Object.fromEntries(limits.map((name) => [name, unlimited])),
    },
  };
}
