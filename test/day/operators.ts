/** Operators of the bots on a simulated day, who use the API of the server. */
import type { HaltReport } from '../../src/api/halts.ts';
import type { Invariants } from './invariants.ts';
import { openPaper } from './paper.ts';
import { BOTS, PAPER_BOT, type DayBot } from './setup.ts';
import type { World } from './world.ts';

/** A bot that trades at the exchange; the pod replaces its strategy. */
function documentOf({ slug, symbols }: DayBot, seed: number): object {
  const sources = symbols.map((symbol) => [symbol, `catalog://${symbol.split('/')[0]}`] as const);
  const data =
    sources.length === 1 ? { source: sources[0]![1] } : { sources: Object.fromEntries(sources) };
  const unlimited = { unlimited: 'a simulated day' };
  return {
    apiVersion: 'bots/v1',
    kind: 'Bot',
    metadata: { name: slug, slug },
    spec: {
      kind: 'trading',
      universe: { symbols, currency: 'USDT' },
      data: { ...data, timeframe: '1m' },
      strategy:
        symbols.length === 1
          ? { name: 'sma_crossover', params: { fast: 2, slow: 3 } }
          : { name: 'momentum_rotation', params: { lookback: 2, hold: 1, top: 1 } },
      engine: { cash: '10000', seed },
      risk: {
        max_order_value: '1000',
        max_order_qty: unlimited,
        price_collar_bps: unlimited,
        max_messages_per_second: unlimited,
        max_position_pct: 0.5,
        max_daily_loss_pct: unlimited,
        max_drawdown_pct: unlimited,
        max_instruments: unlimited,
      },
    },
  };
}

export class Operators {
  readonly #world: World;
  readonly #invariants: Invariants;
  #requests = 0;

  constructor(world: World, invariants: Invariants) {
    this.#world = world;
    this.#invariants = invariants;
  }

  /** Creates and deploys all bots. */
  async begin(): Promise<void> {
    for (const bot of BOTS) {
      const document = documentOf(bot, this.#world.machine.below(1000));
      await this.#insist('POST', '/bots', { document });
      await this.deploy(bot);
    }
    await this.startPaper();
  }

  /** Does things with the bots until it is called off. */
  async work(isOver: () => boolean): Promise<void> {
    const { machine } = this.#world;
    const pause = (ms: number): Promise<void> => machine.sleep(machine.random() * ms);
    while (!isOver()) {
      await pause(60_000);
      if (isOver()) return;
      const bot = machine.pick(BOTS);
      const act = machine.pick(['halt', 'halt_all', 'stop', 'upgrade', 'threshold', 'paper']);
      this.#world.note(`operator: ${act} ${bot.slug}`);
      if (act === 'halt' || act === 'halt_all') {
        const bots = act === 'halt' ? [bot] : BOTS;
        while (!(await this.halt(bots)) && !isOver()) await pause(4000);
        await pause(20_000);
        await this.resume(bots);
        for (const one of bots) await this.deploy(one);
        if (bots.includes(PAPER_BOT)) await this.startPaper();
      } else if (act === 'stop') {
        await this.stop(bot);
        await pause(40_000);
        await this.deploy(bot);
      } else if (act === 'upgrade') await this.upgrade(bot);
      else if (act === 'paper') await this.restartPaper();
      else if (act === 'threshold') await this.setThreshold(machine.pick([undefined, 50, 200]));
    }
  }

  deploy({ slug }: DayBot, replace = false): Promise<unknown> {
    const venue = { type: 'exchange', credentials_secret: 'account' };
    return this.#insist('POST', `/bots/${slug}/deploy`, { venue, ...(replace && { replace }) });
  }

  startPaper(): Promise<void> {
    return this.#insist('POST', `/bots/${PAPER_BOT.slug}/paper/start`, { live: {} });
  }

  async restartPaper(): Promise<void> {
    const { slug } = PAPER_BOT;
    for (const { task_id } of openPaper(this.#world, [slug])) {
      await this.#insist('POST', `/bots/${slug}/paper/stop/${task_id}`, {});
    }
    await this.startPaper();
  }

  /** Creates a new version, and deploys it in place of the old one. */
  async upgrade(bot: DayBot): Promise<void> {
    const { machine } = this.#world;
    const found = await this.#world.ask('GET', `/bots/${bot.slug}`);
    const etag = found?.headers['etag'];
    if (typeof etag !== 'string') return;
    const document = documentOf(bot, machine.below(1000));
    await this.#world.ask('PUT', `/bots/${bot.slug}`, { document }, { 'if-match': etag });
    await this.deploy(bot, true);
  }

  async stop({ slug }: DayBot): Promise<void> {
    const found = await this.#world.ask('GET', `/bots/${slug}/deployments`);
    if (found?.status !== 200) return;
    const { items } = JSON.parse(found.text) as {
      readonly items: readonly { readonly task_id: string; readonly ended_at: string | null }[];
    };
    const running = items.find(({ ended_at }) => ended_at === null);
    if (running === undefined) return;
    await this.#insist('POST', `/bots/${slug}/deploy/stop/${running.task_id}`, {});
  }

  /** @returns whether the halt is known to be verified. */
  async halt(bots: readonly DayBot[]): Promise<boolean> {
    let isVerified = false;
    const answer = await this.#world.ask(
      'POST',
      bots.length > 1 ? '/bots/halt-all' : `/bots/${bots[0]!.slug}/halt`,
      { reason: 'a simulated day' },
      {},
      ({ status, text }) => {
        isVerified = status < 300 && (JSON.parse(text) as HaltReport).verified;
        if (isVerified) this.#invariants.haltVerified(bots);
      },
    );
    this.#world.note(`operator halts ${bots.length}: ${answer?.status} ${isVerified}`);
    return isVerified;
  }

  async resume(bots: readonly DayBot[]): Promise<void> {
    this.#invariants.haltLifted(bots);
    const path = bots.length > 1 ? '/bots/resume-all' : `/bots/${bots[0]!.slug}/resume`;
    await this.#insist('POST', path, { reason: 'a simulated day' });
  }

  async setThreshold(max_order_value: number | undefined): Promise<void> {
    await this.#insist('PUT', '/risk/thresholds', {
      level: 'firm',
      subject: 'firm',
      currency: 'USDT',
      limits: max_order_value === undefined ? null : { max_order_value },
      rationale: 'a simulated day',
    });
  }

  /** Repeats a request until it is answered, with the same key, so that it is done once. */
  async #insist(method: string, path: string, body: object): Promise<void> {
    const { machine } = this.#world;
    this.#requests += 1;
    const headers = { 'idempotency-key': `request-${this.#requests}` };
    for (let attempts = 0; attempts < 20; attempts += 1) {
      const answer = await this.#world.ask(method, path, body, headers);
      if (answer !== undefined && answer.status < 500) {
        this.#world.note(
          `operator ${method} ${path} ${answer.status} ${answer.status > 299 ? answer.text : ''}`,
        );
        return;
      }
      await machine.sleep(2000);
    }
  }
}
