import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { archiveBot, createBot, getBot, getBotSnapshot, listBots } from '../../../api/bots.ts';
import type { haltBot, HaltReport, resumeBot } from '../../../api/halts.ts';
import type { startPaper } from '../../../api/paper.ts';
import type { Client } from '../../../client/client.ts';
import { ServiceError } from '../../../base/errors.ts';
import { connect } from '../../connect.ts';
import { haltAnswer, haltOfAll, requestHalt, showReport } from '../../halts.ts';
import { defineVerb, type Context } from '../../verb.ts';

const LOOK_EVERY_MS = 50;
/** As long a session may take to place its first order. */
const TRADES_WITHIN_MS = 60_000;
/** So that it neither ends nor lets one wait: one bar each so many seconds. */
const SECONDS_PER_BAR = 0.5;

export const verb = defineVerb({
  summary: 'try on a bot made for it that halting works, and say how long it takes',
  description:
    'Tries on a bot of its own that halting works: makes one on the server, starts a paper session, waits until it holds or orders something, halts it, has that verified, and says how long it took. The bot is archived at the end, also after a failure or Ctrl-C; no other bot is touched. While all bots are halted there is nothing to try, and nothing is made. It takes a token with the scopes read, write, trade and halt. Like a halt, it ends with 7 where not all is verified.',
  options: {
    data: {
      value: 'catalog://name',
      description:
        'dataset of the catalogue of the server; by default that of the first bot that trades, active ones before drafts',
      parse: parseAddress,
    },
    timeframe: { value: 'timeframe', description: 'of the dataset of --data', default: '1d' },
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

/** Nothing could trade, and so nothing could be tried. */
async function requireNoHalt(server: Client): Promise<void> {
  const halt = await haltOfAll(server);
  if (halt === undefined) return;
  const { requested_at, reason } = halt;
  throw new ServiceError('conflict', `all bots are halted since ${requested_at}: ${reason}`, {
    reason: 'halted',
    remedy:
      'No bot was made. Try it once that halt is lifted, with `service-local bots resume-all`.',
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
  const { NO_RISK_LIMITS } = await import('../../../engine/config.ts');
  const document = makeDocument(slug, market, Object.keys(NO_RISK_LIMITS));
  const speed = parseTimeframe(market.timeframe).ms / 1000 / SECONDS_PER_BAR;
  try {
    const { id: bot_ref } = await server.call<typeof createBot>('post', '/bots', {
      body: { document },
    });
    const params = { bot_ref };
    context.message(`made the bot ${slug}, on ${market.source}`);
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
    context.message('it trades: halting it');
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
      throw new ServiceError('failure', 'its paper session ended before it traded', {
        remedy: `See \`service-local tasks get ${task_id}\`, or name longer data with --data.`,
      });
    }
    if (session.working.length > 0 || Object.keys(session.positions).length > 0) return;
    await wait(LOOK_EVERY_MS, undefined, { signal });
  }
  throw new ServiceError('failure', `it did not trade within ${TRADES_WITHIN_MS / 1000} s`, {
    remedy: 'See whether the server, or a worker, is at its tasks.',
  });
}

/**
 * Whatever became of it: nothing of it trades, nothing of it is halted, and it is archived; also where
 * its halt cannot be lifted, as when all bots have been halted since. One that cannot be halted stays
 * as it is, so that it can be looked at.
 */
async function cleanUp(context: Context, slug: string): Promise<void> {
  const server = await connect(context);
  const params = { bot_ref: slug };
  try {
    await server.call<typeof getBot>('get', '/bots/{bot_ref}', { params, headers: {} });
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'not_found') return;
    throw error;
  }
  const body = { reason: 'the drill is over' };
  const path = '/bots/{bot_ref}/halt';
  const { verified } = await requestHalt(() =>
    server.call<typeof haltBot>('post', path, { params, body }),
  );
  if (!verified) return context.message(`the bot ${slug} stays halted, and is not archived`);
  try {
    await server.call<typeof resumeBot>('post', '/bots/{bot_ref}/resume', { params, body });
  } finally {
    await server.call<typeof archiveBot>('delete', '/bots/{bot_ref}', {
      params,
      headers: { 'if-match': '*' },
    });
  }
}

/** The data of a bot that there is: first of those for which they have been there. */
async function findMarket(server: Client): Promise<Market> {
  for (const status of ['active', 'draft'] as const) {
    const query = { kind: 'trading', status } as const;
    for await (const { id } of server.items<typeof listBots>('get', '/bots', { query })) {
      const { document } = await server.call<typeof getBot>('get', '/bots/{bot_ref}', {
        params: { bot_ref: id },
        headers: {},
      });
      const market = marketOfSpec(document['spec'] as Spec);
      if (market !== undefined) return market;
    }
  }
  throw new ServiceError('usage', 'no bot of the server has data from its catalogue', {
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

/** What of a spec is looked at, which the server has checked. */
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
  throw new ServiceError('usage', `'${text}' is not catalog://NAME`);
}

/** A dataset has the name of its symbol. */
function marketOfDataset(source: string, timeframe: string): Market {
  return { symbol: ADDRESS.exec(source)![1]!, source, timeframe };
}

/** Buys on the first bar, and holds. */
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
