/**
 * Deliberate breaks of the sources, each of which a few simulated days must find. Imported by a process
 * before others with the name of a break in the environment, it applies that break.
 */
import { ok } from 'node:assert';
import { registerHooks } from 'node:module';

export interface Break {
  readonly name: string;
  /** Below `src`. */
  readonly path: string;
  readonly text: string;
  readonly replacement: string;
}

export const BREAK = 'SERVICE_LOCAL_TEST_BREAK';

export const BREAKS: readonly Break[] = [
  {
    name: 'the server grants a claim that another runner holds',
    path: 'fleet/deployments/runner-reports.ts',
    text: 'report.epoch !== null || claimed_until > now',
    replacement: 'report.epoch !== null',
  },
  {
    name: 'a runner ignores that another one has its claim',
    path: 'trading/session-lifecycle.ts',
    text: "fenced: () => [{ kind: 'claim_settled', claim: 'fenced' }]",
    replacement: 'fenced: () => []',
  },
  {
    name: 'a runner trades although the server is silent',
    path: 'trading/trading-permission.ts',
    text: '!facts.isClaimFresh',
    replacement: 'false',
  },
  {
    name: 'a runner reports its orders as canceled without a look',
    path: 'trading/host/pod/background-work.ts',
    text: 'let [isDone] = await Promise.all([',
    replacement: 'let [isDone] = [true] || await Promise.all([',
  },
  {
    name: 'a runner does not record its orders',
    path: 'trading/host/pod/runner-journal.ts',
    text: 'await this.#store.append([...events, ...change]);',
    replacement:
      "await this.#store.append([...events.filter(({ kind }) => kind !== 'order.submitted'), ...change]);",
  },
  {
    name: 'a runner takes every report as news',
    path: 'trading/host/pod/pod-runner.ts',
    text: 'connection.isNews(report)',
    replacement: 'true',
  },
  {
    name: 'the server records a batch of a runner again',
    path: 'fleet/deployments/runner-reports.ts',
    text: 'batch?.number === before.batches + 1',
    replacement: 'batch != null',
  },
  {
    name: 'the server does not notify runners of halts',
    path: 'fleet/deployments/runner-reports.ts',
    text: 'await findHaltInForce(tx, bot_id)',
    replacement: 'undefined as Awaited<ReturnType<typeof findHaltInForce>>',
  },
  {
    name: 'a worker records a batch again',
    path: 'fleet/tasks/session-record.ts',
    text: 'if (number <= before.batches) return true;',
    replacement: '',
  },
  {
    name: 'a resumed paper session continues with the newest bar',
    path: 'trading/live-session-feed.ts',
    text: 'liveItems(await open(), last, signal)',
    replacement: 'liveItems(await open(), undefined, signal)',
  },
  {
    name: 'a halt leaves paper sessions running',
    path: 'fleet/halts/end-sessions.ts',
    text: 'await endTasks(tx, now, halt, after, last);',
    replacement: '',
  },
];

const wanted = process.env[BREAK];
const broken = BREAKS.find(({ name }) => name === wanted);
if (broken !== undefined) {
  const { path, text, replacement } = broken;
  const url = new URL(`../../src/${path}`, import.meta.url).href;
  registerHooks({
    load(loaded, context, next) {
      const result = next(loaded, context);
      if (loaded !== url) return result;
      const source = (result.source as Buffer).toString();
      ok(source.split(text).length === 2, `${path} must have once: ${text}`);
      return { ...result, source: source.replace(text, () => replacement) };
    },
  });
}
